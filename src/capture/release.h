/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * release: a program that stops its target to read it must not leave it stopped, however it ends,
 * and even if we are killed meanwhile. Nothing here is ever stopped by us.
 */
#ifndef PMP_RELEASE_H
#define PMP_RELEASE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What is to be known of a process' threads. */
struct stops {
	bool there;
	bool stopped; /* by job control: a tracing stop ends with the tracer */
	bool pending; /* a SIGSTOP, which will stop it */
	bool traced;
};

/* The target, as it was before, and who looks after it. Owned by the caller. */
struct release {
	pid_t pid;
	uint64_t start_ticks;
	struct stops before;
	pid_t keeper; /* -1: none */
	int pipe_end; /* nobody else has it: it is closed by our death */
};

/* Before the program starts: see how the target is, and start a process that releases it should
 * we be killed. Where that is not possible there is none: the trace is wanted all the same. */
void release__begin(struct release *r, pid_t pid);

/*
 * The program has ended, `well` or not: undo a stop that it left. *ret_continued: SIGCONT was
 * sent; *ret_still: the target did not take it. A target that was stopped before stays so.
 */
void release__end(struct release *r, bool well, bool *ret_continued, bool *ret_still);

#endif
