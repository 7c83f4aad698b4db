// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mutate: ELF files that lie. `mutate FILE NUMBER OUT` writes FILE to OUT, damaged in the way that
 * the number says, and prints the way's name; a number over the last of `mutate list` is a seed for
 * random damage. The same number makes the same file of the same file.
 *
 * A name that ends in `!` says that what unwinding needs may be damaged; of all others the stacks
 * are as before.
 */
#include "mutate.h"

#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUGE_VALUE (1ull << 62)
#define MIB	   ((size_t)1 << 20)

static Elf64_Ehdr *header(struct mutant *m)
{
	return (Elf64_Ehdr *)m->bytes;
}

static Elf64_Phdr *segment(struct mutant *m, unsigned int type)
{
	Elf64_Phdr *p = (Elf64_Phdr *)(m->bytes + header(m)->e_phoff);

	for (int i = 0; i < header(m)->e_phnum; i++) {
		if (p[i].p_type == type)
			return &p[i];
	}
	mutate__die("no segment of type %#x", type);
}

/* What each of the ways does. An argument tells variants apart. */

static void links_to_itself(struct mutant *m, uint64_t arg)
{
	for (size_t i = 0; i < header(m)->e_shnum; i++) {
		mutant__section(m, i)->sh_link = arg ? (uint32_t)arg : (uint32_t)i;
		mutant__section(m, i)->sh_info = (uint32_t)i;
	}
}

static void names_section(struct mutant *m, uint64_t arg)
{
	/* 0: the symbols are the names; 1: a string table whose name is in itself, all of them */
	if (arg == 0)
		header(m)->e_shstrndx = (uint16_t)mutant__find(m, ".symtab");
	else if (arg == 1)
		for (size_t i = 1; i < header(m)->e_shnum; i++)
			mutant__section(m, i)->sh_type = SHT_STRTAB;
	else
		header(m)->e_shstrndx = (uint16_t)arg;
}

static void n_sections(struct mutant *m, uint64_t arg)
{
	header(m)->e_shnum = (uint16_t)arg;
	if (arg == 0) {
		mutant__section(m, 0)->sh_size = HUGE_VALUE;
		mutant__section(m, 0)->sh_link = UINT32_MAX;
		header(m)->e_shstrndx = SHN_XINDEX;
	}
}

static void sections_at(struct mutant *m, uint64_t arg)
{
	header(m)->e_shoff = arg;
}

static void all_sizes(struct mutant *m, uint64_t arg)
{
	for (size_t i = 1; i < header(m)->e_shnum; i++)
		mutant__section(m, i)->sh_size = arg;
}

static void all_offsets(struct mutant *m, uint64_t arg)
{
	for (size_t i = 1; i < header(m)->e_shnum; i++) {
		mutant__section(m, i)->sh_offset = arg;
		if (!arg)
			mutant__section(m, i)->sh_size = m->len;
	}
}

/* Sections without end, all of them code that overlaps. */
static void many_sections(struct mutant *m, uint64_t arg)
{
	size_t n = arg, names = header(m)->e_shstrndx;
	Elf64_Shdr *all = calloc(n, sizeof(*all));

	for (size_t i = 0; i < n; i++) {
		all[i] = *mutant__section(m, i < header(m)->e_shnum ? i : 1);
		if (i && i != names) {
			all[i].sh_flags |= SHF_ALLOC | SHF_EXECINSTR;
			all[i].sh_addr = i;
			all[i].sh_size = m->len;
		}
	}
	header(m)->e_shoff = mutant__append(m, all, n * sizeof(*all));
	header(m)->e_shnum = (uint16_t)n;
	free(all);
}

static void n_segments(struct mutant *m, uint64_t arg)
{
	header(m)->e_phnum = (uint16_t)arg;
}

static void segments_at(struct mutant *m, uint64_t arg)
{
	header(m)->e_phoff = arg;
}

static void load_size(struct mutant *m, uint64_t arg)
{
	Elf64_Phdr *p = (Elf64_Phdr *)(m->bytes + header(m)->e_phoff);

	for (int i = 0; i < header(m)->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD)
			p[i].p_filesz = p[i].p_memsz = arg;
	}
}

