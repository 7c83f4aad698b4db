// SPDX-License-Identifier: GPL-2.0-or-later
#include "fold/shorten.h"

#include "base/strbuf.h"
#include "fold/name_cache.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define UNMATCHED UINT32_MAX
#define N_FIELDS  5

/* A '<' or '>' of a name, for shorten_templates(). */
struct bracket {
	uint32_t pos;
	uint32_t match;	 /* the other one of the pair; while a '<' is open, the one around it */
	uint32_t height; /* pairs nested in it and itself; UNMATCHED if it stays for good */
	/* What follows once the pairs right behind it are gone: the highest of those pairs, and
	 * the position and the bracket after them. */
	uint32_t gap_height;
	uint32_t gap_pos;
	uint32_t gap_bracket;
	uint32_t reach; /* not this bracket's: see shorten_templates() */
};

struct shortener {
	enum shorten_dialect dialect;
	struct strbuf name;
	struct strbuf file; /* the carried file after its last '/' */
	bool has_path;	    /* the carried file starts with '/' */
	/* in which the carried file still lies; NULL: it is in `file` */
	const struct name_entry *carrier;
	struct name_cache *cache;
	struct bracket *brackets;
	size_t capacity;
};

struct shortener *shortener__new(enum shorten_dialect dialect)
{
	struct shortener *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->dialect = dialect;
	s->cache = name_cache__new();
	if (!s->cache) {
		free(s);
		return NULL;
	}
	return s;
}

void shortener__free(struct shortener *s)
{
	if (!s)
		return;
	strbuf__free(&s->name);
	strbuf__free(&s->file);
	name_cache__free(s->cache);
	free(s->brackets);
	free(s);
}

/* memmem() for needles of a few bytes: no tables to set up. */
static const char *find(const char *str, size_t len, const char *needle)
{
	size_t n = strlen(needle);
	const char *end = str + len;

	while ((size_t)(end - str) >= n) {
		str = memchr(str, needle[0], (size_t)(end - str) - n + 1);
		if (!str)
			return NULL;
		if (memcmp(str, needle, n) == 0)
			return str;
		str++;
	}
	return NULL;
}

static bool holds(struct text t, const char *needle)
{
	return t.len && find(t.str, t.len, needle);
}

