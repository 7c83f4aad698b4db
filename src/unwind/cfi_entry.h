/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_entry: reads the entries of .eh_frame and of .debug_frame, and CIEs in full. Private to
 * eh_frame.c. Pure; the bytes are borrowed and not trusted.
 *
 * Source: LSB 5.0 "Exception Frames"; DWARF 5, sections 6.4.1 and 7.4.
 */
#ifndef PMP_CFI_ENTRY_H
#define PMP_CFI_ENTRY_H

#include "unwind/cfa_program.h"

struct cfi_section {
	const uint8_t *bytes;
	size_t len;
	uint64_t addr; /* in the object's address space */
	bool is_debug; /* .debug_frame: CIEs are told, and found, in another way */
};

struct cfi_entry {
	size_t next;	 /* offset of the entry after this one */
	bool terminator; /* length 0 */
	bool is_cie;
	size_t cie_offset; /* an FDE's */
	struct cursor body;
};

/* Where the byte at `p` lies in the object. */
static inline uint64_t cfi_section__address(const struct cfi_section *s, const uint8_t *p)
{
	return s->addr + (uint64_t)(p - s->bytes);
}

/* Returns 0 or -EINVAL. */
int cfi_entry__read(const struct cfi_section *s, size_t offset, struct cfi_entry *ret_entry);

/* Returns 0, -EINVAL or -EOPNOTSUPP; *cie is then undefined. */
int cfi_entry__read_cie(const struct cfi_section *s, size_t offset, struct cfi_cie *cie);

#endif