static void all_load_at_zero(struct mutant *m, uint64_t arg)
{
	Elf64_Phdr *p = (Elf64_Phdr *)(m->bytes + header(m)->e_phoff);

	for (int i = 0; i < header(m)->e_phnum; i++) {
		p[i].p_type = PT_LOAD;
		p[i].p_vaddr = p[i].p_offset = arg;
		p[i].p_filesz = p[i].p_memsz = m->len;
	}
}

static void note_segment(struct mutant *m, uint64_t arg)
{
	segment(m, PT_NOTE)->p_filesz = arg;
	segment(m, PT_NOTE)->p_align = 3;
}

/* 0: the name is huge, 1: the description is, 2: both are nothing */
static void notes(struct mutant *m, uint64_t arg)
{
	for (size_t i = 1; i < header(m)->e_shnum; i++) {
		Elf64_Shdr *s = mutant__section(m, i);
		Elf64_Nhdr *note = (Elf64_Nhdr *)(m->bytes + s->sh_offset);

		if (s->sh_type != SHT_NOTE)
			continue;
		if (arg != 1)
			note->n_namesz = arg == 0 ? UINT32_MAX : 0;
		if (arg != 0)
			note->n_descsz = arg == 1 ? UINT32_MAX : 0;
	}
}

enum symbol_field { NAME, SIZE, VALUE, SECTION, INFO };

static void each_symbol(struct mutant *m, const char *table, enum symbol_field field,
			uint64_t value)
{
	Elf64_Shdr *s = mutant__section(m, mutant__find(m, table));
	Elf64_Sym *all = (Elf64_Sym *)(m->bytes + s->sh_offset);

	for (size_t i = 1; i < s->sh_size / sizeof(*all); i++) {
		switch (field) {
		case NAME:
			all[i].st_name = (uint32_t)value;
			break;
		case SIZE:
			all[i].st_size = value;
			break;
		case VALUE:
			all[i].st_value = value;
			break;
		case SECTION:
			all[i].st_shndx = (uint16_t)value;
			break;
		case INFO:
			all[i].st_info = (uint8_t)value;
		}
	}
}

static void symbol_names(struct mutant *m, uint64_t arg)
{
	each_symbol(m, ".symtab", NAME, arg);
	each_symbol(m, ".dynsym", NAME, arg);
}

static void symbol_sizes(struct mutant *m, uint64_t arg)
{
	each_symbol(m, ".symtab", SIZE, arg);
}

static void symbol_values(struct mutant *m, uint64_t arg)
{
	each_symbol(m, ".symtab", VALUE, arg);
}

static void symbol_sections(struct mutant *m, uint64_t arg)
{
	each_symbol(m, ".symtab", SECTION, arg);
}

static void symbol_types(struct mutant *m, uint64_t arg)
{
	each_symbol(m, ".symtab", INFO, arg);
}

static void symbol_entry_size(struct mutant *m, uint64_t arg)
{
	mutant__section(m, mutant__find(m, ".symtab"))->sh_entsize = arg;
	mutant__section(m, mutant__find(m, ".dynsym"))->sh_entsize = arg;
}

/* 0: itself; 1: code; 2: beyond */
static void symbol_strings(struct mutant *m, uint64_t arg)
{
	Elf64_Shdr *s = mutant__section(m, mutant__find(m, ".symtab"));
	uint32_t self = (uint32_t)mutant__find(m, ".symtab");

	s->sh_link = arg == 0 ? self : arg == 1 ? (uint32_t)mutant__find(m, ".text") : 4711;
	if (arg == 0)
		s->sh_type = SHT_STRTAB;
	if (arg == 1)
		mutant__section(m, s->sh_link)->sh_type = SHT_STRTAB;
}

/* Names of that length, one for every symbol, that no NUL ends. */
static void long_names(struct mutant *m, uint64_t arg)
{
	char *text = malloc(arg);

	memset(text, 'n', arg);
	mutant__set(m, ".strtab", text, arg);
	each_symbol(m, ".symtab", NAME, 1);
	free(text);
}

