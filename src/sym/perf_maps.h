/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_maps: the perf_map of each process, read at the first need, and anew when a name is not in
 * it, but not more than once a second.
 */
#ifndef PMP_PERF_MAPS_H
#define PMP_PERF_MAPS_H

#include <stdint.h>
#include <sys/types.h>

struct perf_maps;

/* NULL with errno ENOMEM. */
struct perf_maps *perf_maps__new(void);
void perf_maps__free(struct perf_maps *m);

/* Untrusted bytes, borrowed until the next call; NULL: no name is known. */
const char *perf_maps__find(struct perf_maps *m, pid_t pid, uint64_t addr);

#endif
