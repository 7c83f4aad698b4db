// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/perf_maps.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/clock.h"
#include "sym/perf_map.h"

#define AGAIN_NS 1000000000ull

struct process {
	UT_hash_handle hh;
	pid_t pid;
	struct perf_map *map; /* NULL: there is none */
	uint64_t read_at;     /* ns; 0: never */
};

struct perf_maps {
	struct process *processes;
};

struct perf_maps *perf_maps__new(void)
{
	return calloc(1, sizeof(struct perf_maps));
}

void perf_maps__free(struct perf_maps *m)
{
	struct process *p, *next;

	if (!m)
		return;
	HASH_ITER (hh, m->processes, p, next) {
		HASH_DEL(m->processes, p);
		perf_map__free(p->map);
		free(p);
	}
	free(m);
}

static struct process *process_of(struct perf_maps *m, pid_t pid)
{
	struct process *p;

	HASH_FIND(hh, m->processes, &pid, sizeof(pid), p);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD(hh, m->processes, pid, sizeof(p->pid), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

static void read_again(struct process *p)
{
	uint64_t ns = clock__ns(CLOCK_MONOTONIC);
	struct perf_map *map;

	if (p->read_at && ns < p->read_at + AGAIN_NS)
		return;
	p->read_at = ns;
	map = perf_map__new(p->pid);
	if (!map)
		return; /* it may have ended: what was known stays so */
	perf_map__free(p->map);
	p->map = map;
}

const char *perf_maps__find(struct perf_maps *m, pid_t pid, uint64_t addr)
{
	struct process *p = process_of(m, pid);
	const char *name;

	if (!p)
		return NULL;
	name = p->map ? perf_map__find(p->map, addr) : NULL;
	if (name)
		return name;
	read_again(p);
	return p->map ? perf_map__find(p->map, addr) : NULL;
}
