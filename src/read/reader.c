// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/reader.h"

#include "base/strbuf.h"
#include "read/detect.h"
#include "read/form.h"
#include "read/lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	stack_fn fn;
	void *arg;
	int err; /* what ended the reading */
	enum input_format wanted;
	enum input_format format;
	struct gdb_reader *gdb; /* INPUT_GDB */
	void *form;		/* all others */
	struct lines lines;
	bool settled;	      /* this FILE's format */
	bool in_line;	      /* the last byte was no newline */
	struct strbuf prefix; /* what came of this FILE before it was settled */
	size_t looked_at;     /* the whole lines in it */
	struct detect detect;
};

static const struct {
	const char *name;
	enum input_format format;
} names[] = {
	{"auto", INPUT_AUTO},	      {"gdb", INPUT_GDB},  {"eu", INPUT_EU},
	{"bpftrace", INPUT_BPFTRACE}, {"bcc", INPUT_BCC},  {"perf", INPUT_PERF},
	{"folded", INPUT_FOLDED},     {"pmp", INPUT_PMP},  {"pstack", INPUT_GDB},
	{"gstack", INPUT_GDB},	      {"pteu", INPUT_GDB},
};

static const struct form *const forms[] = {
	[INPUT_EU] = &form_eu,	   [INPUT_BPFTRACE] = &form_bpftrace, [INPUT_BCC] = &form_bcc,
	[INPUT_PERF] = &form_perf, [INPUT_FOLDED] = &form_folded,     [INPUT_PMP] = &form_pmp,
};

int input_format__parse(const char *name, enum input_format *ret_format)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i].name) == 0) {
			*ret_format = names[i].format;
			return 0;
		}
	}
	return -EINVAL;
}

const char *input_format__name(enum input_format format)
{
	return names[format].name;
}

struct reader *reader__new(enum input_format format, stack_fn fn, void *arg)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->fn = fn;
	r->arg = arg;
	r->wanted = format;
	return r;
}

static void close_form(struct reader *r)
{
	if (r->form)
		forms[r->format]->destroy(r->form);
	gdb_reader__free(r->gdb);
	r->form = NULL;
	r->gdb = NULL;
}

void reader__free(struct reader *r)
{
	if (!r)
		return;
	close_form(r);
	lines__free(&r->lines);
	strbuf__free(&r->prefix);
	free(r);
}

/* The stacks of the format so far are over. */
static int finish_form(struct reader *r)
{
	int err = 0;

	if (r->gdb)
		err = gdb_reader__finish(r->gdb);
	else if (r->form && forms[r->format]->finish)
		err = forms[r->format]->finish(r->form);
	close_form(r);
	return err;
}

static int pass_on(struct reader *r, const char *bytes, size_t len)
{
	if (!len)
		return 0;
	r->in_line = bytes[len - 1] != '\n';
	if (r->gdb)
		return gdb_reader__feed(r->gdb, bytes, len);
	return lines__feed(&r->lines, bytes, len, forms[r->format]->line, r->form);
}

static int settle(struct reader *r, enum input_format format)
{
	int err;

	if (r->format != format || (!r->gdb && !r->form)) {
		err = finish_form(r);
		if (err)
			return err;
		r->format = format;
		if (format == INPUT_GDB)
			r->gdb = gdb_reader__new(r->fn, r->arg);
		else
			r->form = forms[format]->create(r->fn, r->arg);
		if (!r->gdb && !r->form)
			return -ENOMEM;
	}
	r->settled = true;
	err = pass_on(r, r->prefix.data, r->prefix.len);
	strbuf__free(&r->prefix);
	r->looked_at = 0;
	return err;
}

static enum input_format look_at_line(struct reader *r, size_t end)
{
	struct text line = {r->prefix.data + r->looked_at, end - r->looked_at};

	if (line.len && line.str[line.len - 1] == '\r')
		line.len--;
	return detect__line(&r->detect, line);
}

/* What the lines say that have come; at the end of the FILE or of the prefix, that is final. */
static enum input_format look(struct reader *r, bool final)
{
	enum input_format format = r->wanted;

	while (format == INPUT_AUTO && r->looked_at < r->prefix.len) {
		const char *newline = memchr(r->prefix.data + r->looked_at, '\n',
					     r->prefix.len - r->looked_at);
		size_t end = newline ? (size_t)(newline - r->prefix.data) : r->prefix.len;

		if (!newline && !final)
			return INPUT_AUTO;
		format = look_at_line(r, end);
		r->looked_at = end + (newline ? 1 : 0);
	}
	return format == INPUT_AUTO && final ? detect__end(&r->detect) : format;
}

static int feed(struct reader *r, const char *bytes, size_t len)
{
	while (len && !r->settled) {
		size_t room = READER_PREFIX_MAX - r->prefix.len, n = len < room ? len : room;
		bool look_now = r->wanted != INPUT_AUTO || n == room || memchr(bytes, '\n', n);
		enum input_format format;
		int err;

		if (strbuf__append(&r->prefix, bytes, n))
			return -ENOMEM;
		bytes += n;
		len -= n;
		if (!look_now)
			continue;
		format = look(r, r->prefix.len == READER_PREFIX_MAX);
		if (format == INPUT_AUTO)
			continue;
		err = settle(r, format);
		if (err)
			return err;
	}
	return pass_on(r, bytes, len);
}

static int end_file(struct reader *r)
{
	int err = 0;

	if (!r->settled && r->prefix.len)
		err = settle(r, look(r, true));
	if (!err && r->gdb && r->in_line)
		err = gdb_reader__feed(r->gdb, "\n", 1);
	if (!err && r->form)
		err = lines__end(&r->lines, forms[r->format]->line, r->form);
	if (!err && r->form)
		err = forms[r->format]->end_file(r->form);
	r->settled = false;
	r->in_line = false;
	r->detect = (struct detect){0};
	return err;
}

int reader__feed(struct reader *r, const char *bytes, size_t len)
{
	if (!r->err)
		r->err = feed(r, bytes, len);
	return r->err;
}

int reader__next_file(struct reader *r)
{
	if (!r->err)
		r->err = end_file(r);
	return r->err;
}

int reader__finish(struct reader *r)
{
	if (!r->err)
		r->err = end_file(r);
	if (!r->err)
		r->err = finish_form(r);
	return r->err;
}

enum input_format reader__format(const struct reader *r)
{
	return r->format;
}
