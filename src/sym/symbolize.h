/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbolize: addresses become names, each frame written as the line that gdb prints for it.
 */
#ifndef PMP_SYMBOLIZE_H
#define PMP_SYMBOLIZE_H

#include "model/raw_sample.h"
#include "model/stack.h"
#include "sym/code_names.h"
#include "sym/kernel_names.h"

struct symbolizer;

struct symbolizer_options {
	struct code_names_options names;
	const struct kernel_names_source *kernel; /* NULL: kernel names come from /proc/kallsyms */
	bool annotate;				  /* kernel frames are named NAME_[k] */
	/* Kernel stacks were taken where the scheduler takes the CPU away: its own frames, and
	 * those of what took the stack, are left out, as the kernel itself does for a thread that
	 * sleeps. */
	bool off_cpu;
	/* Two pseudo-frames more at the outermost end, after that of a stack that is not whole: the
	 * pid, then the process' name (`??`: not known). */
	bool by_process;
};

/* NULL with errno. Nothing is asked of the kernel before the first kernel address. */
struct symbolizer *symbolizer__new(const struct symbolizer_options *options);
void symbolizer__free(struct symbolizer *s);

/*
 * Name every frame of `sample`, kernel frames first, a pseudo-frame last if the stack is not
 * whole. `number` is the thread's number in its header line, from 1; without a tid, the header's
 * LWP is the pid. The result is borrowed: valid until the next call; it has no frame if the sample
 * has none and is whole. Returns 0 or -ENOMEM; an address without a name, or without an object, is
 * `??`. The process need not be there any more; each object has to be. After 4 MiB, inlined
 * functions and long names are left out of a stack.
 */
int symbolizer__stack(struct symbolizer *s, const struct raw_sample *sample, unsigned int number,
		      struct stack *ret_stack);

/* Append what could not be had, a line each without the program's name, for the user to read.
 * Returns 0 or -ENOMEM. */
int symbolizer__gaps(const struct symbolizer *s, struct strbuf *ret_text);

#endif
