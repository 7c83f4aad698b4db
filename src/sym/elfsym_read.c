// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sym/elfsym_impl.h"

/* an object may have two tables of them */
#define MAX_NAMES   (128u << 20)
#define MAX_SYMBOLS (4u << 20)
#define MAX_HASHED  (512u << 10)
#define CHUNK	    512

/* Where a symbol table and its names are. */
struct source {
	uint64_t symbols, n;
	uint64_t names, names_len;
};

int elfsym_read__area(const struct elfsym_area *areas, size_t n_areas, uint64_t start)
{
	for (size_t i = 0; i < n_areas; i++) {
		if (areas[i].start == start)
			return (int)i;
	}
	return -1;
}

int elfsym_read__add(struct elfsym_table *t, const struct elfsym_entry *entry)
{
	if (t->n == t->capacity) {
		size_t want = t->capacity ? t->capacity + t->capacity / 2 : 256;
		struct elfsym_entry *entries = reallocarray(t->entries, want, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		t->entries = entries;
		t->capacity = want;
	}
	t->entries[t->n++] = *entry;
	return 0;
}

static bool section_source(const struct elf_file *f, uint32_t type, struct source *ret)
{
	const struct elf_section *sections;
	size_t n;

	sections = elf_file__sections(f, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i].shdr, *names;

		if (s->sh_type != type || s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= n ||
		    (s->sh_flags & SHF_COMPRESSED))
			continue;
		names = &sections[s->sh_link].shdr;
		/* number 0 is no symbol */
		if (names->sh_type != SHT_STRTAB || s->sh_size < 2 * sizeof(Elf64_Sym))
			continue;
		*ret = (struct source){s->sh_offset, s->sh_size / sizeof(Elf64_Sym),
				       names->sh_offset, names->sh_size};
		return true;
	}
	return false;
}

static uint32_t word_at(const struct elf_file *f, uint64_t offset)
{
	uint32_t word = 0;

	elf_file__read(f, offset, &word, sizeof(word));
	return word;
}

/* DT_GNU_HASH does not say how many symbols there are: the end of the highest chain does. */
static uint64_t count_by_gnu_hash(const struct elf_file *f, const struct elf_range *hash)
{
	uint64_t buckets = hash->offset + 16, chains, last = 0;
	uint32_t n_buckets, first, bloom;

	if (hash->len < 16)
		return 0;
	n_buckets = word_at(f, hash->offset);
	first = word_at(f, hash->offset + 4);
	bloom = word_at(f, hash->offset + 8);
	buckets += (uint64_t)bloom * 8;
	chains = buckets + (uint64_t)n_buckets * 4;
	if (chains > hash->offset + hash->len || n_buckets > MAX_HASHED)
		return 0;
	for (uint32_t i = 0; i < n_buckets; i++) {
		uint32_t symbol = word_at(f, buckets + (uint64_t)i * 4);

		if (symbol > last)
			last = symbol;
	}
	if (last < first || last > MAX_HASHED)
		return first;
	for (uint64_t at = chains + (last - first) * 4; at < hash->offset + hash->len; at += 4) {
		last++;
		if (last > MAX_HASHED || (word_at(f, at) & 1))
			break;
	}
	return last;
}

/* Without section headers (an image of memory): what the dynamic section says. */
static bool dynamic_source(const struct elf_file *f, struct source *ret)
{
	struct elf_range symbols = {0}, names = {0}, hash = {0}, gnu_hash = {0};
	const Elf64_Phdr *segments;
	uint64_t names_len = 0, n_symbols;
	size_t n;

	segments = elf_file__segments(f, &n);
	for (size_t i = 0; i < n; i++) {
		if (segments[i].p_type != PT_DYNAMIC)
			continue;
		for (uint64_t at = 0; at < segments[i].p_filesz; at += sizeof(Elf64_Dyn)) {
			struct elf_range *range = NULL;
			Elf64_Dyn d;

			if (elf_file__read(f, segments[i].p_offset + at, &d, sizeof(d)) ||
			    d.d_tag == DT_NULL)
				break;
			if (d.d_tag == DT_SYMTAB)
				range = &symbols;
			else if (d.d_tag == DT_STRTAB)
				range = &names;
			else if (d.d_tag == DT_HASH)
				range = &hash;
			else if (d.d_tag == DT_GNU_HASH)
				range = &gnu_hash;
			else if (d.d_tag == DT_STRSZ)
				names_len = d.d_un.d_val;
			if (range && elf_file__at_address(f, d.d_un.d_ptr, range))
				*range = (struct elf_range){0};
		}
		break;
	}
	if (!symbols.len || !names.len)
		return false;
	n_symbols = hash.len >= 8 ? word_at(f, hash.offset + 4) : count_by_gnu_hash(f, &gnu_hash);
	if (n_symbols > symbols.len / sizeof(Elf64_Sym))
		n_symbols = symbols.len / sizeof(Elf64_Sym);
	*ret = (struct source){symbols.offset, n_symbols, names.offset,
			       names_len < names.len ? names_len : names.len};
	return n_symbols > 1;
}

