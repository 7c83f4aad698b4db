/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack: one thread's stack as text in gdb's form, whatever its source. From here on nothing
 * knows where a stack came from. All text is borrowed: valid until the callback returns.
 */
#ifndef PMP_STACK_H
#define PMP_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	const char *str; /* not NUL-terminated */
	size_t len;	 /* in bytes */
};

struct stack {
	/* the line that starts it: `Thread 3 (Thread 0x7f.. (LWP 77) "name"):`; len 0: none */
	struct text header;
	/* innermost first, each a whole line: `#4  0x00005581.. in f(int) () from /lib/x.so` */
	const struct text *frames;
	size_t n_frames;
	uint64_t count; /* how many such stacks it stands for; 1 unless the source had counted */
	bool shortened; /* the frames are the names to print, not lines to shorten */
	/* The input's last stack: counted even if nothing is in it. A stack without a header is
	 * counted only as the last, which makes it the only one; else it is read for the names
	 * that carry over from frame to frame. */
	bool last;
};

#endif
