// SPDX-License-Identifier: GPL-2.0-or-later
#include "fold/ere.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GROUPS_MAX 100	 /* within each other */
#define REPEAT_MAX 32767 /* as in glibc's regcomp(), which gawk uses */

/* One expression on its way from awk's syntax to PCRE's. */
struct translation {
	const char *p;
	const char *end;
	struct strbuf out;
	size_t groups[GROUPS_MAX]; /* where in `out` the open ones start */
	size_t depth;
	size_t atom;	 /* where in `out` that starts what a '*' would repeat */
	bool repeatable; /* there is such a thing; else '*' stands for itself */
	bool repeated;	 /* it is repeated already */
	const char *reason;
};

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Neither PCRE nor a bracket expression sees anything special in what this writes. */
static void put_literal(struct strbuf *out, char c)
{
	if (is_alnum(c))
		strbuf__append_char(out, c);
	else
		strbuf__printf(out, "\\x%02x", (unsigned char)c);
}

static void start_atom(struct translation *t)
{
	t->atom = t->out.len;
	t->repeatable = true;
	t->repeated = false;
}

/* An anchor or the like. At the start of an alternative a '*' behind it stands for itself. */
static void put_place(struct translation *t, const char *pcre)
{
	if (t->repeatable)
		start_atom(t);
	strbuf__printf(&t->out, "(?:%s)", pcre);
}

/*
 * What follows a backslash that stands for one character: awk knows these in strings and in
 * expressions alike. Moves *p behind it. Returns -1, with *p unmoved, where it is none of them.
 */
static int escaped_char(const char **p, const char *end)
{
	static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
	const char *s = *p, *letter;
	int value = 0, digits = 0;

	for (; digits < 3 && s < end && *s >= '0' && *s <= '7'; digits++)
		value = value * 8 + (*s++ - '0');
	if (!digits && end - s >= 2 && s[0] == 'x' && isxdigit((unsigned char)s[1])) {
		for (s++; digits < 2 && s < end && isxdigit((unsigned char)*s); digits++, s++)
			value = value * 16 +
				(is_alnum(*s) && *s <= '9' ? *s - '0' : (*s & 0xf) + 9);
	}
	if (digits) {
		*p = s;
		return value & 0xff;
	}
	letter = *s ? strchr(letters, *s) : NULL;
	if (!letter)
		return -1;
	*p = s + 1;
	return values[letter - letters];
}

int ere__unescape(struct strbuf *out, const char *str)
{
	const char *end = str + strlen(str);

	while (str < end) {
		int c;

		if (*str != '\\') {
			strbuf__append_char(out, *str++);
			continue;
		}
		if (++str == end)
			break;
		c = escaped_char(&str, end);
		strbuf__append_char(out, c < 0 ? *str++ : (char)c);
	}
	return out->failed ? -ENOMEM : 0;
}

static bool translate_escape(struct translation *t)
{
	static const struct {
		char letter;
		const char *pcre;
	} places[] = {
		{'y', "\\b"},	      {'B', "\\B"}, {'<', "\\b(?=\\w)"},
		{'>', "\\b(?<=\\w)"}, {'`', "\\A"}, {'\'', "\\z"},
	};
	int c;

	if (++t->p == t->end) {
		t->reason = "trailing backslash";
		return false;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (*t->p == places[i].letter) {
			put_place(t, places[i].pcre);
			t->p++;
			return true;
		}
	}
	start_atom(t);
	if (*t->p && strchr("wWsS", *t->p)) {
		strbuf__append_char(&t->out, '\\');
		strbuf__append_char(&t->out, *t->p++);
		return true;
	}
	c = escaped_char(&t->p, t->end);
	put_literal(&t->out, c < 0 ? *t->p++ : (char)c);
	return true;
}

/* [:class:], [.c.] or [=c=] at t->p; false with a reason, or without where it is none of them. */
static bool translate_class(struct translation *t)
{
	const char *start = t->p + 2, *p = start;
	char kind;

	if (t->end - t->p < 2 || !strchr(":.=", t->p[1]) || !t->p[1])
		return false;
	kind = t->p[1];
	while (t->end - p >= 2 && !(p[0] == kind && p[1] == ']'))
		p++;
	if (t->end - p < 2) {
		t->reason = "unmatched [";
		return false;
	}
	if (kind == ':') {
		for (const char *c = start; c < p; c++) {
			if (*c < 'a' || *c > 'z')
				t->reason = "unknown character class";
		}
		strbuf__append(&t->out, t->p, (size_t)(p + 2 - t->p));
	} else if (p == start + 1) {
		put_literal(&t->out, *start);
	} else {
		t->reason = "unknown collating element";
	}
	t->p = p + 2;
	return !t->reason;
}

