/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_image: an ELF file made again from what a process has of it in memory: the ELF header, the
 * program headers and the read-only segments at their places in the file, plus the dynamic
 * section with its addresses as in the file. Section headers, data, and code that holds no tables
 * are left out (zeros).
 */
#ifndef PMP_ELF_IMAGE_H
#define PMP_ELF_IMAGE_H

#include "proc/memory.h"

#include <stdbool.h>

struct elf_image {
	void *bytes;
	size_t len;
};

/*
 * `base`: where the start of the file is mapped. `limit`: nothing at or over base + limit is read
 * (0: no limit). Returns 0; -EINVAL: no x86-64 ELF object there; -EFBIG; -ENOMEM; what `read`
 * returned for the headers (segments that cannot be read stay zero).
 */
int elf_image__read(memory_read_fn read, void *arg, uint64_t base, uint64_t limit,
		    struct elf_image *ret_image);

/* Whether both are images of one file: the headers, the segments that were read and what says where
 * the symbols are. The rest of the dynamic section holds addresses, which each process has other
 * ones of. */
bool elf_image__same(const struct elf_image *a, const struct elf_image *b);

void elf_image__free(struct elf_image *image);

#endif
