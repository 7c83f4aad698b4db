/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profile: one run of a sampler, on-CPU or off-CPU: loads the programs, follows the processes,
 * gathers what the kernel counts, and accounts for what was lost.
 * What the callbacks are given is borrowed: valid until they return.
 */
#ifndef PMP_PROFILE_H
#define PMP_PROFILE_H

#include "base/error.h"
#include "base/strbuf.h"
#include "model/plan.h"
#include "model/raw_sample.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct profile;

/* One sample as it comes. */
struct profile_tick {
	uint64_t time; /* ns since the epoch */
	unsigned int cpu;
	const char *comm; /* of the thread */
	pid_t pid, tid;
};

struct profile_progress {
	double left; /* seconds */
	uint64_t samples, lost;
};

struct profile_sink {
	/* Once the capture is over: a stack, how many samples or microseconds it stands for. */
	int (*stack)(void *arg, const struct raw_sample *sample);
	/* With PLAN_FORMAT_SAMPLES, instead: each sample at once. */
	int (*tick)(void *arg, const struct profile_tick *tick, const struct raw_sample *sample);
	/* With plan->tids: whether the thread of this sample (without frames) is wanted. */
	bool (*wants)(void *arg, const struct raw_sample *thread);
	void *arg;
	/* About once a second; NULL: nobody watches. */
	void (*progress)(void *arg, const struct profile_progress *progress);
	void *progress_arg;
};

/* `plan` is borrowed. NULL with errno ENOMEM. */
struct profile *profile__new(const struct plan *plan);
void profile__free(struct profile *p);

/* Sample `pids` for plan->duration seconds, or until *interrupted is set or they have all ended.
 * `sink` is borrowed for as long as the struct lives. Returns 0 or -errno with `e` set. */
int profile__run(struct profile *p, const pid_t *pids, size_t n_pids,
		 const struct profile_sink *sink, const volatile sig_atomic_t *interrupted,
		 struct error *e);

/* What should be known of the result, a line each with its newline: nothing if all is whole. With
 * plan->verbose, every count. Returns 0 or -ENOMEM. */
int profile__describe(struct profile *p, struct strbuf *ret_text);

/* Hand out the stacks: none with PLAN_FORMAT_SAMPLES, for each was handed out as it came. Takes no
 * privileges. Returns 0, or what sink->stack returned. */
int profile__each(struct profile *p);

#endif
