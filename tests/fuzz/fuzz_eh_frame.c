// SPDX-License-Identifier: GPL-2.0-or-later
/* Input: length of .eh_frame_hdr (2 bytes, little endian; the highest bit: what follows it is a
 * .debug_frame), .eh_frame_hdr, .eh_frame. */
#include "unwind/eh_frame.h"

#include <stdlib.h>
#include <string.h>

#define SECTION 0x100000ULL
#define HDR	0x200000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct cfi_row *row)
{
	if (row->start >= row->end)
		abort();
	if (row->cfa.kind != CFI_REGISTER && row->cfa.kind != CFI_EXPRESSION &&
	    row->cfa.kind != CFI_UNDEFINED)
		abort();
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++) {
		if (row->regs[reg].reg >= CFI_N_REGS)
			abort();
	}
}

static int see_row(const struct cfi_row *row, void *arg)
{
	struct eh_frame *eh = arg;
	struct cfi_row found;

	check(row);
	if (!eh_frame__find_row(eh, row->end - 1, &found)) {
		check(&found);
		if (found.start > row->end - 1 || found.end <= row->end - 1)
			abort();
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t pcs[] = {0, 0x1000, 0x1001, 0x2000, SECTION, UINT64_MAX};
	struct eh_frame_bytes bytes = {.eh_frame_addr = SECTION, .hdr_addr = HDR};
	struct eh_frame *eh, *other;
	struct cfi_row row;
	size_t malformed;

	if (size < 2)
		return 0;
	bytes.hdr_len = data[0] | (size_t)(data[1] & 0x7f) << 8;
	bytes.is_debug_frame = data[1] & 0x80;
	data += 2;
	size -= 2;
	if (bytes.hdr_len > size)
		bytes.hdr_len = size;
	bytes.hdr = bytes.hdr_len ? data : NULL;
	bytes.eh_frame = data + bytes.hdr_len;
	bytes.eh_frame_len = size - bytes.hdr_len;
	eh = eh_frame__new(&bytes);
	other = eh_frame__new(&bytes);
	if (eh && other) {
		for (size_t i = 0; i < sizeof(pcs) / sizeof(pcs[0]); i++) {
			if (!eh_frame__find_row(eh, pcs[i], &row))
				check(&row);
		}
		eh_frame__each_row(eh, see_row, other, &malformed);
	}
	eh_frame__free(other);
	eh_frame__free(eh);
	return 0;
}