/* Millions of symbols at one place. */
static void many_symbols(struct mutant *m, uint64_t arg)
{
	Elf64_Shdr *s = mutant__section(m, mutant__find(m, ".symtab"));
	Elf64_Sym *old = (Elf64_Sym *)(m->bytes + s->sh_offset), *all = calloc(arg, sizeof(*all));
	size_t n = s->sh_size / sizeof(*all);
	Elf64_Sym one = old[n - 1];

	for (size_t i = 0; i < n; i++) {
		if (ELF64_ST_TYPE(old[i].st_info) == STT_FUNC && old[i].st_size)
			one = old[i];
	}
	for (size_t i = 1; i < arg; i++) {
		all[i] = one;
		all[i].st_size = i;
	}
	mutant__set(m, ".symtab", all, arg * sizeof(*all));
	free(all);
}

/* A table that is nothing but a hole in the file. */
static void hole(struct mutant *m, const char *name, uint64_t size)
{
	Elf64_Shdr *s = mutant__section(m, mutant__find(m, name));

	s->sh_offset = (m->len + 4095) & ~4095ull;
	s->sh_size = size;
	s->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	m->hole = s->sh_offset + size;
}

static void hole_of_strings(struct mutant *m, uint64_t arg)
{
	hole(m, ".strtab", arg * MIB);
}

static void hole_of_symbols(struct mutant *m, uint64_t arg)
{
	hole(m, ".symtab", arg * MIB);
}

static void hole_of_info(struct mutant *m, uint64_t arg)
{
	hole(m, ".debug_info", arg * MIB);
}

static void hole_of_lines(struct mutant *m, uint64_t arg)
{
	hole(m, ".debug_line", arg * MIB);
}

static void hole_of_abbreviations(struct mutant *m, uint64_t arg)
{
	hole(m, ".debug_abbrev", arg * MIB);
}

static uint8_t *section_bytes(struct mutant *m, const char *name, size_t need)
{
	Elf64_Shdr *s = mutant__section(m, mutant__find(m, name));

	if (s->sh_size < need)
		mutate__die("%s has %zu bytes only", name, (size_t)s->sh_size);
	return m->bytes + s->sh_offset;
}

static void hdr_count(struct mutant *m, uint64_t arg)
{
	uint32_t count = (uint32_t)arg;

	memcpy(section_bytes(m, ".eh_frame_hdr", 12) + 8, &count, 4);
}

static void hdr_encoding(struct mutant *m, uint64_t arg)
{
	memset(section_bytes(m, ".eh_frame_hdr", 12) + 1, (int)arg, 3);
}

static void hdr_table(struct mutant *m, uint64_t arg)
{
	Elf64_Shdr *s = mutant__section(m, mutant__find(m, ".eh_frame_hdr"));

	memset(m->bytes + s->sh_offset + 12, (int)arg, s->sh_size - 12);
}

static void cie_length(struct mutant *m, uint64_t arg)
{
	uint32_t length = (uint32_t)arg;

	memcpy(section_bytes(m, ".eh_frame", 12), &length, 4);
}

static void all_of_eh_frame(struct mutant *m, uint64_t arg)
{
	Elf64_Shdr *s = mutant__section(m, mutant__find(m, ".eh_frame"));

	memset(m->bytes + s->sh_offset, (int)arg, s->sh_size);
}

static void debuglink(struct mutant *m, uint64_t arg)
{
	static const char *const names[] = {"no NUL at the end of all this, and no checksum",
					    "../../../../dev/zero\0\0\0\0", "\0\0\0\0",
					    "/dev/zero\0\0\0\0\0\0\0\0", "x"};
	static const size_t lengths[] = {46, 24, 4, 16, 1};

	mutant__add(m, ".gnu_debuglink", names[arg], lengths[arg]);
}

static void altlink(struct mutant *m, uint64_t arg)
{
	Elf64_Shdr *s = mutant__section(m, mutant__find(m, ".note.gnu.build-id"));
	char text[256] = "no NUL at the end";
	size_t len = strlen(text);

	/* the file itself: by its own name and build id */
	if (arg) {
		len = strlen(strcpy(text, arg == 1 ? "victim.so" : "/dev/zero")) + 1;
		memcpy(text + len, m->bytes + s->sh_offset + 16, s->sh_size - 16);
		len += s->sh_size - 16;
	}
	mutant__add(m, ".gnu_debugaltlink", text, len);
}

