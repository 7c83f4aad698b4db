/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * find: from names to processes, by proc(5). Never by a substring: mysqld_exporter and
 * mysqld_safe are not mysqld.
 */
#ifndef PMP_FIND_H
#define PMP_FIND_H

#include "base/error.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The processes, in ascending order, whose executable's file name or whose command (the comm of
 * the thread group leader, of which the kernel keeps 15 bytes) is exactly `name`; find__comm()
 * goes by the command alone. This process, kernel threads and zombies are left out. *ret_pids is
 * the caller's to free, NULL if there is none. Return 0 or -errno.
 */
int find__binary(const char *name, pid_t **ret_pids, size_t *ret_n);
int find__comm(const char *name, pid_t **ret_pids, size_t *ret_n);

/* Every process but this one, kernel threads and zombies, likewise. */
int find__all(pid_t **ret_pids, size_t *ret_n);

/* Whether `pid` is a process whose stacks can be read: there, no zombie, no kernel thread, not
 * 32-bit, not merely a thread. Returns 0 or -errno with `e` set. */
int find__check(pid_t pid, struct error *e);

/* Append `PID 1201 mysql, since Nov 19 21:05, /usr/sbin/mysqld --port=3306`, in local time, all
 * of it printable. Reading the command line takes the process' memory lock. Returns 0 or -errno. */
int find__describe(pid_t pid, struct strbuf *ret_text);

/* When the process started, in clock ticks since boot: with the pid, what identifies it. Returns
 * 0 or -errno. */
int find__start_time(pid_t pid, uint64_t *ret_ticks);

/*
 * A thread of the process that has its address space: the leader, or, where main() has left by
 * pthread_exit() and the leader is a zombie, another. /proc/TID serves its maps, files and memory
 * as /proc/PID would. Returns its id, or -ESRCH.
 */
pid_t find__live_thread(pid_t pid);

/* The ids of its threads as /proc lists them; *ret_tids is the caller's to free. Returns 0 or
 * -errno. */
int find__threads(pid_t pid, pid_t **ret_tids, size_t *ret_n);

/* Whether `tid` is a thread of the process now, and no zombie. */
bool find__is_thread(pid_t pid, pid_t tid);

#endif
