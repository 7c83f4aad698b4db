// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SEGMENTS 128
#define MAX_SECTIONS 65536
#define MAX_NAMES    (4u << 20)
#define MAX_NOTES    (64u << 10)
#define MAX_BUILD_ID 64

struct elf_file {
	int fd;		      /* -1: in memory */
	const uint8_t *bytes; /* NULL: in a file */
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	size_t n_segments;
	struct elf_section *sections;
	size_t n_sections;
	char *section_names;
	uint8_t build_id[MAX_BUILD_ID];
	size_t build_id_len;
	uint64_t build_id_offset; /* in the file */
	Elf *elf;
};

uint64_t elf_file__size(const struct elf_file *f)
{
	return f->size;
}

int elf_file__dup(const struct elf_file *f)
{
	int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

bool elf_file__has_debug_info(const struct elf_file *f)
{
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elf_section *s = &f->sections[i];

		if (s->shdr.sh_type != SHT_NOBITS && s->shdr.sh_size &&
		    (!strcmp(s->name, ".debug_info") || !strcmp(s->name, ".zdebug_info")))
			return true;
	}
	return false;
}

int elf_file__read(const struct elf_file *f, uint64_t offset, void *ret_bytes, size_t len)
{
	uint8_t *to = ret_bytes;

	if (offset > f->size || len > f->size - offset)
		return -EINVAL;
	if (f->bytes) {
		if (len)
			memcpy(to, f->bytes + offset, len);
		return 0;
	}
	while (len) {
		ssize_t n = pread(f->fd, to, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO; /* 0: the file was cut since it was opened */
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int elf_file__read_alloc(const struct elf_file *f, uint64_t offset, uint64_t len, size_t max,
			 void **ret_bytes)
{
	char *bytes;
	int err;

	if (len > max)
		return -EFBIG;
	if (offset > f->size || len > f->size - offset)
		return -EINVAL;
	bytes = malloc((size_t)len + 1);
	if (!bytes)
		return -ENOMEM;
	err = elf_file__read(f, offset, bytes, (size_t)len);
	if (err) {
		free(bytes);
		return err;
	}
	bytes[len] = '\0';
	*ret_bytes = bytes;
	return 0;
}

static int read_header(struct elf_file *f)
{
	Elf64_Ehdr *h = &f->header;
	void *segments;
	int err;

	err = elf_file__read(f, 0, h, sizeof(*h));
	if (err)
		return err;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != EM_X86_64 ||
	    (h->e_type != ET_EXEC && h->e_type != ET_DYN && h->e_type != ET_REL))
		return -EINVAL;
	if (!h->e_phnum)
		return 0;
	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > MAX_SEGMENTS)
		return -EINVAL;
	err = elf_file__read_alloc(f, h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), SIZE_MAX - 1,
				   &segments);
	if (err)
		return err;
	f->segments = segments;
	f->n_segments = h->e_phnum;
	return 0;
}

/* Sections are a help, never a need: whatever is wrong with them, the segments still serve. */
static int read_sections(struct elf_file *f)
{
	const Elf64_Ehdr *h = &f->header;
	void *names = NULL, *raw = NULL;
	uint64_t n = h->e_shnum, names_at = h->e_shstrndx;
	Elf64_Shdr shdr;
	int err = 0;

	if (!h->e_shoff || h->e_shentsize != sizeof(shdr) ||
	    elf_file__read(f, h->e_shoff, &shdr, sizeof(shdr)))
		return 0;
	if (n == 0)
		n = shdr.sh_size;
	if (names_at == SHN_XINDEX)
		names_at = shdr.sh_link;
	if (n == 0 || n > MAX_SECTIONS)
		return 0;
	err = elf_file__read_alloc(f, h->e_shoff, n * sizeof(shdr), SIZE_MAX - 1, &raw);
	if (err)
		goto out;
	if (names_at < n) {
		memcpy(&shdr, (char *)raw + names_at * sizeof(shdr), sizeof(shdr));
		if (shdr.sh_type == SHT_STRTAB &&
		    elf_file__read_alloc(f, shdr.sh_offset, shdr.sh_size, MAX_NAMES, &names))
			names = NULL;
	}
	f->sections = calloc(n, sizeof(*f->sections));
	if (!f->sections) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < n; i++) {
		struct elf_section *s = &f->sections[i];

		memcpy(&s->shdr, (char *)raw + i * sizeof(shdr), sizeof(shdr));
		s->name = names && s->shdr.sh_name < shdr.sh_size ? (char *)names + s->shdr.sh_name
								  : "";
	}
	f->n_sections = n;
	f->section_names = names;
	names = NULL;
out:
	free(raw);
	free(names);
	return err == -ENOMEM ? err : 0;
}

static bool build_id_in_notes(struct elf_file *f, const uint8_t *notes, size_t len, size_t align,
			      uint64_t offset)
{
	size_t at = 0;

	while (len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, desc, next;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		if (note.n_namesz > len - name)
			return false;
		desc = (name + note.n_namesz + align - 1) & ~(align - 1);
		if (desc > len || note.n_descsz > len - desc)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz &&
		    note.n_descsz <= MAX_BUILD_ID && !memcmp(notes + name, "GNU", 4)) {
			memcpy(f->build_id, notes + desc, note.n_descsz);
			f->build_id_len = note.n_descsz;
			f->build_id_offset = offset + desc;
			return true;
		}
		next = (desc + note.n_descsz + align - 1) & ~(align - 1);
		if (next > len)
			return false;
		at = next;
	}
	return false;
}

