// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/eh_index.h"

#include "unwind/cursor.h"

#include <stdlib.h>

/* Bytes that a value takes, or 0 where that is not fixed. */
static size_t encoded_len(uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_SIGNED:
	case PE_UDATA8:
	case PE_SDATA8:
		return 8;
	case PE_UDATA4:
	case PE_SDATA4:
		return 4;
	case PE_UDATA2:
	case PE_SDATA2:
		return 2;
	default:
		return 0;
	}
}

int eh_table__init(struct eh_table *t, const struct eh_frame_bytes *bytes)
{
	struct cursor c = {.p = bytes->hdr, .end = bytes->hdr + bytes->hdr_len};
	uint8_t version = cursor__u8(&c), frame_encoding = cursor__u8(&c);
	uint8_t count_encoding = cursor__u8(&c), encoding = cursor__u8(&c);
	size_t value_len = encoded_len(encoding);
	uint64_t frame_addr, count;

	if (c.bad || version != 1 || frame_encoding == PE_OMIT || count_encoding == PE_OMIT ||
	    encoding == PE_OMIT || (encoding & PE_BASE) == PE_ALIGNED || !value_len)
		return -EINVAL;
	if (cursor__pointer(&c, frame_encoding, bytes->hdr_addr + 4, bytes->hdr_addr, &frame_addr))
		return -EINVAL;
	if (cursor__pointer(&c, count_encoding & (uint8_t)~PE_BASE, 0, 0, &count))
		return -EINVAL;
	if (count > cursor__left(&c) / (2 * value_len))
		return -EINVAL;
	*t = (struct eh_table){
		.entries = c.p,
		.n = count,
		.value_len = value_len,
		.encoding = encoding,
		.addr = bytes->hdr_addr + (uint64_t)(c.p - bytes->hdr),
		.hdr_addr = bytes->hdr_addr,
	};
	return 0;
}

/* Read value `i`, two to an entry; i is within the table. */
static int read_value(const struct eh_table *t, size_t i, uint64_t *ret_value)
{
	size_t at = i * t->value_len;
	struct cursor c = {.p = t->entries + at, .end = t->entries + at + t->value_len};

	return cursor__pointer(&c, t->encoding, t->addr + at, t->hdr_addr, ret_value);
}

int eh_table__find(const struct eh_table *t, uint64_t pc, uint64_t *ret_start, uint64_t *ret_fde)
{
	uint64_t lowest = 0, highest = UINT64_MAX, start;
	size_t low = 0,
	       high = t->n; /* entries below low start at or before pc, from high on after */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (read_value(t, 2 * middle, &start) || start < lowest || start > highest)
			return -EINVAL;
		if (start <= pc) {
			low = middle + 1;
			lowest = start;
		} else {
			high = middle;
			highest = start;
		}
	}
	if (!low)
		return -ENOENT;
	if (read_value(t, 2 * low - 1, ret_fde))
		return -EINVAL;
	*ret_start = lowest;
	return 0;
}

int eh_index__add(struct eh_index *index, uint64_t start, uint64_t end, size_t offset)
{
	if (index->n == index->capacity) {
		size_t capacity = index->capacity ? index->capacity * 2 : 64;
		struct eh_index_entry *entries = reallocarray(index->entries, capacity,
							      sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		index->entries = entries;
		index->capacity = capacity;
	}
	index->entries[index->n++] = (struct eh_index_entry){
		.start = start, .end = end, .offset = offset};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct eh_index_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* the section's order decides between FDEs for the same code: the first one is found */
	return x->offset > y->offset ? -1 : 1;
}

void eh_index__sort(struct eh_index *index)
{
	uint64_t max_end = 0;

	if (index->n)
		qsort(index->entries, index->n, sizeof(*index->entries), compare);
	for (size_t i = 0; i < index->n; i++) {
		if (index->entries[i].end > max_end)
			max_end = index->entries[i].end;
		index->entries[i].max_end = max_end;
	}
}

int eh_index__find(const struct eh_index *index, uint64_t pc, size_t *ret_offset)
{
	size_t low = 0, high = index->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->entries[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	/* ranges may overlap: an earlier one may still reach pc */
	while (low > 0 && index->entries[low - 1].max_end > pc) {
		if (index->entries[low - 1].end > pc) {
			*ret_offset = index->entries[low - 1].offset;
			return 0;
		}
		low--;
	}
	return -ENOENT;
}

void eh_index__free(struct eh_index *index)
{
	free(index->entries);
	*index = (struct eh_index){.entries = NULL};
}
