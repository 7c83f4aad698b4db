// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/sample.h"

#include "read/scan.h"
#include "read/symbol.h"

#include <errno.h>
#include <stdlib.h>

#define FRAME_EXTRA 64 /* bytes around the name in a line */

void sample__free(struct sample *s)
{
	strbuf__free(&s->header);
	strbuf__free(&s->text);
	free(s->frames);
}

void sample__drop(struct sample *s)
{
	strbuf__reset(&s->header);
	strbuf__reset(&s->text);
	s->n_frames = 0;
}

int sample__set_thread(struct sample *s, struct text lwp, struct text name)
{
	strbuf__reset(&s->header);
	strbuf__append_str(&s->header, "Thread (LWP ");
	strbuf__append(&s->header, lwp.str, lwp.len);
	if (name.len) {
		strbuf__append_str(&s->header, " \"");
		strbuf__append(&s->header, name.str, name.len);
		strbuf__append_str(&s->header, "\"");
	}
	strbuf__append_str(&s->header, "):");
	return s->header.failed ? -ENOMEM : 0;
}

static int check_room(const struct sample *s, size_t len)
{
	size_t used = s->text.len + s->n_frames * sizeof(struct text);

	return len > SAMPLE_MAX - FRAME_EXTRA || used > SAMPLE_MAX - FRAME_EXTRA - len ? -E2BIG : 0;
}

/* What was appended to the text since `start` is a frame. */
static int end_frame(struct sample *s, size_t start)
{
	if (s->text.failed)
		return -ENOMEM;
	if (s->n_frames == s->capacity) {
		size_t capacity = s->capacity ? s->capacity * 2 : 64;
		struct text *frames = reallocarray(s->frames, capacity, sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		s->frames = frames;
		s->capacity = capacity;
	}
	s->frames[s->n_frames++].len = s->text.len - start;
	return 0;
}

int sample__add_line(struct sample *s, struct text line)
{
	size_t start = s->text.len;

	if (check_room(s, line.len))
		return -E2BIG;
	strbuf__append(&s->text, line.str, line.len);
	return end_frame(s, start);
}

int sample__add_short(struct sample *s, struct text name)
{
	s->shortened = true;
	return sample__add_line(s, name);
}

static bool unknown(struct text symbol)
{
	return !symbol.len || scan__is(symbol, "??") || scan__is(symbol, "[unknown]") ||
	       (scan__starts(symbol, "0x") && scan__hex(scan__from(symbol, 2), 1));
}

/* The file's name without folders, without what the kernel says of a file that is gone. */
static struct text base_name(struct text object)
{
	static const char gone[] = " (deleted)";
	const char *slash;

	if (scan__ends(object, gone))
		object.len -= strlen(gone);
	slash = object.len ? memrchr(object.str, '/', object.len) : NULL;
	return slash ? scan__from(object, (size_t)(slash + 1 - object.str)) : object;
}

static void append_unknown(struct strbuf *out, struct text object)
{
	object = base_name(object);
	if (object.len > 2 && object.str[0] == '[' && scan__ends(object, "]") &&
	    !scan__is(object, "[unknown]"))
		object = (struct text){object.str + 1, object.len - 2}; /* [kernel.kallsyms] */
	if (!object.len || scan__is(object, "[unknown]") || scan__is(object, "unknown") ||
	    scan__is(object, "inlined")) {
		strbuf__append_str(out, "??");
		return;
	}
	strbuf__append_str(out, "0x1 in ?? () from ");
	/* a blank would end the field that the library's name is taken from */
	for (size_t i = 0; i < object.len; i++)
		strbuf__append_char(out, scan__blank(object.str[i]) ? '_' : object.str[i]);
}

static bool plain(struct text name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (scan__blank(name.str[i]) || name.str[i] == '<' || name.str[i] == '(')
			return false;
	}
	return !scan__holds(name, "0x");
}

int sample__add(struct sample *s, struct text symbol, struct text object)
{
	size_t start = s->text.len;
	struct text name = symbol__name(symbol);

	if (check_room(s, name.len + object.len))
		return -E2BIG;
	strbuf__printf(&s->text, "#%zu  ", s->n_frames);
	if (unknown(name)) {
		append_unknown(&s->text, object);
	} else if (plain(name) && (s->verbatim || scan__holds(name, "??"))) {
		strbuf__append(&s->text, name.str, name.len);
	} else {
		strbuf__append_str(&s->text, "0x1 in ");
		strbuf__append(&s->text, name.str, name.len);
		strbuf__append_str(&s->text, " ()");
	}
	return end_frame(s, start);
}

static int emit(struct sample *s, uint64_t count, bool even_empty)
{
	struct stack stack = {
		.frames = s->frames,
		.n_frames = s->n_frames,
		.count = count,
		.shortened = s->shortened,
		.last = even_empty,
	};
	const char *p = s->text.data;
	int err = 0;

	if (!s->header.len)
		err = sample__set_thread(s, TEXT_NONE, TEXT_NONE);
	stack.header = (struct text){s->header.data, s->header.len};
	for (size_t i = 0; i < s->n_frames; i++) {
		s->frames[i].str = p;
		p += s->frames[i].len;
	}
	if (!err && count && (s->n_frames || even_empty))
		err = s->fn(&stack, s->arg);
	sample__drop(s);
	return err;
}

int sample__emit(struct sample *s, uint64_t count)
{
	return emit(s, count, false);
}

int sample__emit_empty(struct sample *s, uint64_t count)
{
	return emit(s, count, true);
}
