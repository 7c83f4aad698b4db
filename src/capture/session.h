/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session: one run of the tool: snapshots of its processes, again and again as the plan says,
 * and the account of what was lost.
 * What the callbacks are given is borrowed: valid until they return.
 */
#ifndef PMP_SESSION_H
#define PMP_SESSION_H

#include "base/error.h"
#include "capture/losses.h"
#include "model/plan.h"
#include "model/raw_sample.h"

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

struct session;

struct session_sink {
	/* One thread. `number` counts the threads of a snapshot downwards to 1, as gdb does. */
	int (*sample)(void *arg, const struct raw_sample *sample, unsigned int number);
	/* An iteration is over: no more samples of it come. */
	int (*iteration)(void *arg);
	void *arg;
};

/* Load what captures. `plan` is borrowed. NULL with errno and `e` set. */
struct session *session__new(const struct plan *plan, struct error *e);
void session__free(struct session *s);

/*
 * Capture `pids` plan->iterations times. The first failure ends the run; but with plan->comm,
 * processes that ended are passed over and those that started since are taken in. Returns 0 or
 * -errno with `e` set; what was handed to the sink before stays good. After -ETIMEDOUT the
 * session must be left alone: not even freed. Once a signal handler has set *interrupted, the
 * iteration under way is the last.
 */
int session__run(struct session *s, const pid_t *pids, size_t n_pids,
		 const struct session_sink *sink, const volatile sig_atomic_t *interrupted,
		 struct error *e);

const struct losses *session__losses(const struct session *s);

/* Print the account: nothing if all is whole, else one line; with plan->verbose all of it, and a
 * line for each stack that is not whole. */
void session__print_losses(const struct session *s);

#endif
