/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code_ranges: DIEs by the addresses of their code.
 */
#ifndef PMP_CODE_RANGES_H
#define PMP_CODE_RANGES_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

struct code_ranges;

/* NULL with errno ENOMEM. */
struct code_ranges *code_ranges__new(void);
void code_ranges__free(struct code_ranges *r);

/* Take up what DW_AT_ranges or DW_AT_low_pc and DW_AT_high_pc say; a DIE without code adds nothing.
 * Returns 0 or -ENOMEM. */
int code_ranges__add(struct code_ranges *r, const Dwarf_Die *die);

/* After the last code_ranges__add(), before the first code_ranges__find(). */
void code_ranges__sort(struct code_ranges *r);

/* The DIE with a range that has `addr`; of several, that of the range that begins closest to it.
 * Returns 0 or -ENOENT. */
int code_ranges__find(const struct code_ranges *r, uint64_t addr, Dwarf_Die *ret_die);

#endif
