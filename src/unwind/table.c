// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/table.h"

#include "unwind/rules.h"

#include <errno.h>
#include <stdlib.h>

/* Functions start at multiples of 16: what is shorter is filled up, not code without an FDE. */
#define PADDING 16

struct unwind_table {
	uint64_t base;
	struct pmp_row *rows;
	size_t n;
};

/* Neighbouring rows of one FDE. */
struct span {
	uint64_t start, end;
	size_t row, last_row; /* their numbers in struct builder */
};

struct builder {
	struct unwind_rules *rules;
	struct pmp_row *rows; /* in the section's order; pc counts from the span's start */
	size_t n_rows, rows_capacity;
	struct span *spans;
	size_t n_spans, spans_capacity;
	struct unwind_table *table;
};

static int add_span(struct builder *b, uint64_t start)
{
	if (b->n_spans == b->spans_capacity) {
		size_t capacity = b->spans_capacity ? b->spans_capacity * 2 : 256;
		struct span *spans = reallocarray(b->spans, capacity, sizeof(*spans));

		if (!spans)
			return -ENOMEM;
		b->spans = spans;
		b->spans_capacity = capacity;
	}
	b->spans[b->n_spans++] = (struct span){.start = start, .row = b->n_rows};
	return 0;
}

static int add_row(struct builder *b, uint32_t pc, uint32_t rule)
{
	if (b->n_rows == b->rows_capacity) {
		size_t capacity = b->rows_capacity ? b->rows_capacity * 2 : 1024;
		struct pmp_row *rows = reallocarray(b->rows, capacity, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		b->rows = rows;
		b->rows_capacity = capacity;
	}
	b->rows[b->n_rows++] = (struct pmp_row){.pc = pc, .rule = rule};
	return 0;
}

static int see_row(const struct cfi_row *row, void *arg)
{
	struct builder *b = arg;
	struct span *span;
	uint32_t number;
	bool first = row->start == row->fde_start;
	int err = unwind_rules__number(b->rules, row, &number);

	if (!err && first)
		err = add_span(b, row->start);
	if (err)
		return err;
	span = &b->spans[b->n_spans - 1];
	if (row->end - span->start > UINT32_MAX)
		return -EFBIG;
	if (first || b->rows[b->n_rows - 1].rule != number)
		err = add_row(b, (uint32_t)(row->start - span->start), number);
	span->end = row->end;
	span->last_row = b->n_rows - 1;
	return err;
}

/*
 * Sort the spans by their starts, which lie within 32 bits of the base: in three passes over 11
 * bits each, so that no order of the input is a bad one. Of those that start at the same pc the
 * section's first one comes last.
 */
static int sort_spans(struct builder *b)
{
	size_t n = b->n_spans;
	struct span *from = b->spans, *to = reallocarray(NULL, n, sizeof(*to)), *swap;

	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		to[i] = from[n - 1 - i];
	swap = from;
	from = to;
	to = swap;
	for (unsigned int shift = 0; shift < 32; shift += 11) {
		size_t at[1 << 11] = {0}, sum = 0;

		for (size_t i = 0; i < n; i++)
			at[(from[i].start - b->table->base) >> shift & 0x7ff]++;
		for (size_t i = 0; i < 1 << 11; i++) {
			size_t here = at[i];

			at[i] = sum;
			sum += here;
		}
		for (size_t i = 0; i < n; i++)
			to[at[(from[i].start - b->table->base) >> shift & 0x7ff]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	b->spans = from;
	b->spans_capacity = n;
	free(to);
	return 0;
}

/* From pc on, `rule` holds. */
static void emit(struct unwind_table *t, uint64_t pc, uint32_t rule)
{
	if (!t->n || t->rows[t->n - 1].rule != rule)
		t->rows[t->n++] = (struct pmp_row){.pc = (uint32_t)(pc - t->base), .rule = rule};
}

/* Emit the span's rows from `pc`, which it covers, up to `end`, and leave it where that ended. */
static void emit_rows(struct builder *b, struct span *span, uint64_t pc, uint64_t end)
{
	uint64_t row_pc = pc;

	while (span->row < span->last_row && span->start + b->rows[span->row + 1].pc <= pc)
		span->row++;
	for (;;) {
		emit(b->table, row_pc, b->rows[span->row].rule);
		if (span->row == span->last_row)
			return;
		row_pc = span->start + b->rows[span->row + 1].pc;
		if (row_pc >= end)
			return;
		span->row++;
	}
}

/*
 * Go through the sorted spans. What counts at a pc is the last span that starts at or before it
 * and has not ended; those below it wait on a stack, which takes the place of the spans gone
 * through.
 */
static void emit_all(struct builder *b)
{
	struct span *stack = b->spans;
	size_t depth = 0, i = 0;
	uint64_t pc = b->spans[0].start;

	while (i < b->n_spans) {
		if (!depth && b->spans[i].start > pc) {
			if (b->spans[i].start - pc >= PADDING)
				emit(b->table, pc, RULE_NONE);
			pc = b->spans[i].start;
		}
		while (i < b->n_spans && b->spans[i].start <= pc)
			stack[depth++] = b->spans[i++];
		while (depth && (i == b->n_spans || pc < b->spans[i].start)) {
			struct span *top = &stack[depth - 1];
			uint64_t end = top->end;

			if (i < b->n_spans && b->spans[i].start < end)
				end = b->spans[i].start;
			if (end > pc) {
				emit_rows(b, top, pc, end);
				pc = end;
			}
			if (top->end <= pc)
				depth--;
		}
	}
	emit(b->table, pc, RULE_NONE);
}

/* The base, and whether all code is within 32 bits of it. */
static int set_base(struct builder *b)
{
	uint64_t lowest = UINT64_MAX, highest = 0;

	for (size_t i = 0; i < b->n_spans; i++) {
		if (b->spans[i].start < lowest)
			lowest = b->spans[i].start;
		if (b->spans[i].end > highest)
			highest = b->spans[i].end;
	}
	b->table->base = lowest & ~(uint64_t)(PMP_PAGE - 1);
	return highest - b->table->base > UINT32_MAX ? -EFBIG : 0;
}

static int fill(struct builder *b)
{
	struct pmp_row *rows;
	int err;

	if (!b->n_spans)
		return -ENODATA;
	err = set_base(b);
	if (!err)
		err = sort_spans(b);
	if (err)
		return err;
	/* each span may be followed by a gap, or by the rest of the row that it starts in */
	b->table->rows = reallocarray(NULL, b->n_rows + b->n_spans + 1, sizeof(*rows));
	if (!b->table->rows)
		return -ENOMEM;
	emit_all(b);
	rows = reallocarray(b->table->rows, b->table->n, sizeof(*rows));
	if (rows)
		b->table->rows = rows;
	return 0;
}

struct unwind_table *unwind_table__new(struct eh_frame *eh, struct unwind_rules *rules)
{
	struct builder b = {.rules = rules, .table = calloc(1, sizeof(*b.table))};
	int err = b.table ? 0 : -ENOMEM;

	if (!err)
		err = eh_frame__each_row(eh, see_row, &b, NULL);
	if (!err)
		err = fill(&b);
	free(b.rows);
	free(b.spans);
	if (err) {
		unwind_table__free(b.table);
		errno = -err;
		return NULL;
	}
	return b.table;
}

void unwind_table__free(struct unwind_table *t)
{
	if (!t)
		return;
	free(t->rows);
	free(t);
}

const struct pmp_row *unwind_table__rows(const struct unwind_table *t, size_t *ret_n)
{
	*ret_n = t->n;
	return t->rows;
}

uint64_t unwind_table__base(const struct unwind_table *t)
{
	return t->base;
}

uint32_t unwind_table__find(const struct unwind_table *t, uint64_t addr)
{
	size_t low = 0, high = t->n;

	/* rows below low are at or before addr, those from high on behind it */
	if (addr - t->base > UINT32_MAX)
		return RULE_NONE;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->rows[middle].pc <= addr - t->base)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? t->rows[low - 1].rule : RULE_NONE;
}
