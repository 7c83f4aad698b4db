/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lines: bytes that come in pieces become lines. A line is borrowed until the callback returns.
 */
#ifndef PMP_READ_LINES_H
#define PMP_READ_LINES_H

#include "base/strbuf.h"
#include "model/stack.h"

#include <stddef.h>

#define LINES_LINE_MAX ((size_t)16 << 20) /* bytes of one line; a longer one is -E2BIG */

/* All zero is empty. */
struct lines {
	struct strbuf part; /* of the line that has begun */
};

/* `line` comes without its newline, and without a CR before that. */
typedef int (*line_fn)(void *arg, struct text line);

/* Cut anywhere. Returns 0, -ENOMEM, -E2BIG, or what fn returned: that ends the reading. */
int lines__feed(struct lines *l, const char *bytes, size_t len, line_fn fn, void *arg);

/* Hand out a last line that had no newline. Returns as lines__feed(). */
int lines__end(struct lines *l, line_fn fn, void *arg);

void lines__free(struct lines *l);

#endif
