// SPDX-License-Identifier: GPL-2.0-or-later
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "proc/elf_file.h"

#define MAX_LEN (64u << 20)
/* What zlib can make of a byte, at most: a size that claims more is a lie, and costs no memory. */
#define MAX_RATIO 1032

/* Returns the number of bytes inflated, or 0. */
static size_t inflate_into(uint8_t *to, size_t to_len, const uint8_t *from, size_t from_len)
{
	uLongf len = to_len;

	return uncompress(to, &len, from, from_len) == Z_OK && len == to_len ? len : 0;
}

static int inflate_bytes(const uint8_t *from, size_t from_len, uint64_t len, void **ret_bytes,
			 size_t *ret_len)
{
	void *bytes;

	if (!len || len > MAX_LEN || len / MAX_RATIO > from_len)
		return -EFBIG;
	bytes = malloc(len);
	if (!bytes)
		return -ENOMEM;
	if (!inflate_into(bytes, len, from, from_len)) {
		free(bytes);
		return -EINVAL;
	}
	*ret_bytes = bytes;
	*ret_len = len;
	return 0;
}

/* How the sizes of what is compressed are said: by a header since gABI 4, else after "ZLIB". */
static int inflate_section(const uint8_t *raw, size_t raw_len, bool has_header, void **ret_bytes,
			   size_t *ret_len)
{
	Elf64_Chdr header;
	uint64_t len;

	if (has_header) {
		if (raw_len < sizeof(header))
			return -EINVAL;
		memcpy(&header, raw, sizeof(header));
		if (header.ch_type != ELFCOMPRESS_ZLIB)
			return -EINVAL;
		return inflate_bytes(raw + sizeof(header), raw_len - sizeof(header), header.ch_size,
				     ret_bytes, ret_len);
	}
	if (raw_len < 12 || memcmp(raw, "ZLIB", 4) != 0)
		return -EINVAL;
	memcpy(&len, raw + 4, sizeof(len));
	return inflate_bytes(raw + 12, raw_len - 12, be64toh(len), ret_bytes, ret_len);
}

static int read_section(const struct elf_file *f, const struct elf_section *section,
			void **ret_bytes, size_t *ret_len)
{
	const Elf64_Shdr *s = &section->shdr;
	bool has_header = s->sh_flags & SHF_COMPRESSED;
	void *raw;
	int err;

	if (s->sh_type == SHT_NOBITS || !s->sh_size)
		return -ENOENT;
	err = elf_file__read_alloc(f, s->sh_offset, s->sh_size, MAX_LEN, &raw);
	if (err)
		return err;
	if (has_header || section->name[1] == 'z') {
		err = inflate_section(raw, s->sh_size, has_header, ret_bytes, ret_len);
		free(raw);
		return err;
	}
	*ret_bytes = raw;
	*ret_len = s->sh_size;
	return 0;
}

int elf_file__debug_frame(const struct elf_file *f, void **ret_bytes, size_t *ret_len)
{
	const struct elf_section *sections;
	size_t n;

	sections = elf_file__sections(f, &n);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(sections[i].name, ".debug_frame") ||
		    !strcmp(sections[i].name, ".zdebug_frame"))
			return read_section(f, &sections[i], ret_bytes, ret_len);
	}
	return -ENOENT;
}
