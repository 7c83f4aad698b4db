/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb: reads gdb's text (`thread apply all bt`) as pt-pmp does: `Thread`/`TID` lines start a
 * stack, `#` lines are its frames, everything else is passed over.
 * Streaming: memory is bounded by the longest stack.
 */
#ifndef PMP_READ_GDB_H
#define PMP_READ_GDB_H

#include "model/stack.h"

#include <stddef.h>

struct gdb_reader;

/* Called for each stack; a value other than 0 ends the reading and is handed on. */
typedef int (*stack_fn)(const struct stack *stack, void *arg);

/* NULL with errno ENOMEM. */
struct gdb_reader *gdb_reader__new(stack_fn fn, void *arg);
void gdb_reader__free(struct gdb_reader *r);

/* Feed the next bytes of the input, cut anywhere. Returns 0, -ENOMEM or what fn returned. */
int gdb_reader__feed(struct gdb_reader *r, const char *bytes, size_t len);

/* The end of the input: the last stack is handed out. */
int gdb_reader__finish(struct gdb_reader *r);

#endif
