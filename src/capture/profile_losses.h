/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profile_losses: the account of a sampler's run, in words: what should have been taken, what was,
 * and by which cause each of the others was lost.
 */
#ifndef PMP_PROFILE_LOSSES_H
#define PMP_PROFILE_LOSSES_H

#include "base/strbuf.h"
#include "bpf/abi.h"
#include "capture/processes.h"
#include "capture/stacks.h"
#include "capture/waits.h"
#include "model/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile_losses {
	enum plan_mode mode;
	double seconds;	    /* that the capture took */
	double ended_after; /* not 0: every process had ended by then */
	bool fell_back;	    /* to frame pointers, for want of bpf_loop */
	bool expected_known;
	uint64_t expected;	/* ticks */
	uint64_t expected_idle; /* of them, on CPUs that had nothing to do */
	struct pmp_stats stats;
	struct stacks_totals stacks;
	struct processes_losses processes;
	struct waits_totals waits;
	size_t tables_left_out;
};

/* Append what has to be said, a line each; with `all` every count. Returns 0 or -ENOMEM. */
int profile_losses__describe(const struct profile_losses *l, bool all, struct strbuf *ret_text);

#endif
