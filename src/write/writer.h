/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * writer: a report as text, one file per format. Writers append to a strbuf; who writes that
 * out, and what happens when the disk is full, is main.c's.
 */
#ifndef PMP_WRITER_H
#define PMP_WRITER_H

#include "base/strbuf.h"
#include "model/report.h"
#include "model/stack.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Each returns 0 or -ENOMEM. */

/* The line that date(1) prints for `now` in this locale and time zone, with its newline. */
int write_pmp__date(struct strbuf *out, time_t now);
/* pt-pmp's lines: count in 7 columns, a blank, the frames joined by ','. */
int write_pmp__report(struct strbuf *out, const struct report *report);
/* The same with shares of the total in place of counts: ` 80.00% a,b,c`. */
int write_pmp__shares(struct strbuf *out, const struct report *report);

/* A table of functions under a heading: share of their own, share with what they call, two blanks
 * between columns. What is not printable in a name becomes '?'. */
int write_functions__table(struct strbuf *out, const struct report_functions *functions);

/* `part` of `whole` in 7 columns, as ` 80.00%`; nothing of nothing is 0.00%. */
int write_share(struct strbuf *out, uint64_t part, uint64_t whole);

/* Folded stacks: outermost first, joined by ';', a blank, the count. A ';' or newline within a
 * frame becomes ':'. A frame without a name is `??`, as is a stack without frames. */
int write_folded__report(struct strbuf *out, const struct report *report);

/* One sample: ns since the epoch, comm, pid, tid, CPU, kernel frames, user frames; a blank between
 * them, and '_' in place of the blanks of comm, which is not trusted. */
struct sample_line {
	uint64_t time;
	const char *comm;
	pid_t pid, tid;
	unsigned int cpu;
	size_t n_kernel, n_user;
};
int write_samples__line(struct strbuf *out, const struct sample_line *line);

/* gdb's text, as --save-samples keeps it: a blank line, the header if there is one, the frames.
 * A newline within a line becomes '?': a name must not start a line of its own. */
int write_gdb__stack(struct strbuf *out, const struct stack *stack);
/* The `TS` line that ends an iteration: nanoseconds.seconds and local date and time. */
int write_gdb__timestamp(struct strbuf *out, const struct timespec *now);

#endif
