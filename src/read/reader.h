/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reader: text traces of many tools become stacks. One front for all formats; what each of them
 * is, and what is made of its lines, stands in form.h, and detect.h says how they are told apart.
 *
 * Stacks of all formats but eu are lines in gdb's form (or names, where stack.shortened says so):
 * the dialect for them is gdb whatever the user asked for, the dialect for INPUT_EU is eu.
 * reader__format() says in the callback which one the stack has. A name may carry over from one
 * frame to the next only within a format: a new one needs a new shortener.
 *
 * Streaming. Memory is bounded by the longest stack (GDB_READER_STACK_MAX bytes), and its line
 * (16 MiB); more than that ends the reading with -E2BIG. Only gdb's passed-over lines may have any
 * length. Nothing is handed out before READER_PREFIX_MAX bytes of a FILE came or its format is
 * settled.
 */
#ifndef PMP_READ_READER_H
#define PMP_READ_READER_H

#include "model/stack.h"
#include "read/gdb.h"

#include <stddef.h>

#define READER_PREFIX_MAX ((size_t)64 << 10) /* bytes of a FILE that detection may look at */

enum input_format {
	INPUT_AUTO, /* each FILE by its form */
	INPUT_GDB,  /* also pstack, gstack, pt-eustack-resolver, core dumps, plain `bt` */
	INPUT_EU,
	INPUT_BPFTRACE,
	INPUT_BCC,
	INPUT_PERF,
	INPUT_FOLDED,
	INPUT_PMP,
};

/* auto, gdb (pstack, gstack, pteu), eu, bpftrace, bcc, perf, folded, pmp. Returns 0 or -EINVAL. */
int input_format__parse(const char *name, enum input_format *ret_format);

/* The first of these names. */
const char *input_format__name(enum input_format format);

struct reader;

/* `format` holds for all FILES. NULL with errno ENOMEM. */
struct reader *reader__new(enum input_format format, stack_fn fn, void *arg);
void reader__free(struct reader *r);

/* Feed the next bytes, cut anywhere. Returns 0, -ENOMEM, -E2BIG or what fn returned; once that is
 * not 0, every later call returns the same. */
int reader__feed(struct reader *r, const char *bytes, size_t len);

/* The end of a FILE: its last line may lack a newline. With gdb and eu the threads go on in the
 * next FILE as long as that has the same format; all others end here. Returns as reader__feed(). */
int reader__next_file(struct reader *r);

/* The end of the input; the last FILE's end is included. Returns as reader__feed(). */
int reader__finish(struct reader *r);

/* The format of the stack that is being handed out; otherwise that of the last FILE that had one,
 * INPUT_AUTO before. */
enum input_format reader__format(const struct reader *r);

#endif
