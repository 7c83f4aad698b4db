/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_builder: assembles .eh_frame and .eh_frame_hdr bytes for tests. Addresses are stored
 * pc-relative in 4 bytes unless a test writes its own.
 */
#ifndef PMP_CFI_BUILDER_H
#define PMP_CFI_BUILDER_H

#include "unwind/eh_frame.h"

#include <stdlib.h>
#include <string.h>

#define CFI_SECTION 0x100000ULL /* address of .eh_frame */
#define CFI_HDR	    0x200000ULL /* address of .eh_frame_hdr */

/* Bytes and their number, as two arguments. */
#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define NO_BYTES   NULL, 0

struct cfi_builder {
	uint8_t bytes[8192];
	size_t len;
	size_t entry; /* where the open entry's length stands */
};

static inline void cfi__put(struct cfi_builder *b, const void *bytes, size_t len)
{
	if (len > sizeof(b->bytes) - b->len)
		abort();
	if (len)
		memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

static inline void cfi__put_u8(struct cfi_builder *b, uint8_t v)
{
	cfi__put(b, &v, sizeof(v));
}

static inline void cfi__put_u32(struct cfi_builder *b, uint32_t v)
{
	cfi__put(b, &v, sizeof(v));
}

static inline void cfi__put_u64(struct cfi_builder *b, uint64_t v)
{
	cfi__put(b, &v, sizeof(v));
}

static inline size_t cfi__open(struct cfi_builder *b)
{
	b->entry = b->len;
	cfi__put_u32(b, 0);
	return b->entry;
}

static inline void cfi__close(struct cfi_builder *b)
{
	uint32_t len = (uint32_t)(b->len - b->entry - 4);

	memcpy(b->bytes + b->entry, &len, sizeof(len));
}

/* A CIE whose augmentation data is given. Returns its offset. */
static inline size_t cfi__cie(struct cfi_builder *b, uint8_t version, const char *augmentation,
			      const uint8_t *data, size_t data_len, const uint8_t *program,
			      size_t program_len)
{
	size_t at = cfi__open(b);

	cfi__put_u32(b, 0);
	cfi__put_u8(b, version);
	cfi__put(b, augmentation, strlen(augmentation) + 1);
	if (version == 4)
		cfi__put(b, BYTES(8, 0));
	if (!strncmp(augmentation, "eh", 2))
		cfi__put_u64(b, 0x1234);
	cfi__put(b, BYTES(1, 0x78, CFI_RA)); /* code alignment 1, data alignment -8 */
	if (augmentation[0] == 'z')
		cfi__put_u8(b, (uint8_t)data_len);
	cfi__put(b, data, data_len);
	cfi__put(b, program, program_len);
	cfi__close(b);
	return at;
}

/* CFA = rsp + 8, RA at CFA - 8: what every function starts with. */
#define CFI_AT_ENTRY BYTES(0x0c, CFI_RSP, 8, 0x80 | CFI_RA, 1)

static inline size_t cfi__usual_cie(struct cfi_builder *b)
{
	return cfi__cie(b, 1, "zR", BYTES(0x1b), CFI_AT_ENTRY);
}

static inline size_t cfi__signal_cie(struct cfi_builder *b)
{
	return cfi__cie(b, 1, "zRS", BYTES(0x1b), NO_BYTES);
}

static inline size_t cfi__fde(struct cfi_builder *b, size_t cie, uint64_t start, uint32_t len,
			      const uint8_t *program, size_t program_len)
{
	size_t at = cfi__open(b);

	cfi__put_u32(b, (uint32_t)(b->len - cie));
	cfi__put_u32(b, (uint32_t)(start - (CFI_SECTION + b->len)));
	cfi__put_u32(b, len);
	cfi__put_u8(b, 0); /* no augmentation data */
	cfi__put(b, program, program_len);
	cfi__close(b);
	return at;
}

/* An .eh_frame_hdr with a table of {start, offset of FDE}. */
struct cfi_table_entry {
	uint64_t start;
	size_t fde;
};

static inline void cfi__hdr(struct cfi_builder *hdr, const struct cfi_table_entry *entries,
			    size_t n, uint32_t count)
{
	cfi__put(hdr, BYTES(1, 0x1b, 0x03, 0x3b));
	cfi__put_u32(hdr, (uint32_t)(CFI_SECTION - (CFI_HDR + 4)));
	cfi__put_u32(hdr, count);
	for (size_t i = 0; i < n; i++) {
		cfi__put_u32(hdr, (uint32_t)(entries[i].start - CFI_HDR));
		cfi__put_u32(hdr, (uint32_t)(CFI_SECTION + entries[i].fde - CFI_HDR));
	}
}

static inline struct eh_frame *cfi__new(const struct cfi_builder *b, const struct cfi_builder *hdr)
{
	struct eh_frame_bytes bytes = {
		.eh_frame = b->bytes,
		.eh_frame_len = b->len,
		.eh_frame_addr = CFI_SECTION,
		.hdr = hdr ? hdr->bytes : NULL,
		.hdr_len = hdr ? hdr->len : 0,
		.hdr_addr = CFI_HDR,
	};

	return eh_frame__new(&bytes);
}

#endif
