/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sections: gets a file's compressed debug sections ready for libdw, which would decompress every
 * one as it begins, needed or not, and before 0.189 does not know zstd.
 */
#ifndef PMP_DWARF_SECTIONS_H
#define PMP_DWARF_SECTIONS_H

#include <libelf.h>
#include <stdbool.h>

struct sections;

/*
 * To be called before dwarf_begin_elf(): the compressed .debug_ sections of `elf`, which is read
 * from `fd`, become such as are decompressed where they are read (inflated.h). Both are borrowed;
 * sections__free() comes after dwarf_end(). NULL with errno: EINVAL (not an ELF file that makes
 * sense), ENOMEM.
 */
struct sections *sections__prepare(Elf *elf, int fd);
void sections__free(struct sections *s);

/* Whether one was read that broke off or makes no sense. */
bool sections__damaged(const struct sections *s);

#endif
