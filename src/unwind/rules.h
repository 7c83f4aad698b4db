/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rules: how unwind_table__new() turns rules into numbers. Private to table.c; what others may
 * do with rules is in table.h.
 */
#ifndef PMP_RULES_H
#define PMP_RULES_H

#include "unwind/table.h"

#define RULE_NONE	 0
#define RULE_UNSUPPORTED 1

/*
 * The number of the row's rule, which is added where it is new and there is room. Returns 0 or
 * -ENOMEM.
 */
int unwind_rules__number(struct unwind_rules *r, const struct cfi_row *row, uint32_t *ret_number);

#endif
