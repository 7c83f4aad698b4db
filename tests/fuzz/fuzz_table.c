// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Input as for fuzz_eh_frame: length of .eh_frame_hdr (2 bytes, little endian), .eh_frame_hdr,
 * .eh_frame. The table is compared with a plain search through the rows that it was made from.
 */
#include "unwind/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTION	 0x100000ULL
#define MAX_ROWS 300
#define PADDING	 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct model {
	struct {
		uint64_t start, end, fde_start;
		struct pmp_rule rule;
	} rows[MAX_ROWS];
	size_t n;
	uint64_t lowest, highest;
};

static int see_row(const struct cfi_row *row, void *arg)
{
	struct model *m = arg;

	if (m->n == MAX_ROWS)
		return -E2BIG;
	m->rows[m->n].start = row->start;
	m->rows[m->n].end = row->end;
	m->rows[m->n].fde_start = row->fde_start;
	m->rows[m->n].rule = unwind_rules__from_row(row);
	if (m->rows[m->n].rule.cfa == PMP_CFA_NONE)
		abort();
	m->n++;
	if (row->start < m->lowest)
		m->lowest = row->start;
	if (row->end > m->highest)
		m->highest = row->end;
	return 0;
}

static struct pmp_rule covering(const struct model *m, uint64_t pc)
{
	struct pmp_rule rule = {.cfa = PMP_CFA_NONE};
	uint64_t latest = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (pc < m->rows[i].start || pc >= m->rows[i].end)
			continue;
		if (rule.cfa != PMP_CFA_NONE && m->rows[i].fde_start <= latest)
			continue;
		latest = m->rows[i].fde_start;
		rule = m->rows[i].rule;
	}
	return rule;
}

static struct pmp_rule expected_at(const struct model *m, uint64_t pc)
{
	struct pmp_rule rule = covering(m, pc), none = {.cfa = PMP_CFA_NONE};
	uint64_t before = 0, after = UINT64_MAX;

	if (rule.cfa != PMP_CFA_NONE)
		return rule;
	for (size_t i = 0; i < m->n; i++) {
		if (m->rows[i].end <= pc && m->rows[i].end > before)
			before = m->rows[i].end;
		if (m->rows[i].start > pc && m->rows[i].start < after)
			after = m->rows[i].start;
	}
	if (pc < m->lowest || pc >= m->highest || after - before >= PADDING)
		return none;
	return covering(m, before - 1);
}

static void check_at(const struct model *m, const struct unwind_table *t,
		     const struct pmp_rule *rules, size_t n_rules, uint64_t pc)
{
	struct pmp_rule expected = expected_at(m, pc);
	uint32_t number = unwind_table__find(t, pc);

	if (number >= n_rules || memcmp(&rules[number], &expected, sizeof(expected)) != 0)
		abort();
}

static void check(const struct model *m, const struct unwind_table *t, struct unwind_rules *rules)
{
	size_t n, n_rules;
	const struct pmp_row *rows = unwind_table__rows(t, &n);
	const struct pmp_rule *all = unwind_rules__all(rules, &n_rules);

	if (n < 2 || rows[n - 1].rule || unwind_table__base(t) % PMP_PAGE)
		abort();
	for (size_t i = 1; i < n; i++) {
		if (rows[i].pc <= rows[i - 1].pc || rows[i].rule == rows[i - 1].rule)
			abort();
	}
	for (size_t i = 0; i < m->n; i++) {
		uint64_t start = m->rows[i].start, end = m->rows[i].end;

		check_at(m, t, all, n_rules, start - 1);
		check_at(m, t, all, n_rules, start);
		check_at(m, t, all, n_rules, start + (end - start) / 2);
		check_at(m, t, all, n_rules, end - 1);
		check_at(m, t, all, n_rules, end);
		check_at(m, t, all, n_rules, end + PADDING - 1);
	}
}

/* With room for few rules, the table is the same but for what became rule 1. */
static void check_few(struct eh_frame *eh, const struct unwind_table *t)
{
	struct unwind_rules *rules = unwind_rules__new(4);
	struct unwind_table *few = rules ? unwind_table__new(eh, rules) : NULL;
	size_t n, n_rules;
	const struct pmp_row *rows;

	if (!few)
		abort();
	unwind_rules__all(rules, &n_rules);
	rows = unwind_table__rows(t, &n);
	for (size_t i = 0; i < n; i++) {
		uint32_t number = unwind_table__find(few, unwind_table__base(t) + rows[i].pc);

		if (number != (rows[i].rule < 4 ? rows[i].rule : 1) || number >= n_rules)
			abort();
	}
	unwind_table__free(few);
	unwind_rules__free(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model m;
	struct eh_frame_bytes bytes = {.eh_frame_addr = SECTION};
	struct unwind_rules *rules = unwind_rules__new(65536);
	struct unwind_table *t = NULL;
	struct eh_frame *eh;
	size_t hdr_len;
	int err;

	if (size < 2 || !rules) {
		unwind_rules__free(rules);
		return 0;
	}
	hdr_len = data[0] | (size_t)data[1] << 8;
	data += 2;
	size -= 2;
	if (hdr_len > size)
		hdr_len = size;
	bytes.eh_frame = data + hdr_len;
	bytes.eh_frame_len = size - hdr_len;
	m.n = 0;
	m.lowest = UINT64_MAX;
	m.highest = 0;
	eh = eh_frame__new(&bytes);
	if (!eh)
		goto out;
	t = unwind_table__new(eh, rules);
	err = t ? 0 : errno;
	if (err && err != ENODATA && err != EFBIG)
		abort();
	if (eh_frame__each_row(eh, see_row, &m, NULL))
		goto out;
	if ((err == ENODATA) != (m.n == 0))
		abort();
	if (t) {
		check(&m, t, rules);
		check_few(eh, t);
	} else if (err == EFBIG && m.highest - m.lowest <= UINT32_MAX - PMP_PAGE) {
		abort();
	}
out:
	unwind_table__free(t);
	eh_frame__free(eh);
	unwind_rules__free(rules);
	return 0;
}