/* Index of the area that a symbol belongs to, or -1 if it names no code. */
static int area_of(const struct elf_file *f, const struct elfsym_area *areas, size_t n_areas,
		   const Elf64_Sym *sym)
{
	const struct elf_section *sections;
	const Elf64_Shdr *s;
	size_t n;
	int area;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= SHN_LORESERVE)
		return -1;
	sections = elf_file__sections(f, &n);
	for (size_t i = 0; !n && i < n_areas; i++) {
		if (sym->st_value >= areas[i].start && sym->st_value < areas[i].end)
			return (int)i;
	}
	if (sym->st_shndx >= n)
		return -1;
	s = &sections[sym->st_shndx].shdr;
	if ((s->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) != (SHF_ALLOC | SHF_EXECINSTR))
		return -1;
	area = elfsym_read__area(areas, n_areas, s->sh_addr);
	if (area < 0 || sym->st_value < areas[area].start || sym->st_value >= areas[area].end)
		return -1;
	return area;
}

static int add_symbol(struct elfsym_table *t, const Elf64_Sym *sym, int area)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);
	bool global = ELF64_ST_BIND(sym->st_info) != STB_LOCAL;
	const char *name;

	if (area < 0 || type == STT_SECTION || type == STT_FILE || type == STT_TLS ||
	    sym->st_name >= t->names.len)
		return 0;
	name = t->names.data + sym->st_name;
	/* compilers' labels, which gdb leaves out too */
	if (!*name || (!global && (!strncmp(name, ".L", 2) || !strncmp(name, "$L", 2))))
		return 0;
	return elfsym_read__add(
		t, &(struct elfsym_entry){
			   .addr = sym->st_value,
			   .section = (uint64_t)area,
			   .global = global && type != STT_GNU_IFUNC,
			   .size = sym->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)sym->st_size,
			   .name = sym->st_name,
		   });
}

int elfsym_read__table(struct elfsym_table *t, const struct elf_file *f,
		       const struct elfsym_area *areas, size_t n_areas)
{
	Elf64_Sym chunk[CHUNK];
	struct source source;
	size_t n_sections;
	void *names;
	int err;

	elf_file__sections(f, &n_sections);
	if (!section_source(f, SHT_SYMTAB, &source) && !section_source(f, SHT_DYNSYM, &source) &&
	    (n_sections || !dynamic_source(f, &source)))
		return 0;
	err = elf_file__read_alloc(f, source.names, source.names_len, MAX_NAMES, &names);
	if (err)
		return err == -ENOMEM ? err : 0;
	t->names = (struct strbuf){names, source.names_len, source.names_len + 1, false};
	if (source.n > MAX_SYMBOLS)
		source.n = MAX_SYMBOLS;
	for (uint64_t i = 1; i < source.n; i += CHUNK) {
		size_t n = source.n - i < CHUNK ? source.n - i : CHUNK;

		if (elf_file__read(f, source.symbols + i * sizeof(Elf64_Sym), chunk,
				   n * sizeof(Elf64_Sym)))
			break;
		for (size_t j = 0; j < n; j++) {
			err = add_symbol(t, &chunk[j], area_of(f, areas, n_areas, &chunk[j]));
			if (err)
				return err;
		}
	}
	return 0;
}
