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
#include <zlib.h>

#include "base/strbuf.h"
#include "proc/object_file.h"
#include "proc/root.h"

#define DEFAULT_DIR "/usr/lib/debug"
#define MAX_LINK    4096
#define MAX_CHECKED (2ull << 30) /* bytes: a checksum over more takes too long */

#define MAX_REFUSED 4096 /* bytes to say; who has more of them has seen the point */

/* One place to look in: our root, or a container's. */
struct place {
	const struct debugfile_search *search;
	int root;	 /* -1: ours */
	const char *dir; /* of debug files, in there */
	const char *for_what;
};

static void refuse(const struct place *place, const char *name)
{
	struct strbuf *out = place->search->refused;

	if (!out || out->len > MAX_REFUSED)
		return;
	strbuf__append_untrusted(out, name, strlen(name), ' ');
	strbuf__append_str(out, " is not used: it is not of the same build as ");
	strbuf__append_untrusted(out, place->for_what, strlen(place->for_what), ' ');
	strbuf__append_char(out, '\n');
}

/* The file of that name if it `belongs`; what is no debug file at all does not. */
static struct elf_file *open_file(const struct place *place, const char *name,
				  bool (*belongs)(const struct elf_file *f, const void *arg),
				  const void *arg)
{
	struct object_file_id id;
	struct elf_file *f;
	int fd = place->root >= 0 ? root__open_file(place->root, name, &id)
				  : object_file__open_regular(AT_FDCWD, name, &id);

	if (fd < 0)
		return NULL;
	f = elf_file__from_fd(fd);
	if (f && belongs(f, arg))
		return f;
	elf_file__free(f);
	refuse(place, name);
	return NULL;
}

struct build_id {
	const uint8_t *bytes;
	size_t len;
};

static bool has_build_id(const struct elf_file *f, const void *arg)
{
	const struct build_id *id = arg;
	size_t len;
	const uint8_t *own = elf_file__build_id(f, &len);

	return own && len == id->len && !memcmp(own, id->bytes, len);
}

/* DIR/.build-id/ab/cdef....debug, where it has that build id. */
static int by_build_id(const struct place *place, const struct build_id *id,
		       struct elf_file **ret_file)
{
	struct strbuf name = STRBUF_INIT;

	if (!id->bytes || id->len < 2)
		return -ENOENT;
	strbuf__printf(&name, "%s/.build-id/%02x/", place->dir, id->bytes[0]);
	for (size_t i = 1; i < id->len; i++)
		strbuf__printf(&name, "%02x", id->bytes[i]);
	strbuf__append_str(&name, ".debug");
	if (name.failed) {
		strbuf__free(&name);
		return -ENOMEM;
	}
	*ret_file = open_file(place, name.data, has_build_id, id);
	strbuf__free(&name);
	return *ret_file ? 0 : -ENOENT;
}

static bool has_crc(const struct elf_file *f, const void *arg)
{
	const uint32_t *crc = arg;
	uint64_t size = elf_file__size(f);
	uint8_t buffer[32768];
	uint32_t sum = 0;

	if (size > MAX_CHECKED)
		return false;
	for (uint64_t at = 0; at < size; at += sizeof(buffer)) {
		size_t len = size - at < sizeof(buffer) ? size - at : sizeof(buffer);

		if (elf_file__read(f, at, buffer, len))
			return false;
		sum = (uint32_t)crc32(sum, buffer, (uInt)len);
	}
	return sum == *crc;
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

/* Next to the object, in .debug there, and under the folder of debug files. */
static int by_link(const struct place *place, const struct elf_file *object, const char *path,
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

		if (i == 0 && !strcmp(slash + 1, link)) /* that is the object itself */
			continue;
		strbuf__printf(&name, "%s%.*s%s/%s", i == 2 ? place->dir : "", (int)(slash - path),
			       path, i == 1 ? "/.debug" : "", link);
		if (name.failed) {
			err = -ENOMEM;
		} else {
			*ret_file = open_file(place, name.data, has_crc, &crc);
			err = *ret_file ? 0 : -ENOENT;
		}
		strbuf__free(&name);
	}
	free(link);
	return err;
}

