// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/form.h"

#include "read/sample.h"
#include "read/scan.h"

#include <errno.h>
#include <stdlib.h>

struct bpftrace {
	struct sample sample;
	struct strbuf keys; /* of the map entry that has begun, those that are no stacks */
	bool in_map;
	bool seen_mark; /* a '#' line, in this FILE */
};

static void *bpftrace_create(stack_fn fn, void *arg)
{
	struct bpftrace *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->sample = (struct sample){.fn = fn, .arg = arg, .verbatim = true};
	return b;
}

static void bpftrace_destroy(void *form)
{
	struct bpftrace *b = form;

	if (!b)
		return;
	sample__free(&b->sample);
	strbuf__free(&b->keys);
	free(b);
}

/* `\tADDRESS symbol+offset (object)`, or `    symbol+offset` */
static int add_frame(struct bpftrace *b, struct text line)
{
	bool has_address = line.str[0] == '\t';
	struct text symbol = scan__trim(line), rest = symbol, object = TEXT_NONE, word;

	word = scan__word(&rest);
	if (has_address && scan__hex(word, 1))
		symbol = scan__trim(rest);
	else if (scan__hex(word, 8) && !scan__trim(rest).len)
		symbol = TEXT_NONE; /* raw mode: nothing but addresses */
	scan__object(&symbol, &object);
	return sample__add(&b->sample, symbol, object);
}

static int add_key(struct bpftrace *b, struct text key)
{
	key = scan__trim(key);
	if (scan__starts(key, ", "))
		key = scan__from(key, 2);
	if (scan__ends(key, ","))
		key.len--;
	key = scan__trim(key);
	if (!key.len)
		return 0;
	if (key.len > SAMPLE_MAX - b->keys.len - 2)
		return -E2BIG;
	if (b->keys.len)
		strbuf__append_str(&b->keys, ", ");
	strbuf__append(&b->keys, key.str, key.len);
	return b->keys.failed ? -ENOMEM : 0;
}

/* Where the last `]:` of the line is. */
static const char *find_end(struct text line)
{
	for (size_t i = line.len; i-- > 1;) {
		if (line.str[i - 1] == ']' && line.str[i] == ':')
			return line.str + i - 1;
	}
	return NULL;
}

static int end_entry(struct bpftrace *b, struct text value)
{
	struct text keys = {b->keys.data, b->keys.len};
	uint64_t count = 0;
	int err;

	value = scan__trim(value);
	if (scan__starts(value, "count ")) { /* stats(): `count 5, average 2, total 10` */
		value = scan__from(value, strlen("count "));
		value = scan__word(&value);
		if (scan__ends(value, ","))
			value.len--;
	}
	b->in_map = false;
	if (!scan__number(value, &count))
		count = 0;
	err = sample__set_thread(&b->sample, TEXT_NONE, keys.len ? keys : TEXT_NONE);
	if (!err)
		err = sample__emit(&b->sample, count);
	strbuf__reset(&b->keys);
	return err;
}

static int map_line(struct bpftrace *b, struct text line)
{
	const char *end;
	int err;

	if (line.len && scan__blank(line.str[0]))
		return scan__trim(line).len ? add_frame(b, line) : 0;
	end = find_end(line);
	if (!end)
		return add_key(b, line);
	err = add_key(b, scan__until(line, (size_t)(end - line.str)));
	return err ? err : end_entry(b, scan__from(line, (size_t)(end + 2 - line.str)));
}

/* `@[` or `@name[`: the length, or 0. */
static size_t map_start(struct text line)
{
	size_t i = 1;

	if (!scan__starts(line, "@"))
		return 0;
	while (i < line.len && line.str[i] != '[' && !scan__blank(line.str[i]) &&
	       line.str[i] != ':')
		i++;
	return i < line.len && line.str[i] == '[' ? i + 1 : 0;
}

static int bpftrace_line(void *form, struct text line)
{
	struct bpftrace *b = form;
	size_t start = map_start(line);
	int err;

	if (start) {
		/* an entry that has no end was cut off: what there is of it would be a lie */
		if (b->in_map)
			sample__drop(&b->sample);
		err = sample__emit(&b->sample, 1);
		strbuf__reset(&b->keys);
		b->in_map = true;
		line = scan__from(line, start);
		if (err || !line.len || !scan__trim(line).len)
			return err;
		return map_line(b, line);
	}
	if (b->in_map)
		return map_line(b, line);
	if (scan__starts(line, "#")) {
		b->seen_mark = true;
		err = sample__emit(&b->sample, 1);
		return err ? err
			   : sample__set_thread(&b->sample, TEXT_NONE,
						scan__trim(scan__from(line, 1)));
	}
	if (!scan__trim(line).len)
		return b->seen_mark ? 0 : sample__emit(&b->sample, 1);
	return scan__blank(line.str[0]) ? add_frame(b, line) : 0;
}

static int bpftrace_end_file(void *form)
{
	struct bpftrace *b = form;

	if (b->in_map)
		sample__drop(&b->sample);
	b->in_map = false;
	b->seen_mark = false;
	strbuf__reset(&b->keys);
	return sample__emit(&b->sample, 1);
}

const struct form form_bpftrace = {
	.create = bpftrace_create,
	.line = bpftrace_line,
	.end_file = bpftrace_end_file,
	.destroy = bpftrace_destroy,
};