static void debugdata_garbage(struct mutant *m, uint64_t arg)
{
	uint8_t bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * arg);
	memcpy(bytes,
	       "\xfd"
	       "7zXZ\0",
	       6);
	mutant__add(m, ".gnu_debugdata", bytes, sizeof(bytes));
}

/* xz of so many MiB of zeros */
static void debugdata_bomb(struct mutant *m, uint64_t arg)
{
	size_t room = arg * MIB / 500 + 65536;
	uint8_t *zeros = calloc(1, MIB), *out = malloc(room);
	lzma_stream stream = LZMA_STREAM_INIT;

	if (lzma_easy_encoder(&stream, 0, LZMA_CHECK_CRC32) != LZMA_OK)
		mutate__die("no xz");
	stream.next_out = out;
	stream.avail_out = room;
	for (size_t i = 0; i <= arg; i++) {
		stream.next_in = zeros;
		stream.avail_in = i < arg ? MIB : 0;
		if (lzma_code(&stream, i < arg ? LZMA_RUN : LZMA_FINISH) !=
		    (i < arg ? LZMA_OK : LZMA_STREAM_END))
			mutate__die("no xz");
	}
	mutant__add(m, ".gnu_debugdata", out, room - stream.avail_out);
	lzma_end(&stream);
	free(zeros);
	free(out);
}

static const char *const compressible[] = {".debug_info", ".debug_str", ".debug_line",
					   ".debug_abbrev"};

/* zlib of so many MiB of zeros, of which it says the truth (0), that it is nothing (1), or more (2)
 */
static void inflate_bomb(struct mutant *m, uint64_t arg)
{
	struct bytes data = {0};
	uint64_t size = (arg & 0xffff) * MIB;
	uint64_t claims = arg >> 16 == 0 ? size : arg >> 16 == 1 ? 16 : size * 64;

	deflate(&data, NULL, 0, 0, size);
	for (size_t i = 0; i < 4; i++)
		set_compressed(m, compressible[i], ELFCOMPRESS_ZLIB, claims, &data);
	free(data.at);
}

static void compressed_claims(struct mutant *m, uint64_t arg)
{
	struct bytes data = {0};

	deflate(&data, "abcdef", 6, 'x', 1000);
	for (size_t i = 0; i < 4; i++)
		set_compressed(m, compressible[i], ELFCOMPRESS_ZLIB, arg, &data);
	free(data.at);
}

static void compressed_type(struct mutant *m, uint64_t arg)
{
	struct bytes data = {0};

	bytes__add(&data, "\x28\xb5\x2f\xfd garbage all the way down, and no frame", 46);
	for (size_t i = 0; i < 4; i++)
		set_compressed(m, compressible[i], (uint32_t)arg, 4096, &data);
	free(data.at);
}

/* zstd's blocks that repeat one byte, 128 KiB each (RFC 8878, 3.1.1.2) */
static void zstd_bomb(struct mutant *m, uint64_t arg)
{
	uint64_t size = arg * MIB;
	struct bytes data = {0};

	bytes__add(&data, "\x28\xb5\x2f\xfd\xe0", 5); /* one segment, its size in 8 bytes */
	bytes__add(&data, &size, 8);
	for (uint64_t at = 0; at < size; at += 1 << 17) {
		uint32_t block = (1u << 17) << 3 | 1 << 1 | (at + (1 << 17) >= size);

		bytes__add(&data, &block, 3);
		bytes__add(&data, "", 1);
	}
	/* what follows the frame is ours: it makes the size a plausible one */
	bytes__fill(&data, 0, size / 4096);
	for (size_t i = 0; i < 4; i++)
		set_compressed(m, compressible[i], 2, size, &data);
	free(data.at);
}