static bool holds_any(struct text t, char first, char last)
{
	for (size_t i = 0; i < t.len; i++) {
		if (t.str[i] >= first && t.str[i] <= last)
			return true;
	}
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The first fields (those the line has not are empty) and the last one. */
static void split(struct text line, struct text fields[N_FIELDS], struct text *ret_last)
{
	const char *p = line.str, *end = line.str + line.len;

	for (size_t i = 0; i < N_FIELDS; i++) {
		while (p < end && is_blank(*p))
			p++;
		fields[i].str = p;
		while (p < end && !is_blank(*p))
			p++;
		fields[i].len = (size_t)(p - fields[i].str);
	}
	while (end > line.str && is_blank(end[-1]))
		end--;
	p = end;
	while (p > line.str && !is_blank(p[-1]))
		p--;
	*ret_last = (struct text){p, (size_t)(end - p)};
}

static int reserve_brackets(struct shortener *s, size_t n)
{
	size_t capacity = s->capacity ? s->capacity : 64;
	struct bracket *brackets;

	if (n <= s->capacity)
		return 0;
	while (capacity < n)
		capacity *= 2;
	brackets = reallocarray(s->brackets, capacity, sizeof(*brackets));
	if (!brackets)
		return -ENOMEM;
	s->brackets = brackets;
	s->capacity = capacity;
	return 0;
}

/* List the brackets, pair them and say how high each pair is. */
static int find_brackets(struct shortener *s, size_t *ret_n, uint32_t *ret_top)
{
	uint32_t open = UNMATCHED, top = 0;
	struct bracket *b;
	size_t n = 0;

	for (size_t i = 0; i < s->name.len; i++) {
		if (s->name.data[i] != '<' && s->name.data[i] != '>')
			continue;
		if (reserve_brackets(s, n + 1))
			return -ENOMEM;
		b = s->brackets;
		b[n] = (struct bracket){.pos = (uint32_t)i, .match = UNMATCHED};
		if (s->name.data[i] == '<') {
			b[n].match = open;
			open = (uint32_t)n;
		} else if (open == UNMATCHED) {
			b[n].height = UNMATCHED;
		} else {
			uint32_t around = b[open].match;

			b[open].height++;
			b[n].height = b[open].height;
			b[n].match = open;
			b[open].match = (uint32_t)n;
			if (b[n].height > top)
				top = b[n].height;
			if (around != UNMATCHED && b[around].height < b[n].height)
				b[around].height = b[n].height;
			open = around;
		}
		n++;
	}
	while (open != UNMATCHED) {
		b = &s->brackets[open];
		open = b->match;
		b->match = UNMATCHED;
		b->height = UNMATCHED;
	}
	*ret_n = n;
	*ret_top = top;
	return 0;
}

struct gap {
	uint32_t height;
	uint32_t pos;
	uint32_t bracket;
};

/* What follows a position, given the first bracket at or after it, when pairs there are gone. */
static struct gap skip_pairs(const struct bracket *b, size_t n, uint32_t pos, uint32_t bracket)
{
	struct gap gap = {.pos = pos, .bracket = bracket};
	const struct bracket *close;

	if (bracket >= n || b[bracket].pos != pos || b[bracket].match == UNMATCHED ||
	    b[bracket].match < bracket)
		return gap;
	close = &b[b[bracket].match];
	gap.height = close->height > close->gap_height ? close->height : close->gap_height;
	gap.pos = close->gap_pos;
	gap.bracket = close->gap_bracket;
	return gap;
}

/*
 * "While it holds `>::`, remove every innermost <...>" without the passes. Pass k removes the
 * pairs of height k. A '>' of height h is there before pass h, and it has "::" behind it as soon
 * as the pairs between them are gone, after pass m of the highest. So each '>' with "::" behind
 * it keeps the loop going after the passes m to h - 1, and the loop ends with the first pass
 * that no '>' covers. reach[m] is the highest h that starts at m.
 */
static int shorten_templates(struct shortener *s)
{
	uint32_t top, last_pass = 0, reach = 0;
	size_t n, out = 0, from = 0;
	struct bracket *b;
	char *str = s->name.data;

	if (!find(str, s->name.len, ">::"))
		return 0;
	if (find_brackets(s, &n, &top))
		return -ENOMEM;
	b = s->brackets;
	for (size_t i = n; top && i-- > 0;) {
		struct gap gap;

		if (str[b[i].pos] == '<')
			continue;
		gap = skip_pairs(b, n, b[i].pos + 1, (uint32_t)i + 1);
		b[i].gap_height = gap.height;
		b[i].gap_pos = gap.pos;
		b[i].gap_bracket = gap.bracket;
		if (str[gap.pos] != ':')
			continue;
		gap = skip_pairs(b, n, gap.pos + 1, gap.bracket);
		if (str[gap.pos] != ':')
			continue;
		if (gap.height < b[i].gap_height)
			gap.height = b[i].gap_height;
		if (gap.height < b[i].height && b[gap.height].reach < b[i].height)
			b[gap.height].reach = b[i].height;
	}
	for (; last_pass < top; last_pass++) {
		if (reach < b[last_pass].reach)
			reach = b[last_pass].reach;
		if (reach <= last_pass)
			break;
	}
	for (size_t i = 0; last_pass && i < n; i++) {
		if (str[b[i].pos] != '<' || b[i].height > last_pass)
			continue;
		memmove(str + out, str + from, b[i].pos - from);
		out += b[i].pos - from;
		i = b[i].match;
		from = b[i].pos + 1;
	}
	memmove(str + out, str + from, s->name.len - from + 1);
	s->name.len = out + (s->name.len - from);
	return 0;
}

/* "While it holds `(`, remove every innermost (...)": in the end every pair is gone. */
static int remove_arguments(struct shortener *s)
{
	char *str = s->name.data;
	size_t n = 0, out = 0;

	for (size_t i = 0; i < s->name.len; i++) {
		if (str[i] == '(') {
			if (reserve_brackets(s, n + 1))
				return -ENOMEM;
			s->brackets[n++].pos = (uint32_t)out;
		} else if (str[i] == ')' && n) {
			out = s->brackets[--n].pos;
			continue;
		}
		str[out++] = str[i];
	}
	s->name.len = out;
	return 0;
}

static void remove_decorators(struct strbuf *name)
{
	const char *end = name->data + name->len;
	char *out = name->data;

	for (const char *p = name->data; p < end;) {
		if (*p == 'v' && end - p >= 4 && memcmp(p, "void", 4) == 0)
			p += 4;
		else if (*p == 'c' && end - p >= 5 && memcmp(p, "const", 5) == 0)
			p += 5;
		else if (*p == ' ')
			p++;
		else
			*out++ = *p++;
	}
	name->len = (size_t)(out - name->data);
	*out = '\0';
}

/* The text that gdb's whole-line rule starts from. */
static struct text whole_line(struct text line)
{
	const char *in = find(line.str, line.len, " in "), *cut;
	/* without it, index() is 0 and the text starts at character 4 */
	size_t skip = in ? (size_t)(in - line.str) + 4 : 3;

	if (skip > line.len)
		skip = line.len;
	line.str += skip;
	line.len -= skip;
	cut = find(line.str, line.len, " from ");
	if (cut)
		line.len = (size_t)(cut - line.str);
	cut = find(line.str, line.len, " at ");
	if (cut)
		line.len = (size_t)(cut - line.str);
	return line;
}

/* A function with '<' or '(' in it, into s->name. */
static int shorten_cplusplus(struct shortener *s, struct text line, struct text function)
{
	int err;

	if (s->dialect == SHORTEN_GDB) {
		function = whole_line(line);
	} else {
		const char *cut = memchr(function.str, '(', function.len);

		if (cut)
			function.len = (size_t)(cut - function.str);
	}
	err = strbuf__append(&s->name, function.str, function.len);
	if (!err)
		err = shorten_templates(s);
	if (!err)
		err = remove_arguments(s);
	if (!err)
		remove_decorators(&s->name);
	return err;
}

/* The name of a function in a library without symbols, into s->name. */
static int name_library(struct shortener *s, struct text library)
{
	const char *slash = memrchr(library.str, '/', library.len), *dot;

	if (slash) {
		library.len -= (size_t)(slash + 1 - library.str);
		library.str = slash + 1;
	}
	dot = memchr(library.str, '.', library.len);
	strbuf__append(&s->name, library.str, dot ? (size_t)(dot - library.str) : 0);
	strbuf__append_str(&s->name, "::??");
	return s->name.failed ? -ENOMEM : 0;
}

static int carry_file(struct shortener *s, struct text file)
{
	const char *slash;

	s->has_path = file.len && file.str[0] == '/';
	if (!s->has_path)
		return 0;
	slash = memrchr(file.str, '/', file.len);
	strbuf__reset(&s->file);
	return strbuf__append(&s->file, slash + 1, (size_t)(file.str + file.len - slash - 1));
}

/*
 * What decides about a frame of the usual form `#N  0xADDRESS in REST`, but for the carried names:
 * the rest, and whether the address holds a digit from 1 to 9. False: it is of another form.
 */
static bool usual_form(struct text line, struct text *ret_rest, bool *ret_digit)
{
	const char *p = line.str, *end = p + line.len;
	bool digit = false;

	/* '#' is there already */
	for (p++; p < end && *p >= '0' && *p <= '9'; p++)
		;
	if (p == line.str + 1 || end - p < 8 || *p != ' ')
		return false;
	while (p < end && *p == ' ')
		p++;
	if (end - p < 8 || p[0] != '0' || p[1] != 'x')
		return false;
	for (p += 2; p < end && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f')); p++)
		digit = digit || (*p >= '1' && *p <= '9');
	if (end - p < 4 || memcmp(p, " in ", 4) != 0)
		return false;
	p += 4;
	*ret_rest = (struct text){p, (size_t)(end - p)};
	*ret_digit = digit;
	return true;
}

static int fetch_carried(struct shortener *s)
{
	const struct name_entry *carrier = s->carrier;

	s->carrier = NULL;
	if (!carrier || !s->has_path)
		return 0;
	strbuf__reset(&s->file);
	return strbuf__append(&s->file, carrier->file.str, carrier->file.len);
}

/* The whole of the rules. *ret_carried: the result depends on frames before. */
static int shorten(struct shortener *s, struct text line, struct text *ret_name, bool *ret_carried)
{
	struct text fields[N_FIELDS], last, function;
	bool has_address, keeps_file = false;
	const char *version;
	int err = 0;

	split(line, fields, &last);
	has_address = holds(fields[1], "0x");
	if (!has_address) {
		function = fields[1];
	} else if (s->dialect == SHORTEN_EU) {
		function = fields[2];
	} else {
		keeps_file = holds(fields[3], "void") || holds(fields[3], "const");
		function = fields[keeps_file ? 4 : 3];
	}
	*ret_carried = keeps_file;
	if (!keeps_file && carry_file(s, last))
		return -ENOMEM;

	strbuf__reset(&s->name);
	if (has_address && (holds_any(function, '<', '<') || holds_any(function, '(', '(')))
		err = shorten_cplusplus(s, line, function);
	else if (has_address && holds(function, "??") && holds_any(fields[1], '1', '9'))
		err = name_library(s, last);
	else
		err = strbuf__append(&s->name, function.str, function.len);
	if (err)
		return err;

	version = find(s->name.data, s->name.len, "@@");
	if (version) {
		s->name.len = (size_t)(version - s->name.data);
	} else if (s->has_path) {
		strbuf__append_char(&s->name, '(');
		strbuf__append(&s->name, s->file.data, s->file.len);
		strbuf__append_char(&s->name, ')');
		if (s->name.failed)
			return -ENOMEM;
	}
	*ret_name = (struct text){s->name.data, s->name.len};
	return 0;
}

int shortener__frame(struct shortener *s, struct text line, struct text *ret_name)
{
	const struct name_entry *known = NULL;
	bool digit = false, usual, carried = true;
	struct text rest;
	int err;

	if (line.len >= UINT32_MAX)
		return -E2BIG;
	usual = s->dialect != SHORTEN_EU && usual_form(line, &rest, &digit);
	if (usual)
		known = name_cache__find(s->cache, rest, digit);
	if (known) {
		s->has_path = known->has_path;
		s->carrier = known;
		*ret_name = known->name;
		return 0;
	}
	err = fetch_carried(s);
	if (!err)
		err = shorten(s, line, ret_name, &carried);
	if (!err && usual && !carried)
		name_cache__put(s->cache, rest, digit,
				&(struct name_entry){
					.name = *ret_name,
					.file = {s->file.data, s->file.len},
					.has_path = s->has_path,
				});
	return err;
}
