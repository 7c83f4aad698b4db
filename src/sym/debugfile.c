// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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

static struct elf_file *open_file(const char *name)
{
	struct object_file_id id;
	int fd = object_file__open_regular(AT_FDCWD, name, &id);

	return fd < 0 ? NULL : elf_file__from_fd(fd);
}

static int by_build_id(const struct elf_file *object, const char *dir, struct elf_file **ret_file)
{
	struct strbuf name = STRBUF_INIT;
	struct elf_file *f;
	const uint8_t *id;
	size_t len;

	id = elf_file__build_id(object, &len);
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
	if (f && object_file__same_build_id(f, object)) {
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

/* The name in .gnu_debuglink, for the caller to free, and the CRC after it. */
static int read_link(const struct elf_file *object, char **ret_name, uint32_t *ret_crc)
{
	const struct elf_section *sections;
	size_t n, len, at;
	void *bytes;
	int err;

	sections = elf_file__sections(object, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i].shdr;

		if (strcmp(sections[i].name, ".gnu_debuglink") || s->sh_type == SHT_NOBITS)
			continue;
		err = elf_file__read_alloc(object, s->sh_offset, s->sh_size, MAX_LINK, &bytes);
		if (err)
			return err == -ENOMEM ? err : -ENOENT;
		len = strlen(bytes);
		at = (len + 4) & ~(size_t)3;
		if (!len || at + 4 > s->sh_size || strchr(bytes, '/') || !strcmp(bytes, "..")) {
			free(bytes);
			return -ENOENT;
		}
		memcpy(ret_crc, (char *)bytes + at, 4);
		*ret_name = bytes;
		return 0;
	}
	return -ENOENT;
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
	int err = by_build_id(object, dir, ret_file);

	return err == -ENOENT ? by_link(object, path, dir, ret_file) : err;
}
