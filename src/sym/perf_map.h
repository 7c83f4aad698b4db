/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_map: names of code that a program made while it ran (JIT), from the file that it may leave
 * for perf: /tmp/perf-PID.map in its own mount and PID namespace, lines of `START SIZE NAME` with
 * hexadecimal numbers (tools/perf/Documentation/jit-interface.txt of the kernel). Only a regular
 * file that is the process' user's or root's is taken.
 */
#ifndef PMP_PERF_MAP_H
#define PMP_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_map;

/* NULL with errno: ENOENT (there is none, or not one to be trusted, or the process has ended),
 * EFBIG, ENOMEM. */
struct perf_map *perf_map__new(pid_t pid);

/* From the bytes of such a file. NULL with errno ENOMEM. */
struct perf_map *perf_map__from_text(const char *text, size_t len);
void perf_map__free(struct perf_map *m);

/* The name of the code at `addr`, of several entries there the last in the file: untrusted bytes,
 * owned by the struct. NULL: there is none. */
const char *perf_map__find(const struct perf_map *m, uint64_t addr);

#endif
