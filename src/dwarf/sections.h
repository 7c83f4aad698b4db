/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sections: gets a file's debug sections ready for libdw, which decompresses every one that it
 * knows as it begins, needed or not.
 */
#ifndef PMP_DWARF_SECTIONS_H
#define PMP_DWARF_SECTIONS_H

#include <libelf.h>

struct sections;

/*
 * To be called before dwarf_begin_elf(). Those that nobody here reads (of variables and macros,
 * often the larger half) are left out; those compressed with zstd, which libelf reads from 0.189 on
 * only, are decompressed. `elf` is borrowed; sections__free() comes after dwarf_end(). NULL with
 * errno: EINVAL (not an ELF file that makes sense), ENOMEM.
 */
struct sections *sections__prepare(Elf *elf);
void sections__free(struct sections *s);

#endif
