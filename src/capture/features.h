/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * features: what this kernel and this user allow, found out by doing it, never by version numbers.
 */
#ifndef PMP_FEATURES_H
#define PMP_FEATURES_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * Append one line per feature to ret_text: its name, `ok` or what is wrong, and what to do.
 * `pid` is the process to try, 0 for none. *ret_usable: whether the default mode can run.
 * Returns 0 or -ENOMEM.
 */
int features__check(pid_t pid, struct strbuf *ret_text, bool *ret_usable);

#endif
