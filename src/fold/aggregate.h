/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * aggregate: counts equal stacks and orders them as pt-pmp does: by count, then by the whole
 * printed line in descending order of the locale's collation (setlocale() is the caller's).
 * Memory is bounded by the distinct stacks; each is at most AGGREGATE_LINE_MAX bytes.
 */
#ifndef PMP_AGGREGATE_H
#define PMP_AGGREGATE_H

#include "fold/filter.h"
#include "fold/shorten.h"
#include "model/report.h"
#include "model/stack.h"

#define AGGREGATE_LINE_MAX ((size_t)256 << 20)

struct aggregate;

/* `lines`: at most that many frames of each stack count, 0 for all. The shortener and filter are
 * borrowed. NULL with errno ENOMEM. */
struct aggregate *aggregate__new(struct shortener *shortener, struct filter *filter, size_t lines);
void aggregate__free(struct aggregate *a);

/* From now on shorten by another one, borrowed too. */
void aggregate__set_shortener(struct aggregate *a, struct shortener *shortener);

/* Shorten and count one stack; stack.h says what `last` does. Returns 1 if it was counted, 0 if
 * its thread is not wanted or no frame has a name, -ENOMEM, or -E2BIG if it is too long. */
int aggregate__add(struct aggregate *a, const struct stack *stack);

/* The report, borrowed from `a` until the next call on it. Returns 0 or -ENOMEM. */
int aggregate__report(struct aggregate *a, struct report *ret_report);

#endif
