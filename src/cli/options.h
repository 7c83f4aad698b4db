/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options: argv becomes a plan. Values are written as pt-pmp takes them: `--lines 5`, `--lines=5`,
 * `-l 5`, `-l=5`; never glued (`-l5`).
 */
#ifndef PMP_OPTIONS_H
#define PMP_OPTIONS_H

#include "base/error.h"
#include "base/strbuf.h"
#include "model/plan.h"

/* Returns 0, or -EINVAL with `e` naming the option and the value. */
int options__parse(int argc, char *const argv[], struct plan *ret_plan, struct error *e);

/* Append what --help prints. Returns 0 or -ENOMEM. */
int options__help(struct strbuf *out);

#endif
