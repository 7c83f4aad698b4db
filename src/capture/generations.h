/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * generations: states of processes' mappings, each with a number of its own. A process has one at
 * a time; a child has its parent's until one of them changes. An old one is kept for as long as
 * samples that were unwound with it may be on their way.
 * A struct generation is owned by the struct generations.
 */
#ifndef PMP_GENERATIONS_H
#define PMP_GENERATIONS_H

#include "bpf/abi.h"
#include "capture/unwind_maps.h"
#include "proc/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generation;
struct generations;

/* `maps` is borrowed. NULL with errno ENOMEM. */
struct generations *generations__new(struct unwind_maps *maps);
void generations__free(struct generations *gs);

/* One with these places (ascending), which somebody has at once. It takes their references to
 * objects over. NULL: no memory, and they are the caller's still. Times are CLOCK_MONOTONIC, ns. */
struct generation *generations__make(struct generations *gs, const struct code_place *places,
				     size_t n, uint64_t now);

/* The number of the one made last: those to come have higher ones. 0: none has been made. */
uint32_t generations__last(const struct generations *gs);

/* NULL: there is none of this number any more. */
struct generation *generations__find(const struct generations *gs, uint32_t number);

/* One more has it; one has it no longer. Both take NULL; the first returns it. */
struct generation *generation__take(struct generation *g);
void generation__leave(struct generation *g, uint64_t now);

uint32_t generation__number(const struct generation *g); /* never 0 */
uint64_t generation__made_at(const struct generation *g);

/* Whether these are its places. False for NULL. */
bool generation__has(const struct generation *g, const struct code_place *places, size_t n);

/* Put it into the kernel's arrays, if it is not there: what a process that has it is there. Returns
 * 0, -ENOMEM or -ENOSPC (then the process is left unknown). */
int generations__put(struct generations *gs, struct generation *g, struct pmp_process *ret_process);

/* Drop those that nobody has had for `rest` ns; `forget` is told of each. */
void generations__expire(struct generations *gs, uint64_t now, uint64_t rest,
			 void (*forget)(void *arg, uint32_t number), void *arg);

/* The code at `pc` in a generation. Returns 0, or -ENOENT. */
int generations__find_code(const struct generations *gs, uint32_t number, uint64_t pc,
			   struct code_place *ret_place);

#endif