static void compressed_header_alone(struct mutant *m, uint64_t arg)
{
	for (size_t i = 0; i < 4; i++) {
		Elf64_Shdr *s = mutant__section(m, mutant__look_for(m, compressible[i]));

		s->sh_flags |= SHF_COMPRESSED;
		s->sh_size = arg;
	}
}

/* The section is nothing but this byte. */
static void filled(struct mutant *m, const char *name, uint64_t byte)
{
	struct bytes data = {0};

	if (mutant__look_for(m, name) == 0)
		name = ".debug_info";
	bytes__fill(&data, (uint8_t)byte, 65536);
	mutant__set(m, name, data.at, data.len);
	free(data.at);
}

static const char *const debug_sections[] = {
	".debug_abbrev", ".debug_info",	    ".debug_line",   ".debug_str",     ".debug_str_offsets",
	".debug_addr",	 ".debug_rnglists", ".debug_ranges", ".debug_aranges", ".debug_line_str"};

/* The low byte fills, the others are the section. */
static void filled_section(struct mutant *m, uint64_t arg)
{
	filled(m, debug_sections[arg >> 8], arg & 0xff);
}

static void all_filled(struct mutant *m, uint64_t arg)
{
	for (size_t i = 0; i < sizeof(debug_sections) / sizeof(debug_sections[0]); i++)
		filled(m, debug_sections[i], arg);
}

static void no_unit_ends(struct mutant *m, uint64_t arg)
{
	uint32_t length = (uint32_t)arg;

	memcpy(section_bytes(m, ".debug_info", 12), &length, 4);
	if (length == UINT32_MAX)
		memset(section_bytes(m, ".debug_info", 12) + 4, 0x7f, 8);
}

/* random damage: where it may be */
enum region { SECTION_HEADERS, SYMBOLS, DEBUG, ANYWHERE, HEADERS, N_REGIONS };

static void region_of(struct mutant *m, enum region region, uint64_t *ret_start, uint64_t *ret_len)
{
	size_t candidates[256], n = 0;

	*ret_start = 0;
	*ret_len = m->len;
	if (region == HEADERS) {
		*ret_len = sizeof(Elf64_Ehdr) + header(m)->e_phnum * sizeof(Elf64_Phdr);
	} else if (region == SECTION_HEADERS) {
		*ret_start = header(m)->e_shoff;
		*ret_len = header(m)->e_shnum * sizeof(Elf64_Shdr);
	} else if (region != ANYWHERE) {
		for (size_t i = 1; i < header(m)->e_shnum && n < 256; i++) {
			const Elf64_Shdr *s = mutant__section(m, i);
			bool debug = !strncmp(mutant__name(m, i), ".debug_", 7);
			bool symbols = s->sh_type == SHT_SYMTAB ||
				       (s->sh_type == SHT_STRTAB && !(s->sh_flags & SHF_ALLOC));

			if (region == DEBUG ? debug : symbols)
				candidates[n++] = i;
		}
		if (n) {
			const Elf64_Shdr *s = mutant__section(m, candidates[mutate__random() % n]);

			*ret_start = s->sh_offset;
			*ret_len = s->sh_size < 4096 ? s->sh_size : 4096;
		}
	}
}

static const char *random_damage(struct mutant *m, uint64_t seed)
{
	static const char *const names[] = {"random section headers!", "random symbols",
					    "random debug", "random anywhere!", "random headers!"};
	static const uint64_t words[] = {0,	    UINT64_MAX, INT64_MAX, 1ull << 63,
					 INT32_MAX, 0x80000000, 1,	   0xff80};
	enum region region;
	size_t n;

	mutate__seed(seed);
	region = seed % N_REGIONS;
	n = 1 + mutate__random() % (region == DEBUG ? 64 : 16);
	for (size_t i = 0; i < n; i++) {
		size_t width = (size_t)1 << mutate__random() % 4;
		uint64_t start, len, at, word = mutate__random();

		region_of(m, region, &start, &len);
		/* what says where it is may be damaged by now */
		if (len < width || start > m->len || len > m->len - start)
			continue;
		at = start + mutate__random() % (len - width + 1);
		if (mutate__random() % 2)
			word = words[word % (sizeof(words) / sizeof(words[0]))];
		memcpy(m->bytes + at, &word, width);
	}
	return names[region];
}

