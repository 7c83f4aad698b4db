/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * raw_sample: one thread's stack as captured and unwound, or one that many samples had: addresses,
 * no names yet. Everything is borrowed from the capture that hands it out, the objects too: valid
 * until the callback returns.
 */
#ifndef PMP_RAW_SAMPLE_H
#define PMP_RAW_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How a stack ends; all but STACK_WHOLE are shown as a pseudo-frame at its outermost end. */
enum stack_end {
	STACK_WHOLE,	 /* unwound down to the thread's start */
	STACK_TRUNCATED, /* the frame limit was reached: [truncated] */
	STACK_BROKEN,	 /* no way on: no CFI, unreadable memory, implausible frame: [broken] */
	STACK_GUESSED,	 /* reached the start, but over a frame-pointer step: [guessed] */
	STACK_TORN,	 /* the thread ran while its stack was read: [torn] */
	STACK_RUNNING,	 /* on a CPU throughout, never sampled there: [running] */
};

struct object; /* proc/object.h */

struct raw_frame {
	uint64_t pc; /* address in the target as found: a return address unless `exact` */
	bool exact;  /* name the code at pc; otherwise pc is a return address: name pc - 1 */
	bool signal; /* pc lies in the trampoline that a signal handler returns to */

	/* Where the address to name lies: what names it later needs nothing of the process. */
	struct object *object; /* NULL: no object is known there */
	pid_t pid;	       /* without an object: whose code it is; 0: not known */
	uint64_t bias;	       /* address in the target minus address in the object */
	const char *from;      /* the object's name in the process, as gdb prints it, or "" */
};

struct raw_sample {
	pid_t pid;
	const char *process_name; /* as the kernel has it: untrusted bytes; NULL: not known */
	pid_t tid;		  /* 0: the stack is not of one thread */
	const char *thread_name;  /* likewise */
	uint64_t thread_pointer;  /* fs base: what pthread_self() is; 0 if not known */
	const uint64_t *kernel;	  /* kernel addresses, innermost first; may be NULL */
	size_t n_kernel;
	const struct raw_frame *user; /* innermost first */
	size_t n_user;
	enum stack_end end;
	bool preempted; /* off-CPU: it could have run, but had no CPU */
	uint64_t count; /* 1, or how many samples it stands for, or microseconds */
};

#endif
