/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elfsym_impl: what elfsym.c and elfsym_read.c share; for no one else. */
#ifndef PMP_ELFSYM_IMPL_H
#define PMP_ELFSYM_IMPL_H

#include "base/strbuf.h"
#include "proc/elf_file.h"

#include <stdbool.h>

/* 16 bytes: a server has some ten thousand of them */
struct elfsym_entry {
	uint64_t addr : 48;
	uint64_t section : 15; /* index into elfsym_area, or ELFSYM_NO_SECTION */
	uint64_t global : 1;   /* gdb's mst_text, not mst_file_text or an ifunc */
	uint32_t size;
	uint32_t name; /* offset in the table's names */
};

#define ELFSYM_MAX_ADDR ((1ull << 48) - 1)
/* Linked files have some ten sections of code; each symbol is compared with all of them. */
#define ELFSYM_MAX_SECTIONS 256

/* An executable section of the object, or, where it has no section headers, its segments. */
struct elfsym_area {
	uint64_t start, end;
};

struct elfsym_table {
	struct elfsym_entry *entries;
	size_t n, capacity;
	struct strbuf names;
};

/* Fill the table from one ELF. `areas` are the object's own, also for its debug file.
 * Returns 0 or -ENOMEM; the entries are not sorted yet. */
int elfsym_read__table(struct elfsym_table *t, const struct elf_file *f,
		       const struct elfsym_area *areas, size_t n_areas);

/* Add the PLT stubs, named after their relocations. Returns 0 or -ENOMEM. */
int elfsym_plt__read(struct elfsym_table *t, const struct elf_file *f,
		     const struct elfsym_area *areas, size_t n_areas);

/* Returns 0 or -ENOMEM. */
int elfsym_read__add(struct elfsym_table *t, const struct elfsym_entry *entry);

/* The area that starts at the section's address, or -1. */
int elfsym_read__area(const struct elfsym_area *areas, size_t n_areas, uint64_t start);

#endif
