/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * functions: the functions that a report's stacks are made of, each with what it cost by itself
 * and with all that it called.
 */
#ifndef PMP_FUNCTIONS_H
#define PMP_FUNCTIONS_H

#include "model/report.h"

struct functions;

/*
 * Most `self` first, then most `total`, then by name in the order of bytes. A stack without frames
 * is one of a function `??`. Sums stop at UINT64_MAX. The names are the report's, which has to stay
 * as it is. NULL with errno ENOMEM.
 */
struct functions *functions__new(const struct report *report);
void functions__free(struct functions *f);

/* The table, borrowed from `f`. */
struct report_functions functions__table(const struct functions *f);

#endif
