/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits: the edges of an off-CPU capture. Threads that are blocked when it begins are found by a
 * snapshot, and their waits handed to the kernel as if it had seen them begin; those that are
 * blocked when it ends are taken from the kernel. A thread that is stuck throughout is both.
 */
#ifndef PMP_WAITS_H
#define PMP_WAITS_H

#include "base/error.h"
#include "capture/processes.h"
#include "capture/stacks.h"
#include "model/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct waits;

/* `plan`, `processes` and `stacks` are borrowed; waits_fd is the kernel's map. NULL with errno and
 * `e` set. */
struct waits *waits__new(const struct plan *plan, const struct processes *processes,
			 struct stacks *stacks, int waits_fd, struct error *e);
void waits__free(struct waits *w);

/*
 * The programs run already, but nothing is counted yet: put down what the threads of `pid` wait
 * for. A process that has ended or cannot be read, within plan->max_wait, is passed over. Returns 0
 * or -errno with `e` set.
 */
int waits__find_begun(struct waits *w, pid_t pid, struct error *e);

/* Note which stacks the waits that are open now refer to, by their ids; and ask for one. */
void waits__note_ids(struct waits *w);
bool waits__refer_to(const struct waits *w, uint64_t id);

/* The programs have stopped: count the waits that are still open, from `begin` or their own begin
 * to `end` (ns, CLOCK_MONOTONIC). Returns 0 or -errno. */
int waits__count_open(struct waits *w, uint64_t begin, uint64_t end);

struct waits_totals {
	uint64_t found;	     /* waits that had begun before the capture */
	uint64_t open;	     /* waits that were open at its end */
	uint64_t throughout; /* of both, those that are one */
	uint64_t open_ns;
	uint64_t stuck;	       /* processes that kept their memory locked: what is open there? */
	uint64_t preempted_ns; /* threads that could have run, at the end */
};

const struct waits_totals *waits__totals(const struct waits *w);

#endif
