/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stacks: what the samplers have met: stacks by the ids that the kernel gave them, and how often.
 * Frames are kept as places in objects, so that equal stacks are one, whatever addresses and
 * processes they were met at, and names can be found when the process is long gone.
 */
#ifndef PMP_STACKS_H
#define PMP_STACKS_H

#include "bpf/abi.h"
#include "capture/processes.h"
#include "model/raw_sample.h"

#include <stdbool.h>
#include <stddef.h>

struct stacks;

struct stacks_options {
	bool by_process; /* equal stacks of two processes are two */
};

/* `processes` is borrowed. NULL with errno ENOMEM. */
struct stacks *stacks__new(struct processes *processes, const struct stacks_options *options);
void stacks__free(struct stacks *s);

/* Take in a stack of either kind, or a thread. `size`: bytes of the record, which is not trusted to
 * be whole. Return 0, -EBADMSG or -ENOMEM. */
int stacks__add_stack(struct stacks *s, const struct pmp_stack_event *event, size_t size);
int stacks__add_thread(struct stacks *s, const struct pmp_thread_event *event, size_t size);

/* Add to the counts. An id that is not known makes it a loss. Returns 0 or -ENOMEM. */
int stacks__count(struct stacks *s, const struct pmp_count_key *key, const struct pmp_count *count);

/* The ids of a generation do not come again: `forget_id` is asked of each whether it may go. */
void stacks__forget(struct stacks *s, uint32_t generation,
		    bool (*forget_id)(void *arg, uint64_t id), void *arg);

/* The stack of one key, not counted. Borrowed until the next call. -ENOENT: not known. */
int stacks__sample(struct stacks *s, const struct pmp_count_key *key,
		   struct raw_sample *ret_sample);

/*
 * Call `fn` for each stack that was counted. `runnable`: a thread that was preempted, off-CPU. The
 * sample is borrowed until fn returns. Its count is n, or with `times` microseconds, rounded.
 */
typedef int (*stacks_fn)(const struct raw_sample *sample, bool runnable, void *arg);
int stacks__each(struct stacks *s, bool times, stacks_fn fn, void *arg);

/* What was counted, by how the user stack ended. */
struct stacks_totals {
	uint64_t n, ns;
	uint64_t by_status[PMP_N_STATUS];
	uint64_t kernel_only; /* there was no user stack to be had: kernel threads, dying ones */
	uint64_t frameless;   /* nor a kernel stack */
	uint64_t kernel_cut;  /* of all, with more kernel frames than are kept */
	uint64_t reached;     /* by frame pointers, but down to the thread's start */
	uint64_t unnamed;     /* lost: counted under an id whose stack never came */
	size_t distinct;      /* combined stacks */
};

const struct stacks_totals *stacks__totals(const struct stacks *s);

#endif
