/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * losses: what became of every thread, so that nothing is lost without a word.
 */
#ifndef PMP_LOSSES_H
#define PMP_LOSSES_H

#include "base/strbuf.h"
#include "model/raw_sample.h"

#include <stdbool.h>
#include <stddef.h>

struct losses {
	size_t snapshots;
	size_t listed;	/* threads that /proc listed just before; over the snapshots, like all */
	size_t threads; /* with a stack in the result: the sum of what follows, less `gone` */
	size_t whole;
	size_t truncated;
	size_t broken;
	size_t guessed;
	size_t torn;
	size_t running;
	size_t missing;	   /* listed by /proc and there still, but not met: in no other count */
	size_t gone;	   /* ended before they could be read */
	size_t kernel_cut; /* whole or not, with more kernel frames than are kept */
	bool no_sampling;  /* threads on a CPU could not be sampled there */

	/* how they were read; not losses */
	size_t retried; /* not read well at the first try */
	size_t sampled; /* taken on their CPU */
	size_t samples_dropped;
};

/* Count one thread by its end. */
void losses__count(struct losses *l, enum stack_end end);

/* Whether every thread that was there is in the result, and whole. A thread that ended by itself
 * is no loss. */
int losses__none(const struct losses *l);

/* One line without its newline: `77 threads, 75 whole; 1 torn (ran while it was read)`.
 * With `all`, every count. Returns 0 or -ENOMEM. */
int losses__describe(const struct losses *l, int all, struct strbuf *ret_text);

#endif
