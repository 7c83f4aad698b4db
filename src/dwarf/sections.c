// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/sections.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD /* gABI of 2022 */
#define ELFCOMPRESS_ZSTD 2
#endif

/* A section's bytes that are ours. */
struct bytes {
	struct bytes *next;
	max_align_t data[];
};

struct sections {
	struct bytes *first;
};

static bool is_unused(const char *name)
{
	static const char *const unused[] = {".debug_loc",   ".debug_loclists",
					     ".debug_macro", ".debug_macinfo",
					     ".debug_frame", ".debug_pubnames"};

	for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++) {
		if (!strcmp(name, unused[i]))
			return true;
	}
	return false;
}

/* Returns 0 or -ENOMEM; a section that makes no sense is left to libdw to refuse. */
static int decompress(struct sections *s, Elf_Scn *section, GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	struct bytes *bytes;
	Elf64_Chdr how;
	size_t len;

	if (!data || !data->d_buf || data->d_size < sizeof(how))
		return 0;
	memcpy(&how, data->d_buf, sizeof(how));
	/* what grows more than 4,096 times is made to */
	if (how.ch_type != ELFCOMPRESS_ZSTD || how.ch_size / 4096 > data->d_size)
		return 0;
	bytes = malloc(sizeof(*bytes) + how.ch_size);
	if (!bytes)
		return -ENOMEM;
	len = ZSTD_decompress(bytes->data, how.ch_size, (char *)data->d_buf + sizeof(how),
			      data->d_size - sizeof(how));
	if (ZSTD_isError(len) || len != how.ch_size) {
		free(bytes);
		return 0;
	}
	bytes->next = s->first;
	s->first = bytes;
	data->d_buf = bytes->data;
	data->d_size = len;
	header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	header->sh_size = len;
	gelf_update_shdr(section, header);
	return 0;
}

struct sections *sections__prepare(Elf *elf)
{
	struct sections *s = calloc(1, sizeof(*s));
	Elf_Scn *section = NULL;
	size_t names;
	int err = 0;

	if (!s)
		return NULL;
	if (gelf_getclass(elf) != ELFCLASS64 || elf_getshdrstrndx(elf, &names))
		err = -EINVAL;
	while (!err && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strncmp(name, ".debug_", 7))
			continue;
		if (is_unused(name)) {
			header.sh_type = SHT_NOBITS;
			gelf_update_shdr(section, &header);
		} else if (header.sh_flags & SHF_COMPRESSED) {
			err = decompress(s, section, &header);
		}
	}
	if (!err)
		return s;
	sections__free(s);
	errno = -err;
	return NULL;
}

void sections__free(struct sections *s)
{
	struct bytes *bytes, *next;

	for (bytes = s ? s->first : NULL; bytes; bytes = next) {
		next = bytes->next;
		free(bytes);
	}
	free(s);
}
