/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * number: the values of options that are numbers. Each returns 0, or -EINVAL with `e` naming the
 * option, what it takes and the value.
 */
#ifndef PMP_NUMBER_H
#define PMP_NUMBER_H

#include "base/error.h"

#include <stddef.h>

/* The first `len` bytes of `value`, a decimal number from `min` to `max`. */
int number__whole(const char *option, const char *value, size_t len, long min, long max, long *ret,
		  struct error *e);

/* Seconds from `min` to 1000000, in any form of strtod(3) that is finite. */
int number__seconds(const char *option, const char *value, double min, double *ret,
		    struct error *e);

#endif
