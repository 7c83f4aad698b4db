// SPDX-License-Identifier: GPL-2.0-or-later
#include "fold/aggregate.h"

#include "base/strbuf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without memory, uthash leaves the new element out instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define COUNT_MAX 24 /* room for the widest count, its blank and a NUL */

struct line {
	UT_hash_handle hh;
	uint64_t count;
	size_t len;
	size_t n_frames;
	char *frames;	     /* behind room for the count, so that a whole line can be compared */
	const char *printed; /* the whole line, once it was asked for */
	uint32_t offsets[];
};

struct aggregate {
	struct shortener *shortener;
	struct filter *filter;
	size_t max_frames;
	struct line *lines;
	/* the stack being read */
	struct strbuf frames;
	uint32_t *offsets;
	size_t n_offsets;
	size_t capacity;
	/* the report */
	struct line **sorted;
	struct report_line *report;
};

struct aggregate *aggregate__new(struct shortener *shortener, struct filter *filter, size_t lines)
{
	struct aggregate *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->shortener = shortener;
	a->filter = filter;
	a->max_frames = lines;
	return a;
}

void aggregate__free(struct aggregate *a)
{
	struct line *line, *next;

	if (!a)
		return;
	HASH_ITER (hh, a->lines, line, next) {
		HASH_DEL(a->lines, line);
		free(line);
	}
	strbuf__free(&a->frames);
	free(a->offsets);
	free(a->sorted);
	free(a->report);
	free(a);
}

void aggregate__set_shortener(struct aggregate *a, struct shortener *shortener)
{
	a->shortener = shortener;
}

static int append_frame(struct aggregate *a, struct text name)
{
	/* as long as nothing has a name, there is nothing to put a comma behind */
	bool first = a->frames.len == 0;

	if (name.len >= AGGREGATE_LINE_MAX - a->frames.len)
		return -E2BIG;
	if (first) {
		a->n_offsets = 0;
		if (!name.len)
			return 0;
	}
	if (a->n_offsets == a->capacity) {
		size_t capacity = a->capacity ? a->capacity * 2 : 64;
		uint32_t *offsets = reallocarray(a->offsets, capacity, sizeof(*offsets));

		if (!offsets)
			return -ENOMEM;
		a->offsets = offsets;
		a->capacity = capacity;
	}
	if (!first)
		strbuf__append_char(&a->frames, ',');
	a->offsets[a->n_offsets++] = (uint32_t)a->frames.len;
	strbuf__append(&a->frames, name.str, name.len);
	return a->frames.failed ? -ENOMEM : 0;
}

static int count_line(struct aggregate *a, uint64_t count)
{
	size_t offsets_size = a->n_offsets * sizeof(uint32_t);
	struct line *line;
	unsigned int hash;

	HASH_VALUE(a->frames.data, a->frames.len, hash);
	HASH_FIND_BYHASHVALUE(hh, a->lines, a->frames.data, a->frames.len, hash, line);
	if (line) {
		/* a file that says it has 2^64 stacks is wrong, but must not wrap to few */
		if (__builtin_add_overflow(line->count, count, &line->count))
			line->count = UINT64_MAX;
		return 0;
	}
	line = malloc(sizeof(*line) + offsets_size + COUNT_MAX + a->frames.len + 1);
	if (!line)
		return -ENOMEM;
	line->count = count;
	line->len = a->frames.len;
	line->n_frames = a->n_offsets;
	line->frames = (char *)line->offsets + offsets_size + COUNT_MAX;
	if (offsets_size)
		memcpy(line->offsets, a->offsets, offsets_size);
	memcpy(line->frames, a->frames.data, a->frames.len + 1);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, a->lines, line->frames, line->len, hash, line);
	if (!line->hh.tbl) {
		free(line);
		return -ENOMEM;
	}
	return 0;
}

int aggregate__add(struct aggregate *a, const struct stack *stack)
{
	bool wanted = (stack->header.len || stack->last) &&
		      (!a->filter || filter__wants(a->filter, stack->header));
	size_t n = stack->n_frames;
	int err;

	if (a->max_frames && n > a->max_frames)
		n = a->max_frames;
	strbuf__reset(&a->frames);
	a->n_offsets = 0;
	err = strbuf__append_str(&a->frames, "");
	for (size_t i = 0; !err && i < n; i++) {
		struct text name = stack->frames[i];

		/* also where the thread is not wanted: a name may carry over to the next stack */
		if (!stack->shortened)
			err = shortener__frame(a->shortener, stack->frames[i], &name);
		if (!err && wanted)
			err = append_frame(a, name);
	}
	if (err)
		return err;
	if (!wanted || (!a->frames.len && !stack->last))
		return 0;
	err = count_line(a, stack->count);
	return err ? err : 1;
}

/* strcoll() up to the NULs that a line may hold, piece by piece, as sort(1) does it. */
static int collate(const char *a, size_t a_len, const char *b, size_t b_len)
{
	for (;;) {
		int diff = strcoll(a, b);
		size_t a_part = strlen(a) + 1, b_part = strlen(b) + 1;

		if (diff)
			return diff;
		if (a_part > a_len || b_part > b_len)
			return (b_part > b_len) - (a_part > a_len);
		a += a_part;
		a_len -= a_part;
		b += b_part;
		b_len -= b_part;
	}
}

static int compare(const void *x, const void *y)
{
	const struct line *a = *(struct line *const *)x, *b = *(struct line *const *)y;
	size_t a_len = (size_t)(a->frames - a->printed) + a->len;
	size_t b_len = (size_t)(b->frames - b->printed) + b->len;
	int diff;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	diff = collate(b->printed, b_len, a->printed, a_len);
	if (!diff)
		diff = memcmp(b->printed, a->printed, a_len < b_len ? a_len : b_len);
	return diff ? diff : (a_len < b_len) - (a_len > b_len);
}

/* Write the count into its room, right before the frames. */
static void print_count(struct line *line)
{
	char text[COUNT_MAX];
	int len = snprintf(text, sizeof(text), "%7" PRIu64 " ", line->count);
	char *printed = line->frames - len;

	memcpy(printed, text, (size_t)len);
	line->printed = printed;
}

int aggregate__report(struct aggregate *a, struct report *ret_report)
{
	size_t n = HASH_COUNT(a->lines), i = 0;
	uint64_t total = 0;
	struct line *line, *next;

	free(a->sorted);
	free(a->report);
	a->sorted = calloc(n + 1, sizeof(*a->sorted));
	a->report = calloc(n + 1, sizeof(*a->report));
	if (!a->sorted || !a->report)
		return -ENOMEM;
	HASH_ITER (hh, a->lines, line, next) {
		print_count(line);
		a->sorted[i++] = line;
	}
	qsort(a->sorted, n, sizeof(*a->sorted), compare);
	for (i = 0; i < n; i++) {
		a->report[i] = (struct report_line){
			.count = a->sorted[i]->count,
			.frames = a->sorted[i]->frames,
			.len = a->sorted[i]->len,
			.offsets = a->sorted[i]->offsets,
			.n_frames = a->sorted[i]->n_frames,
		};
		if (__builtin_add_overflow(total, a->sorted[i]->count, &total))
			total = UINT64_MAX;
	}
	*ret_report = (struct report){.lines = a->report, .n_lines = n, .total = total};
	return 0;
}