static const struct way {
	const char *name;
	void (*fn)(struct mutant *m, uint64_t arg);
	uint64_t arg;
} ways[] = {
	{"unharmed", NULL, 0},
	{"sections link to themselves", links_to_itself, 0},
	{"sections link to one beyond", links_to_itself, 4711},
	{"the symbols are the sections' names", names_section, 0},
	{"every section is a string table!", names_section, 1},
	{"e_shstrndx beyond", names_section, 0xfeff},
	{"e_shnum 65535", n_sections, 65535},
	{"e_shnum in section 0, huge", n_sections, 0},
	{"e_shnum 1", n_sections, 1},
	{"e_shoff beyond", sections_at, HUGE_VALUE},
	{"e_shoff that wraps", sections_at, UINT64_MAX - 63},
	{"e_shoff odd", sections_at, 9},
	{"e_shoff 0", sections_at, 0},
	{"sh_size huge", all_sizes, HUGE_VALUE},
	{"sh_size all bits", all_sizes, UINT64_MAX},
	{"sh_size 0", all_sizes, 0},
	{"sh_size 1!", all_sizes, 1},
	{"sections are all of the file", all_offsets, 0},
	{"sh_offset beyond", all_offsets, HUGE_VALUE},
	{"sh_offset that wraps", all_offsets, UINT64_MAX - 7},
	{"65000 overlapping sections of code", many_sections, 65000},
	{"e_phnum 65535!", n_segments, 65535},
	{"e_phnum 0!", n_segments, 0},
	{"e_phnum 129!", n_segments, 129},
	{"e_phoff beyond!", segments_at, HUGE_VALUE},
	{"e_phoff that wraps!", segments_at, UINT64_MAX - 7},
	{"loads of huge size!", load_size, HUGE_VALUE},
	{"loads of all bits!", load_size, UINT64_MAX},
	{"all segments load at 0!", all_load_at_zero, 0},
	{"all segments load at the end!", all_load_at_zero, UINT64_MAX - 4095},
	{"a huge segment of notes", note_segment, HUGE_VALUE},
	{"notes with huge names", notes, 0},
	{"notes with huge descriptions", notes, 1},
	{"notes of nothing", notes, 2},
	{"st_name beyond", symbol_names, UINT32_MAX},
	{"st_size huge", symbol_sizes, UINT64_MAX},
	{"st_size 0", symbol_sizes, 0},
	{"st_value all bits", symbol_values, UINT64_MAX},
	{"symbols of section 0xff00", symbol_sections, 0xff00},
	{"symbols of section 0xfeff", symbol_sections, 0xfeff},
	{"symbols of type 255", symbol_types, 255},
	{"symbols of 0 bytes each", symbol_entry_size, 0},
	{"symbols of 1 byte each", symbol_entry_size, 1},
	{"the symbols are their own names", symbol_strings, 0},
	{"code is the symbols' names", symbol_strings, 1},
	{"the symbols' names are beyond", symbol_strings, 2},
	{"symbol names of 64 KiB", long_names, 65536},
	{"symbol names of 64 KiB less 1", long_names, 65535},
	{"symbol names of 8 MiB", long_names, 8 << 20},
	{"4 million symbols at one address", many_symbols, 4 << 20},
	{"1 GiB of nothing are the names", hole_of_strings, 1024},
	{"127 MiB of nothing are the names", hole_of_strings, 127},
	{"1 GiB of nothing are the symbols", hole_of_symbols, 1024},
	{"1 GiB of nothing are .debug_info", hole_of_info, 1024},
	{"64 GiB of nothing are .debug_info", hole_of_info, 65536},
	{"1 GiB of nothing are .debug_line", hole_of_lines, 1024},
	{"1 GiB of nothing are .debug_abbrev", hole_of_abbreviations, 1024},
	{".eh_frame_hdr has 2^32-1 entries!", hdr_count, UINT32_MAX},
	{".eh_frame_hdr has 2^31 entries!", hdr_count, 1u << 31},
	{".eh_frame_hdr encodes nothing!", hdr_encoding, 0xff},
	{".eh_frame_hdr by LEB128!", hdr_encoding, 0x01},
	{".eh_frame_hdr by indirection!", hdr_encoding, 0x9b},
	{".eh_frame_hdr's table of 0!", hdr_table, 0},
	{".eh_frame_hdr's table of 255!", hdr_table, 255},
	{"a CIE of 2^32-2 bytes!", cie_length, UINT32_MAX - 1},
	{"a CIE of 64 bits!", cie_length, UINT32_MAX},
	{"a CIE of 4 bytes!", cie_length, 4},
	{".eh_frame of 0!", all_of_eh_frame, 0},
	{".eh_frame of 255!", all_of_eh_frame, 255},
	{".eh_frame of 1!", all_of_eh_frame, 1},
	{".gnu_debuglink without NUL", debuglink, 0},
	{".gnu_debuglink to a device", debuglink, 1},
	{".gnu_debuglink of nothing", debuglink, 2},
	{".gnu_debuglink with a path", debuglink, 3},
	{".gnu_debuglink of 1 byte", debuglink, 4},
	{".gnu_debugaltlink without NUL", altlink, 0},
	{".gnu_debugaltlink to the file itself", altlink, 1},
	{".gnu_debugaltlink to a device", altlink, 2},
	{".gnu_debugdata of garbage", debugdata_garbage, 37},
	{".gnu_debugdata of zeros", debugdata_garbage, 0},
	{".gnu_debugdata of 128 MiB", debugdata_bomb, 128},
	{".gnu_debugdata of 60 MiB", debugdata_bomb, 60},
	{"zlib of 16 MiB", inflate_bomb, 16},
	{"zlib of 256 MiB", inflate_bomb, 256},
	{"zlib of 64 MiB that says 16", inflate_bomb, 1 << 16 | 64},
	{"zlib of 16 MiB that says 1 GiB", inflate_bomb, 2 << 16 | 16},
	{"zlib that says 2^62 bytes", compressed_claims, HUGE_VALUE},
	{"zlib that says all bits", compressed_claims, UINT64_MAX},
	{"zlib that says 0", compressed_claims, 0},
	{"zlib that says 1 MiB", compressed_claims, 1 << 20},
	{"compressed by 0", compressed_type, 0},
	{"compressed by zstd, it says", compressed_type, 2},
	{"compressed by zlib, it says", compressed_type, 1},
	{"compressed by 2^32-1", compressed_type, UINT32_MAX},
	{"zstd of 16 MiB", zstd_bomb, 16},
	{"zstd of 512 MiB", zstd_bomb, 512},
	{"compressed, header and nothing else", compressed_header_alone, 24},
	{"compressed, half a header", compressed_header_alone, 12},
	{".debug_abbrev of 0", filled_section, 0 << 8 | 0},
	{".debug_abbrev of 255", filled_section, 0 << 8 | 255},
	{".debug_abbrev of 1", filled_section, 0 << 8 | 1},
	{".debug_info of 0", filled_section, 1 << 8 | 0},
	{".debug_info of 255", filled_section, 1 << 8 | 255},
	{".debug_info of 1", filled_section, 1 << 8 | 1},
	{".debug_line of 0", filled_section, 2 << 8 | 0},
	{".debug_line of 255", filled_section, 2 << 8 | 255},
	{".debug_line of 4", filled_section, 2 << 8 | 4},
	{".debug_str of no NUL", filled_section, 3 << 8 | 'x'},
	{".debug_str_offsets of 255", filled_section, 4 << 8 | 255},
	{".debug_addr of 255", filled_section, 5 << 8 | 255},
	{".debug_rnglists of 255", filled_section, 6 << 8 | 255},
	{".debug_rnglists of 5", filled_section, 6 << 8 | 5},
	{".debug_ranges of 255", filled_section, 7 << 8 | 255},
	{".debug_ranges of 1", filled_section, 7 << 8 | 1},
	{".debug_aranges of 255", filled_section, 8 << 8 | 255},
	{".debug_aranges of 1", filled_section, 8 << 8 | 1},
	{".debug_line_str of no NUL", filled_section, 9 << 8 | 'x'},
	{"all of .debug_* of 0", all_filled, 0},
	{"all of .debug_* of 255", all_filled, 255},
	{"a unit of 2^32-17 bytes", no_unit_ends, UINT32_MAX - 16},
	{"a unit of 64 bits", no_unit_ends, UINT32_MAX},
	{"a unit of 1 byte", no_unit_ends, 1},
	{"300 functions inlined in each other, of 64 KiB", mutate_dwarf__deep, 300},
	{"256 functions inlined in each other, of 1 KiB", mutate_dwarf__deep, 256 | 1ull << 32},
	{"100000 functions inlined in each other", mutate_dwarf__deep, 100000 | 2ull << 32},
	{"an origin that is its own", mutate_dwarf__origins, 0},
	{"two origins of each other", mutate_dwarf__origins, 1},
	{"an origin in the middle of something", mutate_dwarf__origins, 2},
	{"an origin beyond", mutate_dwarf__origins, 3},
	{"a sibling that is itself", mutate_dwarf__siblings, 0},
	{"a sibling before", mutate_dwarf__siblings, 1},
	{"a sibling beyond", mutate_dwarf__siblings, 2},
	{"a million blocks in each other", mutate_dwarf__blocks, 1000000},
	{"a million blocks after each other", mutate_dwarf__blocks, 1000000 | 1ull << 32},
	{"64 million blocks after each other, by zlib", mutate_dwarf__blocks,
	 64000000 | 3ull << 32},
	{"16 million blocks after each other, by zlib", mutate_dwarf__blocks,
	 16000000 | 3ull << 32},
	{"5000 namespaces in each other", mutate_dwarf__namespaces, 5000},
	{"200000 functions at one address", mutate_dwarf__functions, 200000},
	{"calls that jump on without end", mutate_dwarf__calls, 60},
	{"a unit of million attributes", mutate_dwarf__attributes, 1000000},
	{"forms that are indirect without end", mutate_dwarf__attributes, 0},
	{"lines: a range of 0", mutate_dwarf__lines, 0},
	{"lines: no operations", mutate_dwarf__lines, 1},
	{"lines: opcodes from 0", mutate_dwarf__lines, 2},
	{"lines: 3 million rows", mutate_dwarf__lines, 3},
	{"lines: a header of 2^32-17 bytes", mutate_dwarf__lines, 4},
	{"lines: 100000 files", mutate_dwarf__lines, 5},
	{"lines: 3 million rows at one address", mutate_dwarf__lines, 6},
	{"lines: 3 million rows, of two files in turn", mutate_dwarf__lines, 7},
};

