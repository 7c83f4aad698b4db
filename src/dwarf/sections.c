// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/sections.h"

#include <errno.h>
#include <gelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/inflated.h"

#ifndef ELFCOMPRESS_ZSTD /* gABI of 2022 */
#define ELFCOMPRESS_ZSTD 2
#endif

#define MAX 32 /* DWARF has no more sections */

struct sections {
	struct inflated *inflated[MAX];
	size_t n;
};

/* Returns 0, or -EINVAL or -ENOMEM: then it is left as it is. */
static int inflate(struct sections *s, int fd, Elf_Scn *section, GElf_Shdr *header,
		   const char *name)
{
	struct inflated_options options = {
		.whole = header->sh_flags & SHF_STRINGS,
		.units = !strcmp(name, ".debug_info") || !strcmp(name, ".debug_types"),
	};
	Elf_Data *data = elf_getdata(section, NULL);
	Elf64_Chdr how;
	struct inflated *inflated;

	if (!data || !data->d_buf || data->d_size < sizeof(how) || s->n == MAX)
		return -EINVAL;
	memcpy(&how, data->d_buf, sizeof(how));
	if (how.ch_type != ELFCOMPRESS_ZLIB && how.ch_type != ELFCOMPRESS_ZSTD)
		return -EINVAL;
	options.how = how.ch_type == ELFCOMPRESS_ZSTD ? INFLATED_ZSTD : INFLATED_ZLIB;
	inflated = inflated__new(fd, header->sh_offset + sizeof(how), data->d_size - sizeof(how),
				 how.ch_size, &options);
	if (!inflated)
		return -errno;
	s->inflated[s->n++] = inflated;
	data->d_buf = inflated__bytes(inflated);
	data->d_size = how.ch_size;
	header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	header->sh_size = how.ch_size;
	gelf_update_shdr(section, header);
	return 0;
}

/* libdw does not miss it, and does not try to decompress it. */
static void leave_out(Elf_Scn *section, GElf_Shdr *header)
{
	header->sh_type = SHT_NOBITS;
	gelf_update_shdr(section, header);
}

struct sections *sections__prepare(Elf *elf, int fd)
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

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_COMPRESSED))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strncmp(name, ".debug_", 7))
			continue;
		err = inflate(s, fd, section, &header, name);
		if (err && err != -ENOMEM) {
			leave_out(section, &header);
			err = 0;
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
	for (size_t i = 0; s && i < s->n; i++)
		inflated__free(s->inflated[i]);
	free(s);
}

bool sections__damaged(const struct sections *s)
{
	bool damaged = false;

	for (size_t i = 0; s && i < s->n; i++)
		damaged |= inflated__damaged(s->inflated[i]);
	return damaged;
}
