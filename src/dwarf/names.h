/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names: what a function is called, as gdb has it from DWARF: by its linkage name, else by
 * DW_AT_name with the scopes around it (dwarf2_physname and dwarf2_compute_name in gdb's
 * dwarf2/read.c).
 */
#ifndef PMP_DWARF_NAMES_H
#define PMP_DWARF_NAMES_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/strbuf.h"

/*
 * Append the name of `function`, a subprogram or an inlined subroutine; *ret_mangled: it is one to
 * demangle, and to be shown without its parameters. `language` is DW_LANG_...: of the unit that
 * has the code, for a partial unit may have none. Returns 0, -ENOENT (it has no name) or -ENOMEM.
 */
int names__append(const Dwarf_Die *function, int language, struct strbuf *ret_text,
		  bool *ret_mangled);

#endif
