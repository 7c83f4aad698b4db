// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "proc/elf_file.h"

/* LSB 5.0, "DWARF Exception Header Encoding" */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
};

static bool leb128(const uint8_t *bytes, size_t len, bool is_signed, uint64_t *ret)
{
	unsigned int shift = 0;
	uint64_t value = 0;

	for (size_t i = 0; i < len && shift < 64; i++, shift += 7) {
		value |= (uint64_t)(bytes[i] & 0x7f) << shift;
		if (bytes[i] & 0x80)
			continue;
		if (is_signed && (bytes[i] & 0x40) && shift + 7 < 64)
			value |= ~(uint64_t)0 << (shift + 7);
		*ret = value;
		return true;
	}
	return false;
}

/* The pointer at bytes[4] of an .eh_frame_hdr that lies at `hdr_addr`. */
static bool eh_frame_pointer(const uint8_t *bytes, size_t len, uint64_t hdr_addr, uint64_t *ret)
{
	uint8_t encoding = bytes[1];
	uint64_t value = 0;
	size_t width = 0;

	if (encoding & PE_INDIRECT)
		return false;
	bytes += 4;
	len -= 4;
	switch (encoding & PE_FORMAT) {
	case PE_ULEB128:
	case PE_SLEB128:
		if (!leb128(bytes, len, (encoding & PE_FORMAT) == PE_SLEB128, &value))
			return false;
		break;
	case PE_UDATA2:
	case PE_SDATA2:
		width = 2;
		break;
	case PE_UDATA4:
	case PE_SDATA4:
		width = 4;
		break;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		width = 8;
		break;
	default:
		return false;
	}
	if (width) {
		if (width > len)
			return false;
		memcpy(&value, bytes, width);
		if ((encoding & PE_FORMAT) == PE_SDATA2)
			value = (uint64_t)(int64_t)(int16_t)value;
		else if ((encoding & PE_FORMAT) == PE_SDATA4)
			value = (uint64_t)(int64_t)(int32_t)value;
	}
	switch (encoding & PE_BASE) {
	case 0:
		break;
	case PE_PCREL:
		value += hdr_addr + 4;
		break;
	case PE_DATAREL:
		value += hdr_addr;
		break;
	default:
		return false;
	}
	*ret = value;
	return true;
}

/* The section says where .eh_frame ends; the segment goes on with other data. */
static void cut_to_section(const struct elf_file *f, struct elf_range *eh_frame)
{
	const struct elf_section *sections;
	size_t n;

	sections = elf_file__sections(f, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i].shdr;

		if (s->sh_addr == eh_frame->addr && s->sh_offset == eh_frame->offset &&
		    s->sh_type != SHT_NOBITS && (s->sh_flags & SHF_ALLOC) && s->sh_size &&
		    s->sh_size < eh_frame->len)
			eh_frame->len = s->sh_size;
	}
}

static int by_segment(const struct elf_file *f, const Elf64_Phdr *p, struct elf_range *ret_eh_frame,
		      struct elf_range *ret_hdr)
{
	struct elf_range hdr, eh_frame;
	uint8_t bytes[16] = {0};
	uint64_t addr;
	size_t len;

	if (elf_file__at_address(f, p->p_vaddr, &hdr))
		return -ENOENT;
	if (hdr.len > p->p_filesz)
		hdr.len = p->p_filesz;
	len = hdr.len < sizeof(bytes) ? hdr.len : sizeof(bytes);
	if (len <= 4 || elf_file__read(f, hdr.offset, bytes, len) || bytes[0] != 1 ||
	    !eh_frame_pointer(bytes, len, hdr.addr, &addr) ||
	    elf_file__at_address(f, addr, &eh_frame))
		return -ENOENT;
	cut_to_section(f, &eh_frame);
	*ret_eh_frame = eh_frame;
	*ret_hdr = hdr;
	return 0;
}

int elf_file__eh_frame(const struct elf_file *f, struct elf_range *ret_eh_frame,
		       struct elf_range *ret_hdr)
{
	const struct elf_section *sections;
	const Elf64_Phdr *segments;
	uint64_t size = elf_file__size(f);
	size_t n;

	segments = elf_file__segments(f, &n);
	for (size_t i = 0; i < n; i++) {
		if (segments[i].p_type == PT_GNU_EH_FRAME &&
		    !by_segment(f, &segments[i], ret_eh_frame, ret_hdr))
			return 0;
	}
	sections = elf_file__sections(f, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i].shdr;

		if (strcmp(sections[i].name, ".eh_frame") || s->sh_type == SHT_NOBITS ||
		    !(s->sh_flags & SHF_ALLOC) || (s->sh_flags & SHF_COMPRESSED) || !s->sh_size ||
		    s->sh_offset > size || s->sh_size > size - s->sh_offset)
			continue;
		*ret_eh_frame = (struct elf_range){s->sh_addr, s->sh_offset, s->sh_size};
		*ret_hdr = (struct elf_range){0};
		return 0;
	}
	return -ENOENT;
}
