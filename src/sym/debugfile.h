/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugfile: finds the separate debug file of an object, as gdb does: by build id, then by the
 * name and checksum in .gnu_debuglink. Only regular files are read, and only one that proves to
 * belong to the object is taken.
 */
#ifndef PMP_DEBUGFILE_H
#define PMP_DEBUGFILE_H

#include "proc/elf_file.h"

/*
 * `path`: of the object, as mapped. `debug_dir`: NULL for /usr/lib/debug. Returns 0 and a file
 * for the caller to free; -ENOENT: there is none; -ENOMEM.
 */
int debugfile__find(const struct elf_file *object, const char *path, const char *debug_dir,
		    struct elf_file **ret_file);

/*
 * The file that dwz moved common debug information to, which .gnu_debugaltlink of `file` names: by
 * its build id in `debug_dir`, then by name, and only if the build id is the right one. Returns 0
 * and a descriptor for the caller to close, -1 if `file` has no such section; -ENOENT: it is not
 * to be found; -ENOMEM.
 */
int debugfile__find_alt(const struct elf_file *file, const char *debug_dir, int *ret_fd);

/* CRC-32 as .gnu_debuglink has it (IEEE 802.3, as zlib), continuing from `crc`, at first 0. */
uint32_t debugfile__crc32(uint32_t crc, const void *bytes, size_t len);

#endif
