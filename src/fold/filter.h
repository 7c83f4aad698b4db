/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter: is this stack's thread wanted (--tids)?
 * The expressions are awk's: its string escapes come first, then extended regular expressions
 * with gawk's operators. They match anywhere in the header's last field without its `)*:`, in
 * the LWP's number or in the thread's name; bytes, not characters. Matching is bounded.
 */
#ifndef PMP_FILTER_H
#define PMP_FILTER_H

#include "base/error.h"
#include "model/stack.h"

#include <stdbool.h>
#include <stddef.h>

struct filter;

/* `tids`: comma-separated extended regular expressions; NULL, "" or "*" for every thread. NULL
 * with errno (EINVAL with `e` set: which expression, and what is wrong with it). */
struct filter *filter__new(const char *tids, struct error *e);
void filter__free(struct filter *f);

/* `header` is the stack's Thread or TID line; without one (len 0) there is nothing but "" to
 * match. */
bool filter__wants(struct filter *f, struct text header);

/* How many matches were given up because they took too long. They count as no match, and the
 * user has to be told. */
size_t filter__given_up(const struct filter *f);

#endif
