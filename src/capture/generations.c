// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/generations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct generation {
	UT_hash_handle hh;
	uint32_t number;
	uint32_t first_mapping;
	size_t users; /* processes that have it now */
	uint64_t made_at, retired_at;
	bool put;
	size_t n;
	struct code_place places[]; /* each holds a reference to its object */
};

struct generations {
	struct unwind_maps *maps;
	struct generation *all;
	uint32_t last_number;
	struct pmp_mapping *mappings; /* being put */
};

struct generations *generations__new(struct unwind_maps *maps)
{
	struct generations *gs = calloc(1, sizeof(*gs));

	if (gs)
		gs->maps = maps;
	return gs;
}

static void free_one(struct generations *gs, struct generation *g)
{
	if (g->put)
		unwind_maps__drop_mappings(gs->maps, g->first_mapping, g->n);
	for (size_t i = 0; i < g->n; i++)
		object__unref(g->places[i].object);
	HASH_DEL(gs->all, g);
	free(g);
}

void generations__free(struct generations *gs)
{
	struct generation *g, *next;

	if (!gs)
		return;
	HASH_ITER (hh, gs->all, g, next)
		free_one(gs, g);
	free(gs->mappings);
	free(gs);
}

struct generation *generations__make(struct generations *gs, const struct code_place *places,
				     size_t n, uint64_t now)
{
	struct generation *g = calloc(1, sizeof(*g) + n * sizeof(g->places[0]));

	if (!g)
		return NULL;
	/* 0 is none; one that is in use after four thousand million others is passed over */
	do
		g->number = ++gs->last_number;
	while (!g->number || generations__find(gs, g->number));
	g->made_at = now;
	g->users = 1;
	g->n = n;
	if (n)
		memcpy(g->places, places, n * sizeof(g->places[0]));
	HASH_ADD(hh, gs->all, number, sizeof(g->number), g);
	if (g->hh.tbl)
		return g;
	free(g);
	return NULL;
}

uint32_t generations__last(const struct generations *gs)
{
	return gs->last_number;
}

struct generation *generations__find(const struct generations *gs, uint32_t number)
{
	struct generation *g;

	HASH_FIND(hh, gs->all, &number, sizeof(number), g);
	return g;
}

struct generation *generation__take(struct generation *g)
{
	if (g)
		g->users++;
	return g;
}

void generation__leave(struct generation *g, uint64_t now)
{
	if (g && !--g->users)
		g->retired_at = now;
}

uint32_t generation__number(const struct generation *g)
{
	return g->number;
}

uint64_t generation__made_at(const struct generation *g)
{
	return g->made_at;
}

bool generation__has(const struct generation *g, const struct code_place *places, size_t n)
{
	if (!g || g->n != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct code_place *a = &g->places[i], *b = &places[i];

		if (a->start != b->start || a->end != b->end || a->object != b->object ||
		    a->bias != b->bias)
			return false;
	}
	return true;
}

static int put(struct generations *gs, struct generation *g)
{
	struct pmp_mapping *mappings = reallocarray(gs->mappings, g->n, sizeof(*mappings));
	int err;

	if (!mappings)
		return -ENOMEM;
	gs->mappings = mappings;
	for (size_t i = 0; i < g->n; i++) {
		mappings[i] = (struct pmp_mapping){
			.start = g->places[i].start,
			.end = g->places[i].end,
		};
		if (g->places[i].object)
			unwind_maps__describe(gs->maps, g->places[i].object, g->places[i].bias,
					      &mappings[i]);
	}
	err = unwind_maps__put_mappings(gs->maps, mappings, g->n, &g->first_mapping);
	g->put = !err;
	return err;
}

int generations__put(struct generations *gs, struct generation *g, struct pmp_process *ret_process)
{
	int err = g->put || !g->n ? 0 : put(gs, g);

	if (err || !g->n)
		return err;
	ret_process->first_mapping = g->first_mapping;
	ret_process->n_mappings = (uint32_t)g->n;
	ret_process->generation = g->number;
	return 0;
}

void generations__expire(struct generations *gs, uint64_t now, uint64_t rest,
			 void (*forget)(void *arg, uint32_t number), void *arg)
{
	struct generation *g, *next;

	HASH_ITER (hh, gs->all, g, next) {
		if (g->users || now < g->retired_at + rest)
			continue;
		forget(arg, g->number);
		free_one(gs, g);
	}
}

int generations__find_code(const struct generations *gs, uint32_t number, uint64_t pc,
			   struct code_place *ret_place)
{
	const struct generation *g = generations__find(gs, number);
	size_t low = 0, high = g ? g->n : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (g->places[middle].end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!g || low == g->n || pc < g->places[low].start)
		return -ENOENT;
	*ret_place = g->places[low];
	return 0;
}