static bool translate_bracket(struct translation *t)
{
	bool first = true;

	start_atom(t);
	strbuf__append_char(&t->out, *t->p++);
	if (t->p < t->end && *t->p == '^')
		strbuf__append_char(&t->out, *t->p++);
	for (; t->p < t->end; first = false) {
		int c;

		if (*t->p == ']' && !first) {
			strbuf__append_char(&t->out, *t->p++);
			return true;
		}
		if (*t->p == '[' && translate_class(t))
			continue;
		if (t->reason)
			return false;
		if (*t->p == '\\' && t->p + 1 < t->end) {
			t->p++;
			c = escaped_char(&t->p, t->end);
			put_literal(&t->out, c < 0 ? *t->p++ : (char)c);
		} else if (*t->p == '-') {
			strbuf__append_char(&t->out, *t->p++);
		} else {
			put_literal(&t->out, *t->p++);
		}
	}
	t->reason = "unmatched [";
	return false;
}

/* PCRE would take a second quantifier for lazy or possessive: the first goes into a group. */
static void repeat(struct translation *t, const char *quantifier)
{
	if (t->repeated && strbuf__append_str(&t->out, "(?:)") == 0) {
		char *atom = t->out.data + t->atom;

		memmove(atom + 3, atom, t->out.len - t->atom - 4);
		memcpy(atom, "(?:", 3);
		t->out.data[t->out.len - 1] = ')';
	}
	strbuf__append_str(&t->out, quantifier);
	t->repeated = true;
}

static const char *read_number(const char *p, const char *end, long *ret_number)
{
	long number = p < end && *p >= '0' && *p <= '9' ? 0 : -1;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		number = number > REPEAT_MAX ? number : number * 10 + (*p - '0');
	*ret_number = number;
	return p;
}

/* {m}, {m,}, {,n} or {m,n} at t->p; false with a reason, or without where it is none of them. */
static bool translate_interval(struct translation *t)
{
	long min, max;
	char text[64];
	const char *p = read_number(t->p + 1, t->end, &min);
	bool comma = p < t->end && *p == ',';

	max = min;
	if (comma)
		p = read_number(p + 1, t->end, &max);
	if (p == t->end || *p != '}')
		return false;
	if (min < 0 && !comma)
		t->reason = "invalid content of {}";
	else if (min > REPEAT_MAX || max > REPEAT_MAX)
		t->reason = "repeat count too large";
	else if (max >= 0 && min > max)
		t->reason = "invalid content of {}";
	if (t->reason)
		return false;
	if (min < 0)
		min = 0;
	if (max < 0)
		snprintf(text, sizeof(text), "{%ld,}", min);
	else
		snprintf(text, sizeof(text), "{%ld,%ld}", min, max);
	repeat(t, text);
	t->p = p + 1;
	return true;
}

static bool translate_group(struct translation *t)
{
	if (*t->p++ == '(') {
		if (t->depth == GROUPS_MAX) {
			t->reason = "too many groups within each other";
			return false;
		}
		t->groups[t->depth++] = t->out.len;
		strbuf__append_str(&t->out, "(?:");
		t->repeatable = false;
	} else if (t->depth) {
		t->atom = t->groups[--t->depth];
		strbuf__append_char(&t->out, ')');
		t->repeatable = true;
		t->repeated = false;
	} else {
		start_atom(t);
		put_literal(&t->out, ')');
	}
	return true;
}

static bool translate_next(struct translation *t)
{
	char itself[2] = {*t->p, '\0'};

	switch (*t->p) {
	case '\\':
		return translate_escape(t);
	case '[':
		return translate_bracket(t);
	case '(':
	case ')':
		return translate_group(t);
	case '^':
	case '$':
		put_place(t, itself);
		t->p++;
		return true;
	case '|':
		strbuf__append_char(&t->out, *t->p++);
		t->repeatable = false;
		return true;
	case '.':
		start_atom(t);
		strbuf__append_char(&t->out, *t->p++);
		return true;
	case '{':
		if (t->repeatable && translate_interval(t))
			return true;
		if (t->reason)
			return false;
		break;
	case '*':
	case '+':
	case '?':
		if (!t->repeatable)
			break;
		repeat(t, itself);
		t->p++;
		return true;
	}
	start_atom(t);
	put_literal(&t->out, *t->p++);
	return true;
}

int ere__translate(const char *str, size_t len, struct strbuf *out, const char **ret_reason)
{
	struct translation t = {.p = str, .end = str + len, .out = STRBUF_INIT};
	int err = 0;

	while (!err && t.p < t.end) {
		if (!translate_next(&t))
			err = -EINVAL;
		else if (t.out.failed)
			err = -ENOMEM;
	}
	if (!err && t.depth) {
		t.reason = "unmatched (";
		err = -EINVAL;
	}
	if (err == -EINVAL)
		*ret_reason = t.reason;
	if (!err)
		err = strbuf__append(out, t.out.data, t.out.len);
	strbuf__free(&t.out);
	return err;
}
