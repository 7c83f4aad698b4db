/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shorten: a frame's line becomes the short name that pt-pmp prints for it.
 * Pure. The rules, and what is easy to get wrong in them, are those of pt-pmp 3.5.7 in the C
 * locale. Time is linear in the line; each '<' or '(' in it may take up to 56 bytes of memory.
 */
#ifndef PMP_SHORTEN_H
#define PMP_SHORTEN_H

#include "model/stack.h"

struct shortener;

enum shorten_dialect { SHORTEN_GDB, SHORTEN_EU, SHORTEN_PTEU };

/* NULL with errno ENOMEM. Two names carry over from frame to frame, across stacks: one
 * shortener serves one input from its start to its end. */
struct shortener *shortener__new(enum shorten_dialect dialect);
void shortener__free(struct shortener *s);

/* The short name of one frame line (starting with '#'), borrowed until the next call. May be
 * empty. Returns 0, -ENOMEM, or -E2BIG for a line of 4 GiB. */
int shortener__frame(struct shortener *s, struct text line, struct text *ret_name);

#endif
