/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ere: regular expressions as gawk reads them, said in PCRE's words. Pure.
 * Only whether an expression matches is kept, not where: the longest match or the first is one.
 */
#ifndef PMP_ERE_H
#define PMP_ERE_H

#include "base/strbuf.h"

#include <stddef.h>

/* Append `str` as awk's string rules read it: `\\.` is `\.`, `\.` is `.`. Returns 0 or -ENOMEM. */
int ere__unescape(struct strbuf *out, const char *str);

/*
 * Append the expression for pcre2_compile() with PCRE2_DOTALL and PCRE2_DOLLAR_ENDONLY. Time is
 * quadratic in `len` at worst: bound it. Returns 0, -ENOMEM, or -EINVAL with the reason.
 */
int ere__translate(const char *str, size_t len, struct strbuf *out, const char **ret_reason);

#endif
