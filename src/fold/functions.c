// SPDX-License-Identifier: GPL-2.0-or-later
#include "fold/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Without memory, uthash leaves the new element out instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct function {
	UT_hash_handle hh;
	struct report_function counts;
	size_t last_line; /* counted from 1: the line that `total` holds already */
};

struct functions {
	struct function *by_name;
	struct report_function *sorted;
	size_t n;
	uint64_t total;
};

static void add_to(uint64_t *sum, uint64_t count)
{
	if (__builtin_add_overflow(*sum, count, sum))
		*sum = UINT64_MAX;
}

/* The function of this name, made if it is new; NULL: no memory. */
static struct function *get(struct functions *f, const char *name, size_t len)
{
	struct function *function;
	unsigned int hash;

	if (!len) {
		name = "??";
		len = 2;
	}
	HASH_VALUE(name, len, hash);
	HASH_FIND_BYHASHVALUE(hh, f->by_name, name, len, hash, function);
	if (function)
		return function;
	function = calloc(1, sizeof(*function));
	if (!function)
		return NULL;
	function->counts.name = name;
	function->counts.len = len;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, f->by_name, function->counts.name, len, hash, function);
	if (!function->hh.tbl) {
		free(function);
		return NULL;
	}
	return function;
}

static int add_line(struct functions *f, const struct report_line *line, size_t number)
{
	size_t n = line->n_frames ? line->n_frames : 1;

	for (size_t i = 0; i < n; i++) {
		/* the next frame starts behind a comma */
		size_t start = line->n_frames ? line->offsets[i] : 0;
		size_t end = i + 1 < n ? line->offsets[i + 1] - 1 : line->len;
		struct function *function = get(f, line->frames + start, end - start);

		if (!function)
			return -ENOMEM;
		if (i == 0)
			add_to(&function->counts.self, line->count);
		/* a recursive function has not cost the stack twice */
		if (function->last_line != number)
			add_to(&function->counts.total, line->count);
		function->last_line = number;
	}
	return 0;
}

static int compare(const void *x, const void *y)
{
	const struct report_function *a = x, *b = y;
	int diff;

	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	diff = memcmp(a->name, b->name, a->len < b->len ? a->len : b->len);
	return diff ? diff : (a->len > b->len) - (a->len < b->len);
}

struct functions *functions__new(const struct report *report)
{
	struct functions *f = calloc(1, sizeof(*f));
	struct function *function, *next;
	int err = f ? 0 : -ENOMEM;

	for (size_t i = 0; i < report->n_lines && !err; i++)
		err = add_line(f, &report->lines[i], i + 1);
	if (!err) {
		f->total = report->total;
		f->sorted = calloc(HASH_COUNT(f->by_name) + 1, sizeof(*f->sorted));
		err = f->sorted ? 0 : -ENOMEM;
	}
	if (err) {
		functions__free(f);
		errno = -err;
		return NULL;
	}
	HASH_ITER (hh, f->by_name, function, next)
		f->sorted[f->n++] = function->counts;
	qsort(f->sorted, f->n, sizeof(*f->sorted), compare);
	return f;
}

void functions__free(struct functions *f)
{
	struct function *function, *next;

	if (!f)
		return;
	HASH_ITER (hh, f->by_name, function, next) {
		HASH_DEL(f->by_name, function);
		free(function);
	}
	free(f->sorted);
	free(f);
}

struct report_functions functions__table(const struct functions *f)
{
	return (struct report_functions){
		.functions = f->sorted,
		.n_functions = f->n,
		.total = f->total,
	};
}
