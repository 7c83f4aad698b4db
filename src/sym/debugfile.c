// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "proc/object_file.h"

#define DEFAULT_DIR "/usr/lib/debug"
#define MAX_LINK    4096
#define MAX_CHECKED (2ull << 30) /* bytes: a checksum over more takes too long */

uint32_t debugfile__crc32(uint32_t crc, const void *bytes, size_t len)
{
	static uint32_t table[256];
	const uint8_t *b = bytes;

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t value = i;

			for (int bit = 0; bit < 8; bit++)
				value = value >> 1 ^ (value & 1 ? 0xedb88320 : 0);
			table[i] = value;
		}
	}
	crc = ~crc;
	for (size_t i = 0; i < len; i++)
		crc = crc >> 8 ^ table[(crc ^ b[i]) & 0xff];
	return ~crc;
}

static bool has_build_id(const struct elf_file *f, const uint8_t *id, size_t len)
{
	size_t own_len;
	const uint8_t *own = elf_file__build_id(f, &own_len);

	return own && own_len == len && !memcmp(own, id, len);
}

static struct elf_file *open_file(const char *name)
{
	struct object_file_id id;
	int fd = object_file__open_regular(AT_FDCWD, name, &id);

	return fd < 0 ? NULL : elf_file__from_fd(fd);
}

/* DIR/.build-id/ab/cdef....debug, where it has that build id. */
static int by_build_id(const uint8_t *id, size_t len, const char *dir, struct elf_file **ret_file)
{
	struct strbuf name = STRBUF_INIT;
	struct elf_file *f;

	if (!id || len < 2)
		return -ENOENT;
	strbuf__printf(&name, "%s/.build-id/%02x/", dir, id[0]);
	for (size_t i = 1; i < len; i++)
		strbuf__printf(&name, "%02x", id[i]);
	strbuf__append_str(&name, ".debug");
	if (name.failed) {
		strbuf__free(&name);
		return -ENOMEM;
	}
	f = open_file(name.data);
	strbuf__free(&name);
	if (f && has_build_id(f, id, len)) {
		*ret_file = f;
		return 0;
	}
	elf_file__free(f);
	return -ENOENT;
}

static bool crc_matches(const struct elf_file *f, uint32_t crc)
{
	uint64_t size = elf_file__size(f);
	uint8_t buffer[32768];
	uint32_t sum = 0;

	if (size > MAX_CHECKED)
		return false;
	for (uint64_t at = 0; at < size; at += sizeof(buffer)) {
		size_t len = size - at < sizeof(buffer) ? size - at : sizeof(buffer);

		if (elf_file__read(f, at, buffer, len))
			return false;
		sum = debugfile__crc32(sum, buffer, len);
	}
	return sum == crc;
}

/* A section that starts with a file's name, for the caller to free; *ret_len: of all of it. */
static int read_name(const struct elf_file *file, const char *section, char **ret_name,
		     size_t *ret_len)
{
	const struct elf_section *sections;
	void *bytes;
	size_t n;
	int err;

	sections = elf_file__sections(file, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i].shdr;

		if (strcmp(sections[i].name, section) || s->sh_type == SHT_NOBITS)
			continue;
		err = elf_file__read_alloc(file, s->sh_offset, s->sh_size, MAX_LINK, &bytes);
		if (err)
			return err == -ENOMEM ? err : -EINVAL;
		*ret_name = bytes;
		*ret_len = s->sh_size;
		return 0;
	}
	return -ENOENT;
}

/* The name in .gnu_debuglink, for the caller to free, and the CRC after it. */
static int read_link(const struct elf_file *object, char **ret_name, uint32_t *ret_crc)
{
	size_t all, len, at;
	char *name;
	int err = read_name(object, ".gnu_debuglink", &name, &all);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	len = strlen(name);
	at = (len + 4) & ~(size_t)3;
	if (!len || at + 4 > all || strchr(name, '/') || !strcmp(name, "..")) {
		free(name);
		return -ENOENT;
	}
	memcpy(ret_crc, name + at, 4);
	*ret_name = name;
	return 0;
}

static int by_link(const struct elf_file *object, const char *path, const char *dir,
		   struct elf_file **ret_file)
{
	const char *slash = strrchr(path, '/');
	char *link = NULL;
	uint32_t crc;
	int err;

	if (path[0] != '/')
		return -ENOENT;
	err = read_link(object, &link, &crc);
	if (err)
		return err;
	err = -ENOENT;
	for (int i = 0; i < 3 && err == -ENOENT; i++) {
		struct strbuf name = STRBUF_INIT;
		struct elf_file *f;

		strbuf__printf(&name, "%s%.*s%s/%s", i == 2 ? dir : "", (int)(slash - path), path,
			       i == 1 ? "/.debug" : "", link);
		if (name.failed) {
			err = -ENOMEM;
			break;
		}
		f = open_file(name.data);
		if (f && crc_matches(f, crc)) {
			*ret_file = f;
			f = NULL;
			err = 0;
		}
		elf_file__free(f);
		strbuf__free(&name);
	}
	free(link);
	return err;
}

int debugfile__find(const struct elf_file *object, const char *path, const char *debug_dir,
		    struct elf_file **ret_file)
{
	const char *dir = debug_dir ? debug_dir : DEFAULT_DIR;
	size_t len;
	const uint8_t *id = elf_file__build_id(object, &len);
	int err = by_build_id(id, len, dir, ret_file);

	return err == -ENOENT ? by_link(object, path, dir, ret_file) : err;
}

/* The folder of an open file, with a slash at its end; "" where that is not known. */
static void folder_of(const struct elf_file *file, char ret_folder[PATH_MAX])
{
	int fd = elf_file__dup(file);
	char link[64];
	ssize_t n;

	ret_folder[0] = '\0';
	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret_folder, PATH_MAX - 1);
	close(fd);
	while (n > 0 && ret_folder[n - 1] != '/')
		n--;
	ret_folder[n > 0 ? n : 0] = '\0';
}

static int alt_by_name(const struct elf_file *file, const char *link, const uint8_t *id,
		       size_t id_len, struct elf_file **ret_file)
{
	struct strbuf name = STRBUF_INIT;
	struct elf_file *f = NULL;
	char folder[PATH_MAX];
	int err = -ENOENT;

	if (*link != '/') {
		folder_of(file, folder);
		strbuf__append_str(&name, folder);
	}
	strbuf__append_str(&name, link);
	if (name.failed)
		err = -ENOMEM;
	else if (name.data[0] == '/')
		f = open_file(name.data);
	strbuf__free(&name);
	if (f && has_build_id(f, id, id_len)) {
		*ret_file = f;
		return 0;
	}
	elf_file__free(f);
	return err;
}

int debugfile__find_alt(const struct elf_file *file, const char *debug_dir, int *ret_fd)
{
	struct elf_file *alt = NULL;
	const uint8_t *id;
	size_t all, len;
	char *link;
	int err = read_name(file, ".gnu_debugaltlink", &link, &all);

	if (err == -ENOENT) {
		*ret_fd = -1;
		return 0;
	}
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	len = strlen(link) + 1;
	id = (const uint8_t *)link + len;
	err = -ENOENT;
	if (len < all) {
		err = by_build_id(id, all - len, debug_dir ? debug_dir : DEFAULT_DIR, &alt);
		if (err == -ENOENT)
			err = alt_by_name(file, link, id, all - len, &alt);
	}
	free(link);
	if (err)
		return err;
	*ret_fd = elf_file__dup(alt);
	elf_file__free(alt);
	return *ret_fd < 0 ? -ENOENT : 0;
}
