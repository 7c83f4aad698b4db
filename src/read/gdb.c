// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/gdb.h"

#include "base/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum line_kind { LINE_OTHER, LINE_FRAME, LINE_HEADER, LINE_UNDECIDED };

struct gdb_reader {
	stack_fn fn;
	void *arg;
	int err; /* what ended the reading */
	/* header and frames of the current stack, one after the other without newlines, then
	 * the part of a line that has come so far */
	struct strbuf text;
	size_t line_start;
	size_t header_len;
	struct text *frames; /* only the lengths: the text still moves */
	size_t n_frames;
	size_t capacity;
	bool skipping; /* up to the next newline */
};

struct gdb_reader *gdb_reader__new(stack_fn fn, void *arg)
{
	struct gdb_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->fn = fn;
	r->arg = arg;
	return r;
}

void gdb_reader__free(struct gdb_reader *r)
{
	if (!r)
		return;
	strbuf__free(&r->text);
	free(r->frames);
	free(r);
}

static enum line_kind classify(const char *line, size_t len, bool whole)
{
	static const char *const headers[] = {"Thread", "TID"};

	if (len && line[0] == '#')
		return LINE_FRAME;
	if (len && line[0] != 'T')
		return LINE_OTHER;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		size_t n = strlen(headers[i]);

		if (len >= n && memcmp(line, headers[i], n) == 0)
			return LINE_HEADER;
		if (!whole && len < n && memcmp(line, headers[i], len) == 0)
			return LINE_UNDECIDED;
	}
	return LINE_OTHER;
}

/* Hand the current stack out; what follows it in the buffer moves to the front. */
static int emit(struct gdb_reader *r, bool last)
{
	struct stack stack = {
		.header = {r->text.data, r->header_len},
		.frames = r->frames,
		.n_frames = r->n_frames,
		.count = 1,
		.last = last,
	};
	const char *p = r->text.data;
	size_t rest = r->text.len - r->line_start;
	int err = 0;

	if (r->header_len || r->n_frames) {
		p += r->header_len;
		for (size_t i = 0; i < r->n_frames; i++) {
			r->frames[i].str = p;
			p += r->frames[i].len;
		}
		err = r->fn(&stack, r->arg);
	}
	if (rest)
		memmove(r->text.data, r->text.data + r->line_start, rest);
	r->text.len = rest;
	r->line_start = 0;
	r->header_len = 0;
	r->n_frames = 0;
	return err;
}

static int add_frame(struct gdb_reader *r, size_t len)
{
	if (r->n_frames == r->capacity) {
		size_t capacity = r->capacity ? r->capacity * 2 : 64;
		struct text *frames = reallocarray(r->frames, capacity, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		r->frames = frames;
		r->capacity = capacity;
	}
	r->frames[r->n_frames++].len = len;
	r->line_start = r->text.len;
	return 0;
}

static int end_line(struct gdb_reader *r)
{
	size_t len = r->text.len - r->line_start;
	int err;

	if (r->skipping) {
		r->skipping = false;
		return 0;
	}
	if (!len)
		return 0;
	switch (classify(r->text.data + r->line_start, len, true)) {
	case LINE_FRAME:
		return add_frame(r, len);
	case LINE_HEADER:
		err = emit(r, false);
		r->header_len = len;
		r->line_start = len;
		return err;
	default:
		r->text.len = r->line_start;
		return 0;
	}
}

/* Keep what has come of a line, unless its start already says that it is not wanted. */
static int add_part(struct gdb_reader *r, const char *bytes, size_t len)
{
	size_t have = r->text.len - r->line_start;

	if (r->skipping)
		return 0;
	if (have == 0 && classify(bytes, len, false) == LINE_OTHER)
		goto skip;
	if (len > GDB_READER_LINE_MAX - have ||
	    r->text.len + len + r->n_frames * sizeof(struct text) > GDB_READER_STACK_MAX)
		return -E2BIG;
	if (strbuf__append(&r->text, bytes, len))
		return -ENOMEM;
	if (have && classify(r->text.data + r->line_start, have + len, false) == LINE_OTHER)
		goto skip;
	return 0;
skip:
	r->text.len = r->line_start;
	r->skipping = true;
	return 0;
}

int gdb_reader__feed(struct gdb_reader *r, const char *bytes, size_t len)
{
	const char *end = bytes + len;

	while (!r->err && bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t part = (size_t)((newline ? newline : end) - bytes);

		if (part)
			r->err = add_part(r, bytes, part);
		if (!r->err && newline)
			r->err = end_line(r);
		bytes += part + (newline ? 1 : 0);
	}
	return r->err;
}

int gdb_reader__finish(struct gdb_reader *r)
{
	if (!r->err && r->text.len > r->line_start)
		r->err = end_line(r);
	if (!r->err)
		r->err = emit(r, true);
	return r->err;
}
