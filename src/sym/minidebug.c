// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COMPRESSED (16u << 20)
#define MAX_BYTES      (64u << 20)

struct minidebug {
	uint8_t *bytes;
	size_t len, capacity;
	struct elf_file *file;
};

static int read_section(const struct elf_file *file, void **ret_bytes, size_t *ret_len)
{
	const struct elf_section *sections;
	size_t n;

	sections = elf_file__sections(file, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i].shdr;
		int err;

		if (strcmp(sections[i].name, ".gnu_debugdata") || s->sh_type == SHT_NOBITS)
			continue;
		err = elf_file__read_alloc(file, s->sh_offset, s->sh_size, MAX_COMPRESSED,
					   ret_bytes);
		if (!err)
			*ret_len = s->sh_size;
		return err;
	}
	return -ENOENT;
}

/* Make room for more than there is. */
static int grow(struct minidebug *m, lzma_stream *stream)
{
	size_t capacity = m->capacity ? m->capacity * 2 : 1u << 16;
	uint8_t *bytes;

	if (capacity > MAX_BYTES)
		return -EFBIG;
	bytes = realloc(m->bytes, capacity);
	if (!bytes)
		return -ENOMEM;
	m->bytes = bytes;
	m->capacity = capacity;
	stream->next_out = bytes + m->len;
	stream->avail_out = capacity - m->len;
	return 0;
}

static int decompress(struct minidebug *m, const void *bytes, size_t len)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret ret;
	int err = 0;

	if (lzma_stream_decoder(&stream, MAX_BYTES, 0) != LZMA_OK)
		return -ENOMEM;
	stream.next_in = bytes;
	stream.avail_in = len;
	do {
		if (!stream.avail_out)
			err = grow(m, &stream);
		if (err)
			break;
		ret = lzma_code(&stream, LZMA_FINISH);
		m->len = m->capacity - stream.avail_out;
		if (ret == LZMA_MEM_ERROR)
			err = -ENOMEM;
		else if (ret == LZMA_MEMLIMIT_ERROR)
			err = -EFBIG;
		else if (ret != LZMA_OK && ret != LZMA_STREAM_END)
			err = -EINVAL;
	} while (!err && ret != LZMA_STREAM_END);
	lzma_end(&stream);
	return err;
}

struct minidebug *minidebug__new(const struct elf_file *file)
{
	struct minidebug *m = NULL;
	void *compressed = NULL;
	size_t len;
	int err = read_section(file, &compressed, &len);

	if (!err) {
		m = calloc(1, sizeof(*m));
		err = m ? decompress(m, compressed, len) : -ENOMEM;
	}
	if (!err) {
		m->file = elf_file__from_memory(m->bytes, m->len);
		err = m->file ? 0 : -errno;
	}
	free(compressed);
	if (!err)
		return m;
	minidebug__free(m);
	errno = -err;
	return NULL;
}

void minidebug__free(struct minidebug *m)
{
	if (!m)
		return;
	elf_file__free(m->file);
	free(m->bytes);
	free(m);
}

const struct elf_file *minidebug__file(const struct minidebug *m)
{
	return m->file;
}