/* What a server sends is taken like any other file: for what it proves to be. */
static int by_debuginfod(const struct place *place, const struct build_id *id,
			 struct elf_file **ret_file)
{
	const char *slash = strrchr(place->for_what, '/');
	struct elf_file *f;
	int fd;

	if (!place->search->debuginfod || !id->bytes)
		return -ENOENT;
	fd = debuginfod__find(place->search->debuginfod, id->bytes, id->len,
			      slash ? slash + 1 : place->for_what);
	if (fd < 0)
		return -ENOENT;
	f = elf_file__from_fd(fd);
	if (f && has_build_id(f, id)) {
		*ret_file = f;
		return 0;
	}
	elf_file__free(f);
	refuse(place, "what debuginfod sent");
	return -ENOENT;
}

/* Ours, and before it the container's: what is installed there was for its programs. */
static size_t places_of(const struct debugfile_search *search, int root, const char *for_what,
			struct place ret_places[2])
{
	const struct place ours = {search, -1, search->dir ? search->dir : DEFAULT_DIR, for_what};
	size_t n = 0;

	if (root >= 0)
		ret_places[n++] = (struct place){search, root, DEFAULT_DIR, for_what};
	ret_places[n++] = ours;
	return n;
}

int debugfile__find(const struct debugfile_search *search, const struct elf_file *object,
		    const char *path, int root, struct elf_file **ret_file)
{
	struct place places[2];
	size_t n = places_of(search, root, path, places);
	struct build_id id;
	int err = -ENOENT;

	id.bytes = elf_file__build_id(object, &id.len);
	for (size_t i = 0; i < n && err == -ENOENT; i++) {
		err = by_build_id(&places[i], &id, ret_file);
		/* the path means something in its own root alone */
		if (err == -ENOENT && i == 0)
			err = by_link(&places[i], object, path, ret_file);
	}
	if (err == -ENOENT && !elf_file__has_debug_info(object))
		err = by_debuginfod(&places[n - 1], &id, ret_file);
	return err;
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

static int alt_by_name(const struct place *place, const struct elf_file *file, const char *link,
		       const struct build_id *id, struct elf_file **ret_file)
{
	struct strbuf name = STRBUF_INIT;
	char folder[PATH_MAX];
	int err = -ENOENT;

	if (*link != '/') {
		folder_of(file, folder);
		strbuf__append_str(&name, folder);
	}
	strbuf__append_str(&name, link);
	if (name.failed) {
		err = -ENOMEM;
	} else if (name.data[0] == '/') {
		*ret_file = open_file(place, name.data, has_build_id, id);
		err = *ret_file ? 0 : -ENOENT;
	}
	strbuf__free(&name);
	return err;
}

int debugfile__find_alt(const struct debugfile_search *search, const struct elf_file *file,
			int root, int *ret_fd)
{
	struct elf_file *alt = NULL;
	struct build_id id = {0};
	struct place places[2];
	size_t all, n;
	char *link;
	int err = read_name(file, ".gnu_debugaltlink", &link, &all);

	if (err == -ENOENT) {
		*ret_fd = -1;
		return 0;
	}
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	id.bytes = (const uint8_t *)link + strlen(link) + 1;
	n = places_of(search, root, "the file that names it", places);
	err = -ENOENT;
	if (id.bytes < (const uint8_t *)link + all) {
		id.len = (size_t)((const uint8_t *)link + all - id.bytes);
		for (size_t i = 0; i < n && err == -ENOENT; i++) {
			err = by_build_id(&places[i], &id, &alt);
			if (err == -ENOENT)
				err = alt_by_name(&places[i], file, link, &id, &alt);
		}
		if (err == -ENOENT)
			err = by_debuginfod(&places[n - 1], &id, &alt);
	}
	free(link);
	if (err)
		return err;
	*ret_fd = elf_file__dup(alt);
	elf_file__free(alt);
	return *ret_fd < 0 ? -ENOENT : 0;
}
