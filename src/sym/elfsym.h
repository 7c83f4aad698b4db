/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elfsym: the code symbols of one ELF object and of its debug file, looked up by address with
 * the outcome that gdb's minimal symbols have (lookup_minimal_symbol_by_pc_section in gdb's
 * minsyms.c). Names are owned by the struct elfsym and are untrusted bytes.
 *
 * A symbol with a size names nothing outside of it; one without (hand-written assembly, PLT
 * stubs) reaches to the next symbol or to the end of its section. Of several names at one address
 * the last in strcmp's order is taken. A .symtab, where there is one, takes the place of .dynsym.
 * PLT stubs are `NAME@plt`.
 */
#ifndef PMP_ELFSYM_H
#define PMP_ELFSYM_H

#include "proc/elf_file.h"

struct elfsym;

/* Reads all it needs: the files may go afterwards. `debug` may be NULL. Broken tables are read as
 * far as they make sense. NULL with errno ENOMEM. */
struct elfsym *elfsym__new(const struct elf_file *file, const struct elf_file *debug);
void elfsym__free(struct elfsym *s);

/* The name of the code at `addr` (an address in the object): the same pointer for each address
 * of one symbol. Returns 0; -ENOENT: no symbol covers it. */
int elfsym__find(const struct elfsym *s, uint64_t addr, const char **ret_name, uint64_t *ret_start);

/* Symbols held: for tests and messages. */
size_t elfsym__count(const struct elfsym *s);

#endif
