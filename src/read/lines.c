// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/lines.h"

#include <errno.h>
#include <string.h>

static int hand_out(const char *str, size_t len, line_fn fn, void *arg)
{
	if (len && str[len - 1] == '\r')
		len--;
	return fn(arg, (struct text){str, len});
}

int lines__end(struct lines *l, line_fn fn, void *arg)
{
	int err = l->part.len ? hand_out(l->part.data, l->part.len, fn, arg) : 0;

	strbuf__reset(&l->part);
	return err;
}

int lines__feed(struct lines *l, const char *bytes, size_t len, line_fn fn, void *arg)
{
	const char *end = bytes + len;
	int err = 0;

	while (!err && bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t part = (size_t)((newline ? newline : end) - bytes);

		if (part > LINES_LINE_MAX - l->part.len)
			return -E2BIG;
		if (newline && !l->part.len)
			err = hand_out(bytes, part, fn, arg);
		else if (strbuf__append(&l->part, bytes, part))
			return -ENOMEM;
		else if (newline)
			err = lines__end(l, fn, arg);
		bytes += part + (newline ? 1 : 0);
	}
	return err;
}

void lines__free(struct lines *l)
{
	strbuf__free(&l->part);
}