static int notes_at(struct elf_file *f, uint64_t offset, uint64_t len, uint64_t align)
{
	void *notes;
	int err;

	if (f->build_id_len)
		return 0;
	err = elf_file__read_alloc(f, offset, len, MAX_NOTES, &notes);
	if (err)
		return err == -ENOMEM ? err : 0;
	build_id_in_notes(f, notes, len, align == 8 ? 8 : 4, offset);
	free(notes);
	return 0;
}

static int read_build_id(struct elf_file *f)
{
	int err = 0;

	for (size_t i = 0; i < f->n_segments && !err; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type == PT_NOTE)
			err = notes_at(f, p->p_offset, p->p_filesz, p->p_align);
	}
	for (size_t i = 0; i < f->n_sections && !err; i++) {
		const Elf64_Shdr *s = &f->sections[i].shdr;

		if (s->sh_type == SHT_NOTE)
			err = notes_at(f, s->sh_offset, s->sh_size, s->sh_addralign);
	}
	return err;
}

static struct elf_file *open_elf(int fd, const uint8_t *bytes, uint64_t size)
{
	struct elf_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f) {
		if (fd >= 0)
			close(fd);
		errno = ENOMEM;
		return NULL;
	}
	f->fd = fd;
	f->bytes = bytes;
	f->size = size;
	err = read_header(f);
	if (!err)
		err = read_sections(f);
	if (!err)
		err = read_build_id(f);
	if (err) {
		elf_file__free(f);
		errno = -err;
		return NULL;
	}
	return f;
}

struct elf_file *elf_file__from_fd(int fd)
{
	struct stat st;
	int err = 0;

	if (fstat(fd, &st))
		err = errno;
	else if (!S_ISREG(st.st_mode) || st.st_size < 0)
		err = EINVAL;
	if (err) {
		close(fd);
		errno = err;
		return NULL;
	}
	return open_elf(fd, NULL, (uint64_t)st.st_size);
}

struct elf_file *elf_file__from_memory(const void *bytes, size_t len)
{
	return open_elf(-1, bytes, len);
}

void elf_file__free(struct elf_file *f)
{
	if (!f)
		return;
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->segments);
	free(f->sections);
	free(f->section_names);
	free(f);
}

const Elf64_Ehdr *elf_file__header(const struct elf_file *f)
{
	return &f->header;
}

const Elf64_Phdr *elf_file__segments(const struct elf_file *f, size_t *ret_n)
{
	*ret_n = f->n_segments;
	return f->segments;
}

const struct elf_section *elf_file__sections(const struct elf_file *f, size_t *ret_n)
{
	*ret_n = f->n_sections;
	return f->sections;
}

int elf_file__at_address(const struct elf_file *f, uint64_t addr, struct elf_range *ret_range)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		uint64_t in = addr - p->p_vaddr, len;

		if (p->p_type != PT_LOAD || addr < p->p_vaddr || in >= p->p_filesz ||
		    p->p_offset > f->size || in >= f->size - p->p_offset)
			continue;
		len = p->p_filesz - in;
		if (len > f->size - p->p_offset - in)
			len = f->size - p->p_offset - in;
		*ret_range = (struct elf_range){addr, p->p_offset + in, len};
		return 0;
	}
	return -ENOENT;
}

const uint8_t *elf_file__build_id(const struct elf_file *f, size_t *ret_len)
{
	*ret_len = f->build_id_len;
	return f->build_id_len ? f->build_id : NULL;
}

/* Where the 8 bytes at `offset` of the file are loaded, not to be written to. */
static int loaded_at(const struct elf_file *f, uint64_t offset, uint64_t *ret_addr)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segments[i];

		if (p->p_type != PT_LOAD || (p->p_flags & PF_W) || !(p->p_flags & PF_R) ||
		    offset < p->p_offset || p->p_filesz < 8 ||
		    offset - p->p_offset > p->p_filesz - 8)
			continue;
		*ret_addr = p->p_vaddr + (offset - p->p_offset);
		return 0;
	}
	return -ENOENT;
}

int elf_file__fingerprint(const struct elf_file *f, uint64_t *ret_addr, uint64_t *ret_word)
{
	uint64_t word;

	if (f->build_id_len >= sizeof(word) && !loaded_at(f, f->build_id_offset, ret_addr)) {
		memcpy(ret_word, f->build_id, sizeof(word));
		return 0;
	}
	if (elf_file__read(f, offsetof(Elf64_Ehdr, e_shoff), &word, sizeof(word)) ||
	    loaded_at(f, offsetof(Elf64_Ehdr, e_shoff), ret_addr))
		return -ENOENT;
	*ret_word = word;
	return 0;
}

Elf *elf_file__libelf(struct elf_file *f)
{
	if (f->elf)
		return f->elf;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return NULL;
	if (f->bytes)
		f->elf = elf_memory((char *)(uintptr_t)f->bytes, (size_t)f->size);
	else
		f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	return f->elf;
}
