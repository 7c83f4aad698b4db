/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mutate: the bytes of a file that is being damaged; for mutate.c alone. */
#ifndef PMP_MUTATE_H
#define PMP_MUTATE_H

#include <elf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_MANY 1000000

struct mutant {
	uint8_t *bytes;
	size_t len;
	uint64_t hole; /* the file's size, if what lies behind its bytes is a hole */
};

/* Bytes that grow. */
struct bytes {
	uint8_t *at;
	size_t len, capacity;
};

__attribute__((noreturn, format(printf, 1, 2))) static void mutate__die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("mutate: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static uint8_t *bytes__room(struct bytes *b, size_t len)
{
	if (b->len + len > b->capacity) {
		b->capacity = (b->len + len) * 2;
		b->at = realloc(b->at, b->capacity);
		if (!b->at)
			mutate__die("no memory");
	}
	b->len += len;
	return b->at + b->len - len;
}

static void bytes__add(struct bytes *b, const void *from, size_t len)
{
	if (len)
		memcpy(bytes__room(b, len), from, len);
}

static void bytes__fill(struct bytes *b, uint8_t byte, size_t len)
{
	memset(bytes__room(b, len), byte, len);
}

/* A number of `width` bytes. */
static void bytes__put(struct bytes *b, uint64_t value, size_t width)
{
	bytes__add(b, &value, width);
}

/* splitmix64 */
static uint64_t mutate__state;

static void mutate__seed(uint64_t seed)
{
	mutate__state = seed * 0x9e3779b97f4a7c15u;
}

static uint64_t mutate__random(void)
{
	uint64_t z = mutate__state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static Elf64_Shdr *mutant__section(struct mutant *m, size_t number)
{
	Elf64_Ehdr *h = (Elf64_Ehdr *)m->bytes;

	return (Elf64_Shdr *)(m->bytes + h->e_shoff) + number;
}

static const char *mutant__name(struct mutant *m, size_t number)
{
	const Elf64_Ehdr *h = (Elf64_Ehdr *)m->bytes;
	const Elf64_Shdr *names = mutant__section(m, h->e_shstrndx);

	return (char *)m->bytes + names->sh_offset + mutant__section(m, number)->sh_name;
}

/* Its number; 0: there is none. */
static size_t mutant__look_for(struct mutant *m, const char *name)
{
	for (size_t i = 1; i < ((Elf64_Ehdr *)m->bytes)->e_shnum; i++) {
		if (!strcmp(mutant__name(m, i), name))
			return i;
	}
	return 0;
}

static size_t mutant__find(struct mutant *m, const char *name)
{
	size_t number = mutant__look_for(m, name);

	if (!number)
		mutate__die("no section %s", name);
	return number;
}

/* Returns where it was put. */
static size_t mutant__append(struct mutant *m, const void *bytes, size_t len)
{
	size_t at = (m->len + 15) & ~(size_t)15;

	m->bytes = realloc(m->bytes, at + len);
	if (!m->bytes)
		mutate__die("no memory");
	memset(m->bytes + m->len, 0, at - m->len);
	memcpy(m->bytes + at, bytes, len);
	m->len = at + len;
	return at;
}

/* The section is these bytes from now on, as they are. */
static void mutant__set(struct mutant *m, const char *name, const void *bytes, size_t len)
{
	size_t number = mutant__find(m, name), at = mutant__append(m, bytes, len);
	Elf64_Shdr *s = mutant__section(m, number);

	s->sh_offset = at;
	s->sh_size = len;
	s->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
}

/* One more section. */
static void mutant__add(struct mutant *m, const char *name, const void *bytes, size_t len)
{
	size_t n = ((Elf64_Ehdr *)m->bytes)->e_shnum, names_number,
	       at = mutant__append(m, bytes, len);
	Elf64_Shdr *all = calloc(n + 1, sizeof(*all)), *names;
	struct bytes text = {0};

	names_number = ((Elf64_Ehdr *)m->bytes)->e_shstrndx;
	memcpy(all, mutant__section(m, 0), n * sizeof(*all));
	names = &all[names_number];
	bytes__add(&text, m->bytes + names->sh_offset, names->sh_size);
	all[n] = (Elf64_Shdr){.sh_name = (uint32_t)text.len,
			      .sh_type = SHT_PROGBITS,
			      .sh_offset = at,
			      .sh_size = len,
			      .sh_addralign = 1};
	bytes__add(&text, name, strlen(name) + 1);
	names->sh_offset = mutant__append(m, text.at, text.len);
	names->sh_size = text.len;
	at = mutant__append(m, all, (n + 1) * sizeof(*all));
	((Elf64_Ehdr *)m->bytes)->e_shoff = at;
	((Elf64_Ehdr *)m->bytes)->e_shnum = (uint16_t)(n + 1);
	free(text.at);
	free(all);
}

/* zlib's format by hand, with fixed codes (RFC 1950, RFC 1951): some bytes, then one byte often. */
struct bits {
	struct bytes *to;
	uint64_t word;
	unsigned int n;
};

static void bits__put(struct bits *b, uint32_t value, unsigned int n)
{
	b->word |= (uint64_t)value << b->n;
	for (b->n += n; b->n >= 8; b->n -= 8, b->word >>= 8)
		bytes__put(b->to, b->word & 0xff, 1);
}

/* A Huffman code: its first bit first. */
static void bits__code(struct bits *b, uint32_t code, unsigned int n)
{
	while (n--)
		bits__put(b, code >> n & 1, 1);
}

static void bits__literal(struct bits *b, uint8_t byte)
{
	if (byte < 144)
		bits__code(b, 0x30u + byte, 8);
	else
		bits__code(b, 0x190u + byte - 144, 9);
}

/* The checksum after `n` more of this byte. */
static void adler(uint32_t sum[2], uint8_t byte, uint64_t n)
{
	const unsigned __int128 a = sum[0], all = n;

	sum[1] = (uint32_t)((sum[1] + all * a + byte * (all * (all + 1) / 2)) % 65521);
	sum[0] = (uint32_t)((a + all * byte) % 65521);
}

static void deflate(struct bytes *to, const void *first, size_t first_len, uint8_t byte,
		    uint64_t often)
{
	struct bits b = {.to = to};
	uint32_t sum[2] = {1, 0};

	bytes__add(to, "\x78\x01", 2);
	bits__put(&b, 3, 3); /* the last block, fixed codes */
	for (size_t i = 0; i < first_len; i++) {
		bits__literal(&b, ((const uint8_t *)first)[i]);
		adler(sum, ((const uint8_t *)first)[i], 1);
	}
	adler(sum, byte, often);
	if (often) {
		bits__literal(&b, byte);
		often--;
	}
	for (; often >= 258; often -= 258) {
		bits__code(&b, 0xc5, 8); /* 258 bytes */
		bits__code(&b, 0, 5);	 /* from one byte before */
	}
	for (; often; often--)
		bits__literal(&b, byte);
	bits__code(&b, 0, 7);
	bits__put(&b, 0, 7);
	for (int i = 1; i >= 0; i--) {
		bytes__put(to, sum[i] >> 8, 1);
		bytes__put(to, sum[i] & 0xff, 1);
	}
}

static void set_compressed(struct mutant *m, const char *name, uint32_t type, uint64_t claims,
			   const struct bytes *data)
{
	Elf64_Chdr how = {.ch_type = type, .ch_size = claims, .ch_addralign = 1};
	struct bytes all = {0};

	if (!mutant__look_for(m, name))
		return;
	bytes__add(&all, &how, sizeof(how));
	bytes__add(&all, data->at, data->len);
	mutant__set(m, name, all.at, all.len);
	mutant__section(m, mutant__find(m, name))->sh_flags |= SHF_COMPRESSED;
	free(all.at);
}

#include "mutate_dwarf.h"

#endif
