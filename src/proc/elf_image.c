// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_MASK    4095ull
#define MAX_SEGMENTS 64
#define MAX_LEN	     (1ull << 30) /* address space only: pages not written take no memory */
#define MAX_COPIED   (64u << 20)  /* bytes */
#define MAX_DYNAMIC  (64u << 10)

struct source {
	memory_read_fn read;
	void *arg;
	uint64_t base, limit;
	uint64_t bias;
	Elf64_Ehdr header;
	Elf64_Phdr segments[MAX_SEGMENTS];
	size_t n;
};

static int read_headers(struct source *s)
{
	Elf64_Ehdr *h = &s->header;
	int err = s->read(s->arg, s->base, h, sizeof(*h));

	if (err)
		return err;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != EM_X86_64 ||
	    (h->e_type != ET_EXEC && h->e_type != ET_DYN) || !h->e_phnum ||
	    h->e_phnum > MAX_SEGMENTS || h->e_phentsize != sizeof(Elf64_Phdr) ||
	    h->e_phoff > MAX_LEN)
		return -EINVAL;
	s->n = h->e_phnum;
	err = s->read(s->arg, s->base + h->e_phoff, s->segments, s->n * sizeof(Elf64_Phdr));
	if (err)
		return err;
	for (size_t i = 0; i < s->n; i++) {
		const Elf64_Phdr *p = &s->segments[i];

		/* the start of the file may be mapped with the page that it shares */
		if (p->p_type == PT_LOAD && p->p_offset <= PAGE_MASK) {
			s->bias = s->base - (p->p_vaddr - p->p_offset);
			return 0;
		}
	}
	return -EINVAL;
}

static bool holds_tables(const struct source *s, const Elf64_Phdr *load)
{
	for (size_t i = 0; i < s->n; i++) {
		const Elf64_Phdr *p = &s->segments[i];

		if ((p->p_type == PT_GNU_EH_FRAME || p->p_type == PT_DYNAMIC) &&
		    p->p_vaddr - load->p_vaddr < load->p_filesz)
			return true;
	}
	return false;
}

static bool wanted(const struct source *s, const Elf64_Phdr *p)
{
	if (p->p_type == PT_DYNAMIC)
		return p->p_filesz <= MAX_DYNAMIC;
	if (p->p_type != PT_LOAD || (p->p_flags & PF_W))
		return false;
	return !(p->p_flags & PF_X) || p->p_offset <= PAGE_MASK || holds_tables(s, p);
}

/* ld.so adds the bias to the addresses in a writable dynamic section: take it away again. */
static void unrelocate(const struct source *s, const Elf64_Phdr *dynamic, uint8_t *bytes)
{
	Elf64_Dyn d;

	for (uint64_t at = 0; at + sizeof(d) <= dynamic->p_filesz; at += sizeof(d)) {
		memcpy(&d, bytes + at, sizeof(d));
		if (d.d_tag == DT_NULL)
			return;
		if (d.d_tag != DT_SYMTAB && d.d_tag != DT_STRTAB && d.d_tag != DT_HASH &&
		    d.d_tag != DT_GNU_HASH)
			continue;
		for (size_t i = 0; i < s->n; i++) {
			const Elf64_Phdr *p = &s->segments[i];

			if (p->p_type != PT_LOAD ||
			    d.d_un.d_ptr - s->bias - p->p_vaddr >= p->p_filesz)
				continue;
			d.d_un.d_ptr -= s->bias;
			memcpy(bytes + at, &d, sizeof(d));
			break;
		}
	}
}

