/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter: is this stack's thread wanted (--tids)?
 */
#ifndef PMP_FILTER_H
#define PMP_FILTER_H

#include "base/error.h"
#include "model/stack.h"

#include <stdbool.h>

struct filter;

/* `tids`: comma-separated extended regular expressions, NULL for every thread. NULL with errno
 * (EINVAL with `e` set: which expression, and what is wrong with it). */
struct filter *filter__new(const char *tids, struct error *e);
void filter__free(struct filter *f);

/* `header` is the stack's Thread or TID line. */
bool filter__wants(struct filter *f, struct text header);

#endif
