/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table: an object's .eh_frame as sorted rows and shared rules, which is what the samplers search
 * in the kernel (bpf/abi.h has their layout). Rows of unequal code with equal rules share them.
 * Pure. A table owns its rows; the rules are owned by the struct unwind_rules, which outlives it.
 */
#ifndef PMP_TABLE_H
#define PMP_TABLE_H

#include "bpf/abi.h"
#include "unwind/eh_frame.h"

#include <stddef.h>
#include <stdint.h>

/* Every distinct rule of all tables made with it, in the order of their numbers. */
struct unwind_rules;

/* `max`: rules that there is room for, rule 0 included; at least 2. Rule 1 is the one of
 * PMP_CFA_UNSUPPORTED, which also stands in for what there is no more room for. NULL with errno
 * ENOMEM. */
struct unwind_rules *unwind_rules__new(size_t max);
void unwind_rules__free(struct unwind_rules *r);

/* All rules so far: a table that is made later may only append. Borrowed until the next
 * unwind_table__new(). */
const struct pmp_rule *unwind_rules__all(const struct unwind_rules *r, size_t *ret_n);

/* The rule of one row, by itself: PMP_CFA_UNSUPPORTED where a rule cannot say it all. */
struct pmp_rule unwind_rules__from_row(const struct cfi_row *row);

struct unwind_table;

/*
 * The table of all of `eh`. Malformed entries are left out, as eh_frame__each_row() has it; where
 * entries overlap, the one that starts later counts. Gaps of less than 16 bytes are the padding
 * between functions: no pc is ever met in them, and they take the rule before them. NULL with
 * errno: ENOMEM, ENODATA (no row at all), EFBIG (code spread over more than 4 GiB).
 */
struct unwind_table *unwind_table__new(struct eh_frame *eh, struct unwind_rules *rules);
void unwind_table__free(struct unwind_table *t);

/* Ascending by pc; the last one has rule 0. */
const struct pmp_row *unwind_table__rows(const struct unwind_table *t, size_t *ret_n);

/* What the pc of each row counts from: an address in the object, the start of a page. */
uint64_t unwind_table__base(const struct unwind_table *t);

/* The number of the rule for `addr` (an address in the object); 0: none. As BPF searches it. */
uint32_t unwind_table__find(const struct unwind_table *t, uint64_t addr);

#endif
