/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample: collects one stack of a format that is not gdb's, and hands it on in gdb's form, so that
 * pt-pmp's rules shorten it as any other. The dialect for these lines is gdb, whatever -d says.
 *
 * Which line is made for a frame decides what the rules make of it:
 *
 *   function                  `#3  0x1 in NAME ()`            no library: no `(libc.so.6)` behind
 * it the same, verbatim        `#3  NAME`                      where nothing in NAME needs cutting
 *   unknown, library known    `#3  0x1 in ?? () from libc.so.6`      libc::??
 *   unknown, program known    `#3  0x1 in ?? () from mysqld`         ::??, as gdb's
 *   unknown altogether        `#3  ??`
 */
#ifndef PMP_READ_SAMPLE_H
#define PMP_READ_SAMPLE_H

#include "base/strbuf.h"
#include "model/stack.h"
#include "read/gdb.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_MAX GDB_READER_STACK_MAX /* bytes of one stack; more is -E2BIG */

/* All zero but fn and arg is empty. */
struct sample {
	stack_fn fn;
	void *arg;
	struct strbuf header;
	struct strbuf text;
	struct text *frames; /* only the lengths: the text still moves */
	size_t n_frames;
	size_t capacity;
	bool verbatim;	/* do not let the rules for `void` and `const` into plain names */
	bool shortened; /* the frames come from sample__add_short() */
};

void sample__free(struct sample *s);

/* Whose stack it is, for --tids: becomes `Thread (LWP 77 "name"):`. Each may be empty. */
int sample__set_thread(struct sample *s, struct text lwp, struct text name);

/* One more frame, innermost first. `symbol` may have parameters and offset; empty, `??`,
 * `[unknown]` or an address if it has no name. `object` is the file's path or empty. */
int sample__add(struct sample *s, struct text symbol, struct text object);

/* One whole line in gdb's form. */
int sample__add_line(struct sample *s, struct text line);

/* One name as it is to be printed; all or none of a stack's frames. */
int sample__add_short(struct sample *s, struct text name);

/* Hand the stack out and start the next one, without frames and thread. Nothing is handed out
 * without frames or with a count of 0. Each of these functions returns 0, -ENOMEM, -E2BIG or what
 * fn returned. */
int sample__emit(struct sample *s, uint64_t count);

/* As sample__emit(), for a stack that counts even if it is empty. */
int sample__emit_empty(struct sample *s, uint64_t count);

/* Forget it. */
void sample__drop(struct sample *s);

#endif
