// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/form.h"

#include "base/strbuf.h"
#include "read/lines.h"
#include "read/scan.h"

#include <errno.h>
#include <stdlib.h>

struct eu {
	struct gdb_reader *gdb; /* collects the stacks */
	struct strbuf frame;	/* may go on in the next line */
};

static void eu_destroy(void *form)
{
	struct eu *eu = form;

	if (!eu)
		return;
	gdb_reader__free(eu->gdb);
	strbuf__free(&eu->frame);
	free(eu);
}

static void *eu_create(stack_fn fn, void *arg)
{
	struct eu *eu = calloc(1, sizeof(*eu));

	if (!eu)
		return NULL;
	eu->gdb = gdb_reader__new(fn, arg);
	if (!eu->gdb) {
		eu_destroy(eu);
		return NULL;
	}
	return eu;
}

static int pass_on(struct eu *eu, struct text line)
{
	int err = gdb_reader__feed(eu->gdb, line.str, line.len);

	return err ? err : gdb_reader__feed(eu->gdb, "\n", 1);
}

static int end_frame(struct eu *eu)
{
	int err = eu->frame.len ? pass_on(eu, (struct text){eu->frame.data, eu->frame.len}) : 0;

	strbuf__reset(&eu->frame);
	return err;
}

/* `#1  0x000055d0 - 1 main - /usr/bin/x`: without the activation mark, and with `??()` in the
 * place of a name that is not there. */
static int begin_frame(struct eu *eu, struct text line)
{
	struct text rest = line, word, behind, second;

	scan__word(&rest);
	word = scan__word(&rest);
	if (!scan__starts(word, "0x"))
		return strbuf__append(&eu->frame, line.str, line.len);
	strbuf__append(&eu->frame, line.str, (size_t)(rest.str - line.str));
	behind = rest;
	word = scan__word(&behind);
	second = behind;
	if (scan__is(word, "-") && scan__is(scan__word(&second), "1")) {
		rest = second;
		behind = second;
		word = scan__word(&behind);
	}
	if (!word.len || scan__is(word, "-"))
		strbuf__append_str(&eu->frame, " ??"
					       "()");
	strbuf__append(&eu->frame, rest.str, rest.len);
	return eu->frame.failed ? -ENOMEM : 0;
}

static int eu_line(void *form, struct text line)
{
	struct eu *eu = form;
	int err;

	if (eu->frame.len && line.len && scan__blank(line.str[0])) {
		if (scan__starts(scan__trim(line), "[")) /* a build id */
			return 0;
		if (line.len > LINES_LINE_MAX - eu->frame.len)
			return -E2BIG;
		return strbuf__append(&eu->frame, line.str + 1, line.len - 1);
	}
	err = end_frame(eu);
	if (err)
		return err;
	return scan__starts(line, "#") ? begin_frame(eu, line) : pass_on(eu, line);
}

static int eu_end_file(void *form)
{
	return end_frame(form);
}

static int eu_finish(void *form)
{
	struct eu *eu = form;

	return gdb_reader__finish(eu->gdb);
}

const struct form form_eu = {
	.create = eu_create,
	.line = eu_line,
	.end_file = eu_end_file,
	.finish = eu_finish,
	.destroy = eu_destroy,
};
