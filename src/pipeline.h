/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pipeline: the stages that every stack passes, wherever it came from: filter, shortener,
 * aggregate, report, writer, output; and the file of --save-samples beside them. With main.c, the
 * only place that sees all modules.
 */
#ifndef PMP_PIPELINE_H
#define PMP_PIPELINE_H

#include "base/error.h"
#include "capture/profile.h"
#include "model/plan.h"
#include "model/raw_sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct pipeline;

/* `plan` and `e` are borrowed; `e` is told of what fails in any of the calls below. The output is
 * opened: what cannot be written is found out before anything is read. NULL with errno. */
struct pipeline *pipeline__new(const struct plan *plan, struct error *e);
void pipeline__free(struct pipeline *p);

/* Get ready to name what was captured: before a capture, while the process is small, for it forks.
 * Returns 0; -ENOSYS: a name cannot be had in the way that is wanted; -ENOMEM. */
int pipeline__expect_samples(struct pipeline *p);

/* Open the file of --save-samples, if there is to be one, and count what it holds already. To be
 * called last before the capture, so that a run that cannot be leaves no empty file. */
int pipeline__open_saved(struct pipeline *p);

/* One captured thread; fits struct session_sink. */
int pipeline__sample(void *pipeline, const struct raw_sample *sample, unsigned int number);

/* A sampler's stack with its count, a sample as it comes, and whether a thread is wanted; fit
 * struct profile_sink. */
int pipeline__stack(void *pipeline, const struct raw_sample *sample);
int pipeline__tick(void *pipeline, const struct profile_tick *tick,
		   const struct raw_sample *sample);
bool pipeline__wants(void *pipeline, const struct raw_sample *thread);

/* Text of a trace in gdb's form, from a tracer: it is kept, too; fits tracer_text_fn. */
int pipeline__trace(void *pipeline, const char *bytes, size_t len);

/* The end of an iteration of either; fits struct session_sink. */
int pipeline__iteration(void *pipeline);

/* The FILES of the plan, or standard input alone. One that cannot be read is complained of, and
 * the others are read: then *ret_missing is set. */
int pipeline__files(struct pipeline *p, bool *ret_missing);

/* Print it all. `began` is for the date line; NULL: there is none. */
int pipeline__report(struct pipeline *p, const time_t *began);

/* Say on standard error which names could not be had. */
void pipeline__print_gaps(const struct pipeline *p);

#endif
