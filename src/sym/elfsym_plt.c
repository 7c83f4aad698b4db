// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sym/elfsym_impl.h"

#define MAX_STUBS_LEN (16u << 20)
#define MAX_NAMES     (64u << 20)
#define MAX_NAME      (64u << 10)
#define CHUNK	      512

/* A stub jumps through a slot of the GOT; the relocation of that slot has the function's name. */
struct stub {
	uint64_t slot, addr;
	int area;
};

struct stubs {
	struct stub *all;
	size_t n, capacity;
};

/* [endbr64] [bnd] jmp *disp32(%rip): its length up to the displacement's end, or 0. */
static size_t jump_through_slot(const uint8_t *code, size_t len)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;

	if (len >= 4 && !memcmp(code, endbr64, 4))
		at = 4;
	if (len > at && code[at] == 0xf2)
		at++;
	if (len < at + 6 || code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	return at + 6;
}

static int add_stub(struct stubs *stubs, const struct stub *stub)
{
	if (stubs->n == stubs->capacity) {
		size_t want = stubs->capacity ? stubs->capacity * 2 : 64;
		struct stub *all = reallocarray(stubs->all, want, sizeof(*all));

		if (!all)
			return -ENOMEM;
		stubs->all = all;
		stubs->capacity = want;
	}
	stubs->all[stubs->n++] = *stub;
	return 0;
}

static int find_stubs(struct stubs *stubs, const struct elf_file *f, const struct elf_section *s,
		      int area)
{
	size_t step = strcmp(s->name, ".plt.got") ? 16 : 8;
	void *bytes;
	int err;

	err = elf_file__read_alloc(f, s->shdr.sh_offset, s->shdr.sh_size, MAX_STUBS_LEN, &bytes);
	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t at = 0; at < s->shdr.sh_size && !err; at += step) {
		const uint8_t *code = (uint8_t *)bytes + at;
		size_t len = jump_through_slot(code, s->shdr.sh_size - at);
		int32_t displacement;

		if (!len)
			continue;
		memcpy(&displacement, code + len - 4, 4);
		err = add_stub(stubs, &(struct stub){s->shdr.sh_addr + at + len +
							     (uint64_t)(int64_t)displacement,
						     s->shdr.sh_addr + at, area});
	}
	free(bytes);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct stub *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* The symbols that relocations refer to. */
struct symbols {
	const struct elf_file *f;
	const Elf64_Shdr *table;
	char *names;
	uint64_t names_len;
};

/* As binutils names them: without a symbol it is *ABS*, and an addend is added to the name. */
static int add_name(struct elfsym_table *t, const struct symbols *symbols, const struct stub *stub,
		    const Elf64_Rela *rela)
{
	uint64_t index = ELF64_R_SYM(rela->r_info), offset;
	const char *name = "*ABS*";
	size_t at = t->names.len;
	Elf64_Sym sym;

	if (index) {
		if (__builtin_mul_overflow(index, sizeof(sym), &offset) ||
		    offset >= symbols->table->sh_size ||
		    elf_file__read(symbols->f, symbols->table->sh_offset + offset, &sym,
				   sizeof(sym)) ||
		    sym.st_name >= symbols->names_len || !symbols->names[sym.st_name])
			return 0;
		name = symbols->names + sym.st_name;
		if (strnlen(name, MAX_NAME) == MAX_NAME)
			return 0;
	}
	if (at > MAX_NAMES)
		return 0;
	/* the NUL at the end of the names before belongs to them */
	if (at)
		strbuf__append_char(&t->names, '\0');
	at = t->names.len;
	strbuf__append_str(&t->names, name);
	if (rela->r_addend)
		strbuf__printf(&t->names, "+0x%" PRIx64, (uint64_t)rela->r_addend);
	strbuf__append_str(&t->names, "@plt");
	if (t->names.failed)
		return -ENOMEM;
	return elfsym_read__add(t, &(struct elfsym_entry){.addr = stub->addr,
							  .section = (uint64_t)stub->area,
							  .global = 1,
							  .name = (uint32_t)at});
}

static int name_stubs(struct elfsym_table *t, const struct stubs *stubs,
		      const struct symbols *symbols, const Elf64_Shdr *relocations)
{
	uint64_t n = relocations->sh_size / sizeof(Elf64_Rela);
	Elf64_Rela chunk[CHUNK];

	for (uint64_t i = 0; i < n; i += CHUNK) {
		size_t len = n - i < CHUNK ? n - i : CHUNK;

		if (elf_file__read(symbols->f, relocations->sh_offset + i * sizeof(chunk[0]), chunk,
				   len * sizeof(chunk[0])))
			return 0;
		for (size_t j = 0; j < len; j++) {
			uint64_t type = ELF64_R_TYPE(chunk[j].r_info);
			struct stub key = {.slot = chunk[j].r_offset}, *stub;
			int err;

			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
			    type != R_X86_64_IRELATIVE)
				continue;
			stub = bsearch(&key, stubs->all, stubs->n, sizeof(key), compare);
			err = stub ? add_name(t, symbols, stub, &chunk[j]) : 0;
			if (err)
				return err;
		}
	}
	return 0;
}

static int find_symbols(const struct elf_file *f, struct symbols *symbols)
{
	const struct elf_section *sections;
	const Elf64_Shdr *names;
	void *bytes;
	size_t n;
	int err;

	sections = elf_file__sections(f, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i].shdr;

		if (s->sh_type != SHT_DYNSYM || s->sh_link >= n)
			continue;
		names = &sections[s->sh_link].shdr;
		err = elf_file__read_alloc(f, names->sh_offset, names->sh_size, MAX_NAMES, &bytes);
		if (err)
			return err;
		*symbols = (struct symbols){f, s, bytes, names->sh_size};
		return 0;
	}
	return -ENOENT;
}

int elfsym_plt__read(struct elfsym_table *t, const struct elf_file *f,
		     const struct elfsym_area *areas, size_t n_areas)
{
	const struct elf_section *sections;
	struct symbols symbols = {0};
	struct stubs stubs = {0};
	size_t n;
	int err = 0;

	sections = elf_file__sections(f, &n);
	for (size_t i = 0; i < n && !err; i++) {
		int area = elfsym_read__area(areas, n_areas, sections[i].shdr.sh_addr);

		if (strncmp(sections[i].name, ".plt", 4) || area < 0 ||
		    sections[i].shdr.sh_type != SHT_PROGBITS)
			continue;
		err = find_stubs(&stubs, f, &sections[i], area);
	}
	if (err || !stubs.n)
		goto out;
	err = find_symbols(f, &symbols);
	if (err) {
		err = err == -ENOMEM ? err : 0;
		goto out;
	}
	qsort(stubs.all, stubs.n, sizeof(stubs.all[0]), compare);
	for (size_t i = 0; i < n && !err; i++) {
		const Elf64_Shdr *s = &sections[i].shdr;

		if (s->sh_type == SHT_RELA && (s->sh_flags & SHF_ALLOC) &&
		    s->sh_entsize == sizeof(Elf64_Rela))
			err = name_stubs(t, &stubs, &symbols, s);
	}
out:
	free(symbols.names);
	free(stubs.all);
	return err;
}
