// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/form.h"

#include "read/pmp.h"
#include "read/sample.h"
#include "read/scan.h"

#include <errno.h>
#include <stdlib.h>

#define COUNT_WIDTH 7

/* A comma, or a bracket that is open. */
struct place {
	size_t pos;
	char c;
};

struct pmp {
	struct sample sample;
	struct place *commas, *brackets; /* of the line; each has room for capacity */
	size_t capacity;
};

static void *pmp_create(stack_fn fn, void *arg)
{
	struct pmp *p = calloc(1, sizeof(*p));

	if (p)
		p->sample = (struct sample){.fn = fn, .arg = arg};
	return p;
}

static void pmp_destroy(void *form)
{
	struct pmp *p = form;

	if (!p)
		return;
	sample__free(&p->sample);
	free(p->commas);
	free(p->brackets);
	free(p);
}

bool pmp__parse(struct text line, struct text *ret_frames, uint64_t *ret_count)
{
	size_t start = 0, end;

	while (start < line.len && line.str[start] == ' ')
		start++;
	for (end = start; end < line.len && scan__digit(line.str[end]);)
		end++;
	if (end < COUNT_WIDTH || (end > COUNT_WIDTH && start) || end >= line.len ||
	    line.str[end] != ' ' || (end + 1 < line.len && scan__blank(line.str[end + 1])))
		return false;
	if (!scan__number((struct text){line.str + start, end - start}, ret_count))
		return false;
	*ret_frames = scan__from(line, end + 1);
	return true;
}

static int reserve(struct pmp *p, size_t n)
{
	size_t capacity = p->capacity ? p->capacity * 2 : 64;
	struct place *commas, *brackets;

	if (n <= p->capacity)
		return 0;
	commas = reallocarray(p->commas, capacity, sizeof(*commas));
	if (commas)
		p->commas = commas;
	brackets = reallocarray(p->brackets, capacity, sizeof(*brackets));
	if (brackets)
		p->brackets = brackets;
	if (!commas || !brackets)
		return -ENOMEM;
	p->capacity = capacity;
	return 0;
}

/* The length of what looks like brackets and is none: an operator's name, `->`, and what is left of
 * `<signal handler called>`. */
static size_t skip_name(struct text t)
{
	static const char *const names[] = {
		"operator<=>", "operator->*", "operator->", "operator<<=", "operator>>=",
		"operator<<",  "operator>>",  "operator<=", "operator>=",  "operator<",
		"operator>",   "operator()",  "->",
	};

	if (scan__starts(t, "<signal,") || scan__is(t, "<signal"))
		return 1;
	if (t.str[0] != 'o' && t.str[0] != '-')
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (scan__starts(t, names[i]))
			return strlen(names[i]);
	}
	return 0;
}

/* The commas that separate frames: those that are in no pair of brackets. */
static int find_commas(struct pmp *p, struct text t, size_t *ret_n)
{
	size_t n = 0, depth = 0;

	for (size_t i = 0; i < t.len; i++) {
		size_t skip = skip_name(scan__from(t, i));
		char c = t.str[i], opens = c == '>' ? '<' : '(';

		if (skip) {
			i += skip - 1;
			continue;
		}
		if (reserve(p, (n > depth ? n : depth) + 1))
			return -ENOMEM;
		if (c == ',') {
			p->commas[n++].pos = i;
		} else if (c == '<' || c == '(') {
			p->brackets[depth++] = (struct place){i, c};
		} else if (c == '>' || c == ')') {
			size_t match = depth;

			/* a '<' inside (...) may be one by itself; a '(' inside <...> never is */
			while (c == ')' && match && p->brackets[match - 1].c != opens)
				match--;
			if (!match || p->brackets[match - 1].c != opens)
				continue;
			depth = match - 1;
			while (n && p->commas[n - 1].pos > p->brackets[depth].pos)
				n--;
		}
	}
	*ret_n = n;
	return 0;
}

static int pmp_line(void *form, struct text line)
{
	struct pmp *p = form;
	struct text frames;
	size_t n = 0, start = 0;
	uint64_t count;
	int err;

	if (!pmp__parse(line, &frames, &count))
		return 0;
	if (!frames.len)
		return sample__emit_empty(&p->sample, count);
	err = find_commas(p, frames, &n);
	for (size_t i = 0; !err && i <= n; i++) {
		size_t end = i < n ? p->commas[i].pos : frames.len;

		err = sample__add_short(&p->sample, (struct text){frames.str + start, end - start});
		start = end + 1;
	}
	return err ? err : sample__emit(&p->sample, count);
}

static int pmp_end_file(void *form)
{
	return 0;
}

const struct form form_pmp = {
	.create = pmp_create,
	.line = pmp_line,
	.end_file = pmp_end_file,
	.destroy = pmp_destroy,
};
