/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lines: source files and lines of a unit's code, chosen and written as gdb does: see
 * find_pc_sect_line in its symtab.c, record_line of lnp_state_machine in dwarf2/read.c and
 * buildsym_compunit::start_subfile in buildsym.c.
 */
#ifndef PMP_DWARF_LINES_H
#define PMP_DWARF_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

struct code_line {
	const char *source; /* libdw's: see lines__append_file() */
	int line;
	bool is_start; /* a statement begins right at the address */
};

/* The line of the code at `addr` (an address in the object). `unit` is the one that has the line
 * table: of a split one the skeleton. Returns 0 or -ENOENT. */
int lines__find(const Dwarf_Die *unit, uint64_t addr, struct code_line *ret_line);

/* The file by number `index` in the unit's own table. Returns a string of libdw's, or NULL. */
const char *lines__source(const Dwarf_Die *unit, uint64_t index);

/* A file's name as gdb prints it: relative to the folder of compilation where the unit has it so.
 * Returns 0 or -ENOMEM. */
int lines__append_file(const Dwarf_Die *unit, const char *source, struct strbuf *ret_text);

#endif
