/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * subprograms: the function of one compilation unit that has the code at an address, and those that
 * are inlined there.
 */
#ifndef PMP_SUBPROGRAMS_H
#define PMP_SUBPROGRAMS_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

struct subprograms;

/* `unit` is its DIE, of a split unit that of the split one. NULL with errno ENOMEM. */
struct subprograms *subprograms__new(const Dwarf_Die *unit);
void subprograms__free(struct subprograms *s);

/* The subprogram that has `addr`. Returns 0, -ENOENT or -ENOMEM. */
int subprograms__find(struct subprograms *s, uint64_t addr, Dwarf_Die *ret_function);

/*
 * The inlined subroutines of `function` that have `addr`, outermost first. Which of several at one
 * depth: the first, as in gdb's blocks (buildsym_compunit::end_scope in gdb's buildsym.c). Returns
 * how many were stored, `max` at most.
 */
size_t subprograms__inlined(const Dwarf_Die *function, uint64_t addr, Dwarf_Die *ret_inlined,
			    size_t max);

#endif
