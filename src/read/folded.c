// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/form.h"

#include "read/sample.h"
#include "read/scan.h"

#include <errno.h>
#include <stdlib.h>

static void *folded_create(stack_fn fn, void *arg)
{
	struct sample *s = calloc(1, sizeof(*s));

	if (s)
		*s = (struct sample){.fn = fn, .arg = arg};
	return s;
}

static void folded_destroy(void *form)
{
	if (form)
		sample__free(form);
	free(form);
}

/* `_[k]` and the like, which colour a flame graph */
static struct text cut_mark(struct text name)
{
	if (name.len > 4 && name.str[name.len - 1] == ']' && name.str[name.len - 3] == '[' &&
	    name.str[name.len - 4] == '_')
		name.len -= 4;
	return name;
}

/* `f(libc.so.6)` or `f(poll.c:29)`, as pt-pmp's rules leave it: the same text comes of `??`, of
 * templates and all else that they have been through once, so it can be printed as it is. */
static bool has_file(struct text name)
{
	const char *open = name.len ? memrchr(name.str, '(', name.len) : NULL;
	struct text file;
	uint64_t value;
	const char *colon;

	if (!open || open == name.str || !scan__ends(name, ")"))
		return false;
	for (const char *p = name.str; p < open; p++) {
		if (scan__blank(*p))
			return false;
	}
	if (scan__holds(scan__until(name, (size_t)(open - name.str)), "0x"))
		return false;
	file = (struct text){open + 1, (size_t)(name.str + name.len - 2 - open)};
	for (size_t i = 0; i < file.len; i++) {
		if (strchr("()<>,*& ", file.str[i]))
			return false;
	}
	colon = file.len ? memrchr(file.str, ':', file.len) : NULL;
	return scan__holds(file, ".so") ||
	       (colon && scan__number(scan__from(file, (size_t)(colon + 1 - file.str)), &value));
}

static int add_frame(struct sample *s, struct text name)
{
	const char *open;
	int err;

	name = cut_mark(scan__trim(name));
	if (has_file(name)) {
		struct strbuf line = STRBUF_INIT;

		/* gdb's line that these rules make the same name of */
		open = memrchr(name.str, '(', name.len);
		strbuf__append_str(&line, "#0  ");
		strbuf__append(&line, name.str, (size_t)(open - name.str));
		strbuf__append_str(&line, " at /");
		strbuf__append(&line, open + 1, (size_t)(name.str + name.len - 2 - open));
		err = line.failed ? -ENOMEM
				  : sample__add_line(s, (struct text){line.data, line.len});
		strbuf__free(&line);
		return err;
	}
	/* `[libc.so.6]`: a function of that library */
	if (name.len > 2 && name.str[0] == '[' && scan__ends(name, "]") &&
	    !scan__is(name, "[unknown]") && memchr(name.str, '.', name.len))
		return sample__add(s, TEXT_NONE, (struct text){name.str + 1, name.len - 2});
	return sample__add(s, name, TEXT_NONE);
}

static bool is_separator(struct text name)
{
	return scan__is(name, "-") || scan__is(name, "--");
}

int folded__line(struct sample *s, struct text line, bool comm_first)
{
	struct text frames, comm = TEXT_NONE;
	uint64_t count;
	int err = 0;

	if (!scan__count(line, &frames, &count))
		return 0;
	if (comm_first) {
		const char *semicolon = memchr(frames.str, ';', frames.len);

		comm = semicolon ? scan__until(frames, (size_t)(semicolon - frames.str)) : frames;
		frames = semicolon ? scan__from(frames, comm.len + 1) : TEXT_NONE;
		err = sample__set_thread(s, TEXT_NONE, comm);
		if (!semicolon)
			return err;
	}
	for (size_t end = frames.len, start; !err; end = start - 1) {
		for (start = end; start && frames.str[start - 1] != ';';)
			start--;
		/* bcc's -d puts a dash between kernel and user */
		if (!comm_first || !is_separator((struct text){frames.str + start, end - start}))
			err = add_frame(s, (struct text){frames.str + start, end - start});
		if (!start)
			break;
	}
	return err ? err : sample__emit(s, count);
}

static int folded_line(void *form, struct text line)
{
	return scan__starts(line, "#") ? 0 : folded__line(form, line, false);
}

static int folded_end_file(void *form)
{
	return 0;
}

const struct form form_folded = {
	.create = folded_create,
	.line = folded_line,
	.end_file = folded_end_file,
	.destroy = folded_destroy,
};
