// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/form.h"

#include "read/sample.h"
#include "read/scan.h"

#include <stdlib.h>

static void *perf_create(stack_fn fn, void *arg)
{
	struct sample *s = calloc(1, sizeof(*s));

	if (s)
		*s = (struct sample){.fn = fn, .arg = arg};
	return s;
}

static void perf_destroy(void *form)
{
	if (form)
		sample__free(form);
	free(form);
}

/* `ADDRESS symbol+0xoff (object)`; anything else under a sample is a source line */
static int add_frame(struct sample *s, struct text line)
{
	struct text rest = line, object = TEXT_NONE;

	if (!scan__hex(scan__word(&rest), 1))
		return 0;
	rest = scan__trim(rest);
	scan__object(&rest, &object);
	return sample__add(s, rest, object);
}

/* `77` or `70/77`: the thread is the last number */
static bool parse_tid(struct text word, struct text *ret_tid)
{
	const char *slash = word.len ? memchr(word.str, '/', word.len) : NULL;
	uint64_t value;

	if (slash) {
		if (!scan__number(scan__until(word, (size_t)(slash - word.str)), &value))
			return false;
		word = scan__from(word, (size_t)(slash + 1 - word.str));
	}
	*ret_tid = word;
	return scan__number(word, &value);
}

/* A comm may hold blanks and numbers: the id is the first number that has a time, a CPU or an
 * event behind it. */
static bool follows_tid(struct text rest)
{
	struct text word = scan__word(&rest);

	return scan__ends(word, ":") || scan__starts(word, "[") ||
	       (scan__digit(word.len ? word.str[0] : '\0') && scan__ends(scan__word(&rest), ":"));
}

static int begin_sample(struct sample *s, struct text line)
{
	struct text rest = scan__trim(line), tid, word;
	const char *start = rest.str;
	uint64_t value;
	int err;

	scan__word(&rest); /* of the comm */
	while (rest.len) {
		struct text comm = {start, (size_t)(rest.str - start)};

		word = scan__word(&rest);
		if (!parse_tid(word, &tid) || !follows_tid(rest))
			continue;
		err = sample__set_thread(s, tid, comm);
		if (err)
			return err;
		break;
	}
	/* behind time, period and event there may be the only frame */
	while (rest.len) {
		word = scan__word(&rest);
		if (scan__ends(word, ":") && !scan__digit(word.str[0])) {
			struct text frame = rest;

			word = scan__word(&frame);
			if (scan__hex(word, 4) && !scan__number(word, &value))
				return add_frame(s, rest);
			if (scan__hex(word, 4) && scan__ends(rest, ")"))
				return add_frame(s, rest);
			return 0;
		}
	}
	return 0;
}

static int perf_line(void *form, struct text line)
{
	struct sample *s = form;
	int err;

	if (!scan__trim(line).len)
		return sample__emit(s, 1);
	if (line.str[0] == '\t')
		return add_frame(s, line);
	if (line.str[0] == '#' || (s->n_frames && scan__blank(line.str[0])))
		return 0;
	err = sample__emit(s, 1);
	if (!err)
		err = begin_sample(s, line);
	/* a frame on this line is the only one */
	return err || !s->n_frames ? err : sample__emit(s, 1);
}

static int perf_end_file(void *form)
{
	return sample__emit(form, 1);
}

const struct form form_perf = {
	.create = perf_create,
	.line = perf_line,
	.end_file = perf_end_file,
	.destroy = perf_destroy,
};