#define N_WAYS (sizeof(ways) / sizeof(ways[0]))

static void read_file(const char *name, struct mutant *m)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		mutate__die("cannot read %s", name);
	m->len = (size_t)st.st_size;
	m->bytes = malloc(m->len);
	if (!m->bytes || read(fd, m->bytes, m->len) != (ssize_t)m->len ||
	    m->len < sizeof(Elf64_Ehdr))
		mutate__die("cannot read %s", name);
	close(fd);
}

/* In place: who has the file mapped sees it. */
static void write_file(const char *name, const struct mutant *m)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, m->bytes, m->len) != (ssize_t)m->len ||
	    (m->hole > m->len && ftruncate(fd, (off_t)m->hole)) || close(fd))
		mutate__die("cannot write %s", name);
}

int main(int argc, char *argv[])
{
	struct mutant m = {0};
	const char *name;
	uint64_t number;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t i = 0; i < N_WAYS; i++)
			printf("%zu %s\n", i, ways[i].name);
		return 0;
	}
	if (argc != 4)
		mutate__die("usage: mutate list | mutate FILE NUMBER OUT");
	read_file(argv[1], &m);
	number = strtoull(argv[2], NULL, 10);
	if (number < N_WAYS) {
		name = ways[number].name;
		if (ways[number].fn)
			ways[number].fn(&m, ways[number].arg);
	} else {
		name = random_damage(&m, number);
	}
	write_file(argv[3], &m);
	printf("%s\n", name);
	free(m.bytes);
	return 0;
}
