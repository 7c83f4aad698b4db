/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker: a process of its own that reads debug information. What is in it is not trusted, and
 * libdw was not written against files that lie: the worker has no privileges, no open files but
 * those that it is handed, little memory, and little time. Where it falls, only names are lost.
 */
#ifndef PMP_DWARF_WORKER_H
#define PMP_DWARF_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/debug_info.h"

struct worker;

/*
 * It starts here: a fork is cheapest, and shares least, while the parent is small. With
 * `keep_privileges` it keeps what its parent has, for debugging. NULL with errno ENOMEM.
 */
struct worker *worker__new(bool keep_privileges);
void worker__free(struct worker *w);

/*
 * Register a file with debug information, and what its .gnu_debugaltlink names (or -1). Both are
 * taken over. Returns its number (not negative), or -ENOMEM.
 */
int worker__add(struct worker *w, int fd, int alt_fd);

/*
 * debug_info__find() in a registered file. Returns how many frames, borrowed until the next call;
 * 0 where nothing is known, or the file was given up. -ENOMEM.
 */
int worker__find(struct worker *w, int number, uint64_t addr, bool exact,
		 const struct debug_frame **ret_frames);

/* debug_info__tail_calls() in a registered file. Returns how many addresses were stored, or
 * -ENOMEM. */
int worker__tail_calls(struct worker *w, int number, uint64_t return_addr, uint64_t callee_addr,
		       uint64_t ret_addrs[TAIL_CALLS_MAX]);

/* How many files were given up because the worker fell over them or took too long. */
unsigned int worker__given_up(const struct worker *w);

#endif
