// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/elfsym.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sym/elfsym_impl.h"

struct elfsym {
	struct elfsym_area *areas;
	size_t n_areas;
	struct elfsym_table tables[2]; /* the object's, its debug file's */
};

static int find_areas(struct elfsym *s, const struct elf_file *f)
{
	const struct elf_section *sections;
	const Elf64_Phdr *segments;
	size_t n_sections, n_segments;

	sections = elf_file__sections(f, &n_sections);
	segments = elf_file__segments(f, &n_segments);
	s->areas = calloc(n_sections + n_segments + 1, sizeof(*s->areas));
	if (!s->areas)
		return -ENOMEM;
	for (size_t i = 0; i < n_sections && s->n_areas < ELFSYM_MAX_SECTIONS; i++) {
		const Elf64_Shdr *h = &sections[i].shdr;

		if ((h->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR) &&
		    h->sh_size && h->sh_addr <= ELFSYM_MAX_ADDR &&
		    h->sh_size <= ELFSYM_MAX_ADDR - h->sh_addr)
			s->areas[s->n_areas++] = (struct elfsym_area){h->sh_addr,
								      h->sh_addr + h->sh_size};
	}
	for (size_t i = 0; !n_sections && i < n_segments; i++) {
		const Elf64_Phdr *p = &segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && p->p_memsz &&
		    p->p_vaddr <= ELFSYM_MAX_ADDR && p->p_memsz <= ELFSYM_MAX_ADDR - p->p_vaddr)
			s->areas[s->n_areas++] = (struct elfsym_area){p->p_vaddr,
								      p->p_vaddr + p->p_memsz};
	}
	return 0;
}

static int compare(const void *a, const void *b, void *names)
{
	const struct elfsym_entry *x = a, *y = b;
	const char *text = names;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return strcmp(text + x->name, text + y->name);
}

static int read_table(struct elfsym *s, struct elfsym_table *t, const struct elf_file *f,
		      bool stubs)
{
	int err = elfsym_read__table(t, f, s->areas, s->n_areas);

	if (!err && stubs)
		err = elfsym_plt__read(t, f, s->areas, s->n_areas);
	if (err)
		return err;
	if (t->n) {
		struct elfsym_entry *entries;

		qsort_r(t->entries, t->n, sizeof(t->entries[0]), compare, t->names.data);
		entries = reallocarray(t->entries, t->n, sizeof(t->entries[0]));
		if (entries)
			t->entries = entries;
		t->capacity = t->n;
	} else {
		strbuf__free(&t->names);
	}
	return 0;
}

struct elfsym *elfsym__new(const struct elf_file *file, const struct elf_file *debug)
{
	struct elfsym *s = calloc(1, sizeof(*s));
	size_t n;
	int err;

	if (!s)
		return NULL;
	/* an image of memory has no sections; its debug file's are the same */
	elf_file__sections(file, &n);
	err = find_areas(s, n || !debug ? file : debug);
	if (!err)
		err = read_table(s, &s->tables[0], file, true);
	if (!err && debug)
		err = read_table(s, &s->tables[1], debug, false);
	if (err) {
		elfsym__free(s);
		errno = -err;
		return NULL;
	}
	return s;
}

void elfsym__free(struct elfsym *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < 2; i++) {
		free(s->tables[i].entries);
		strbuf__free(&s->tables[i].names);
	}
	free(s->areas);
	free(s);
}

size_t elfsym__count(const struct elfsym *s)
{
	return s->tables[0].n + s->tables[1].n;
}

/* gdb's choice among one file's symbols, step by step as in minsyms.c; NULL if there is none. */
static const struct elfsym_entry *find_in_table(const struct elfsym_table *t, uint64_t addr,
						size_t section)
{
	const struct elfsym_entry *e = t->entries, *zero_sized = NULL, *at;
	size_t low = 0, high = t->n;

	if (!t->n)
		return NULL;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (e[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	/* low symbols are at or before addr; the last of equal addresses is the first candidate */
	for (at = e + low; at > e; at--) {
		const struct elfsym_entry *this = at - 1, *before = this > e ? this - 1 : NULL;

		if (this->section != section)
			continue;
		if (before && !this->global && before->global && this->size == before->size &&
		    this->addr == before->addr && this->section == before->section)
			continue;
		if (this->size == 0) {
			if (!zero_sized)
				zero_sized = this;
			continue;
		}
		if (before && addr - this->addr >= this->size && addr - before->addr < before->size)
			continue;
		break;
	}
	if (at == e || addr - at[-1].addr >= at[-1].size)
		return zero_sized;
	return at - 1;
}

int elfsym__find(const struct elfsym *s, uint64_t addr, const char **ret_name, uint64_t *ret_start)
{
	const struct elfsym_entry *best = NULL;
	const char *name = NULL;
	size_t area;

	for (area = 0; area < s->n_areas; area++) {
		if (addr >= s->areas[area].start && addr < s->areas[area].end)
			break;
	}
	if (area == s->n_areas)
		return -ENOENT;
	for (size_t i = 0; i < 2; i++) {
		const struct elfsym_entry *found = find_in_table(&s->tables[i], addr, area);

		if (!found || (best && best->addr >= found->addr))
			continue;
		best = found;
		name = s->tables[i].names.data + found->name;
	}
	if (!best)
		return -ENOENT;
	*ret_name = name;
	*ret_start = best->addr;
	return 0;
}
