/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eh_index: from a pc to the place of an FDE: by the search table of .eh_frame_hdr, or by an
 * index made from a scan. Private to eh_frame.c. The table's bytes are borrowed and not trusted;
 * the index owns its entries.
 *
 * Source: LSB 5.0 "The .eh_frame_hdr Section".
 */
#ifndef PMP_EH_INDEX_H
#define PMP_EH_INDEX_H

#include "unwind/eh_frame.h"

/* The search table in .eh_frame_hdr. */
struct eh_table {
	const uint8_t *entries;
	size_t n;
	size_t value_len; /* bytes of one of an entry's two values */
	uint8_t encoding;
	uint64_t addr; /* of entries in the object */
	uint64_t hdr_addr;
};

/* Returns 0, or -EINVAL where there is no table that can be searched. */
int eh_table__init(struct eh_table *t, const struct eh_frame_bytes *bytes);

/*
 * The last entry that starts at or before pc: what it says of the FDE's first pc and of the
 * FDE's address. Returns 0; -ENOENT: none; -EINVAL: the table is not sorted.
 */
int eh_table__find(const struct eh_table *t, uint64_t pc, uint64_t *ret_start, uint64_t *ret_fde);

struct eh_index_entry {
	uint64_t start, end;
	uint64_t max_end; /* of this entry and all before it, once sorted */
	size_t offset;
};

struct eh_index {
	struct eh_index_entry *entries;
	size_t n, capacity;
};

/* Returns 0 or -ENOMEM. */
int eh_index__add(struct eh_index *index, uint64_t start, uint64_t end, size_t offset);

/* To be called after the last eh_index__add() and before the first eh_index__find(). */
void eh_index__sort(struct eh_index *index);

/* The offset of the FDE that covers pc (of several: the one that starts last), or -ENOENT. */
int eh_index__find(const struct eh_index *index, uint64_t pc, size_t *ret_offset);

void eh_index__free(struct eh_index *index);

#endif