static void copy_segments(const struct source *s, struct elf_image *image)
{
	uint64_t copied = 0;
	uint8_t *bytes = image->bytes;

	for (size_t i = 0; i < s->n; i++) {
		const Elf64_Phdr *p = &s->segments[i];
		uint64_t from = p->p_vaddr + s->bias, len = p->p_filesz;

		if (!wanted(s, p) || p->p_offset > image->len || len > image->len - p->p_offset)
			continue;
		if (s->limit && (from - s->base > s->limit || len > s->limit - (from - s->base)))
			continue;
		if (len > MAX_COPIED - copied)
			continue;
		copied += len;
		if (s->read(s->arg, from, bytes + p->p_offset, len))
			memset(bytes + p->p_offset, 0, len);
		else if (p->p_type == PT_DYNAMIC)
			unrelocate(s, p, bytes + p->p_offset);
	}
}

int elf_image__read(memory_read_fn read, void *arg, uint64_t base, uint64_t limit,
		    struct elf_image *ret_image)
{
	struct source s = {.read = read, .arg = arg, .base = base, .limit = limit};
	struct elf_image image = {.len = sizeof(Elf64_Ehdr)};
	int err = read_headers(&s);
	uint64_t end;

	if (err)
		return err;
	end = s.header.e_phoff + s.n * sizeof(Elf64_Phdr);
	if (end > image.len)
		image.len = end;
	for (size_t i = 0; i < s.n; i++) {
		const Elf64_Phdr *p = &s.segments[i];

		if (!wanted(&s, p))
			continue;
		if (__builtin_add_overflow(p->p_offset, p->p_filesz, &end) || end > MAX_LEN)
			return -EFBIG;
		if (end > image.len)
			image.len = end;
	}
	image.bytes = mmap(NULL, image.len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image.bytes == MAP_FAILED)
		return -ENOMEM;
	copy_segments(&s, &image);
	s.header.e_shoff = 0;
	s.header.e_shnum = 0;
	s.header.e_shstrndx = SHN_UNDEF;
	memcpy(image.bytes, &s.header, sizeof(s.header));
	memcpy((uint8_t *)image.bytes + s.header.e_phoff, s.segments, s.n * sizeof(Elf64_Phdr));
	*ret_image = image;
	return 0;
}

static bool same_dynamic(const uint8_t *a, const uint8_t *b, uint64_t len)
{
	Elf64_Dyn x, y;

	for (uint64_t at = 0; at + sizeof(x) <= len; at += sizeof(x)) {
		memcpy(&x, a + at, sizeof(x));
		memcpy(&y, b + at, sizeof(y));
		if (x.d_tag != y.d_tag)
			return false;
		if ((x.d_tag == DT_SYMTAB || x.d_tag == DT_STRTAB || x.d_tag == DT_STRSZ ||
		     x.d_tag == DT_HASH || x.d_tag == DT_GNU_HASH) &&
		    x.d_un.d_val != y.d_un.d_val)
			return false;
	}
	return true;
}

bool elf_image__same(const struct elf_image *a, const struct elf_image *b)
{
	const uint8_t *x = a->bytes, *y = b->bytes;
	struct source s;
	uint64_t len;

	if (a->len != b->len || memcmp(x, y, sizeof(s.header)) != 0)
		return false;
	/* elf_image__read() has checked them */
	memcpy(&s.header, x, sizeof(s.header));
	s.n = s.header.e_phnum;
	len = s.n * sizeof(Elf64_Phdr);
	if (memcmp(x + s.header.e_phoff, y + s.header.e_phoff, len) != 0)
		return false;
	memcpy(s.segments, x + s.header.e_phoff, len);
	for (size_t i = 0; i < s.n; i++) {
		const Elf64_Phdr *p = &s.segments[i];
		bool same;

		if (!wanted(&s, p))
			continue;
		if (p->p_type == PT_DYNAMIC)
			same = same_dynamic(x + p->p_offset, y + p->p_offset, p->p_filesz);
		else
			same = memcmp(x + p->p_offset, y + p->p_offset, p->p_filesz) == 0;
		if (!same)
			return false;
	}
	return true;
}

void elf_image__free(struct elf_image *image)
{
	if (image->bytes)
		munmap(image->bytes, image->len);
	*image = (struct elf_image){0};
}
