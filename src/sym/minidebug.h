/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * minidebug: the symbol table that Fedora and RHEL leave in stripped programs, as an ELF file
 * compressed by xz in the section .gnu_debugdata (the "MiniDebugInfo" of gdb's manual).
 */
#ifndef PMP_MINIDEBUG_H
#define PMP_MINIDEBUG_H

#include "proc/elf_file.h"

struct minidebug;

/* NULL with errno: ENOENT (there is no such section), EINVAL (it is damaged), EFBIG (it would take
 * more than 64 MiB), ENOMEM. */
struct minidebug *minidebug__new(const struct elf_file *file);
void minidebug__free(struct minidebug *m);

/* Lives as long as the struct. */
const struct elf_file *minidebug__file(const struct minidebug *m);

#endif
