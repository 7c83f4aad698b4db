/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb: reads gdb's text (`thread apply all bt`) as pt-pmp does: `Thread`/`TID` lines start a
 * stack, `#` lines are its frames, everything else is passed over.
 * Streaming: memory is bounded by the longest stack. Its text, with sizeof(struct text) for each
 * frame, may take GDB_READER_STACK_MAX bytes, a single line of it GDB_READER_LINE_MAX; more than
 * that ends the reading with -E2BIG. Lines that are passed over may have any length.
 *
 * Several files are one input. Feed a newline after each, in case its last line has none.
 */
#ifndef PMP_READ_GDB_H
#define PMP_READ_GDB_H

#include "model/stack.h"

#include <stddef.h>

#define GDB_READER_LINE_MAX  ((size_t)16 << 20)
#define GDB_READER_STACK_MAX ((size_t)256 << 20)

struct gdb_reader;

/*
 * Called for each stack, also for one without frames. Frames before the first header are a stack
 * without one. A value other than 0 ends the reading and is handed on.
 */
typedef int (*stack_fn)(const struct stack *stack, void *arg);

/* NULL with errno ENOMEM. */
struct gdb_reader *gdb_reader__new(stack_fn fn, void *arg);
void gdb_reader__free(struct gdb_reader *r);

/* Feed the next bytes of the input, cut anywhere. Returns 0, -ENOMEM, -E2BIG or what fn returned;
 * once that is not 0, every later call returns the same. */
int gdb_reader__feed(struct gdb_reader *r, const char *bytes, size_t len);

/* The end of the input: the last stack is handed out, marked as such. Where there was neither a
 * header nor a frame there is none. Returns as gdb_reader__feed(). */
int gdb_reader__finish(struct gdb_reader *r);

#endif
