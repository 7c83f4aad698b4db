/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options: argv becomes a plan. Values are written as pt-pmp takes them: `--lines 5`, `--lines=5`,
 * `-l 5`, `-l=5`; never glued (`-l5`).
 */
#ifndef PMP_OPTIONS_H
#define PMP_OPTIONS_H

#include "base/error.h"
#include "base/strbuf.h"
#include "cli/config.h"
#include "model/plan.h"

#include <stdbool.h>

/*
 * argv holds the words alone, without the program's name; those of `config` (which may be NULL)
 * come before them. What the config says is passed over where it does not go with the mode or with
 * the command line; what the command line says is refused then. `as_pt_pmp`: of several --pid the
 * last one counts, else all. Returns 0, -EINVAL with `e` naming the option and the value, or
 * -ENOMEM.
 */
int options__parse(int argc, char *const argv[], const struct config *config, bool as_pt_pmp,
		   struct plan *ret_plan, struct error *e);
void options__free(struct plan *plan);

/* Append what --help prints. Returns 0 or -ENOMEM. */
int options__help(struct strbuf *out);

#endif
