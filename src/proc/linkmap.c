// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/linkmap.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS   64
#define MAX_DYNAMIC    1024
#define MAX_NAMESPACES 64
#define MAX_STEPS      16384 /* of all namespaces together */
#define MAX_NAME       4096
#define MAX_NAME_BYTES (4u << 20)

/* <link.h> of glibc and musl, as it is in a 64-bit target; r_next is glibc's r_debug_extended */
struct r_debug_64 {
	int32_t version, pad;
	uint64_t map, brk, state, ldbase, next;
};

struct link_map_64 {
	uint64_t addr, name, ld, next, prev;
};

struct linkmap {
	struct linkmap_entry *entries;
	size_t n, capacity;
	size_t steps, name_bytes;
};

int linkmap__start(pid_t pid, struct linkmap_start *ret_start)
{
	struct linkmap_start start = {0};
	Elf64_auxv_t auxv[64];
	char name[64];
	ssize_t len;
	int fd, err;

	snprintf(name, sizeof(name), "/proc/%d/auxv", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, auxv, sizeof(auxv));
	err = len < 0 ? -errno : 0;
	close(fd);
	for (ssize_t i = 0; i < len / (ssize_t)sizeof(auxv[0]); i++) {
		switch (auxv[i].a_type) {
		case AT_PHDR:
			start.phdr = auxv[i].a_un.a_val;
			break;
		case AT_PHNUM:
			start.n_phdr = auxv[i].a_un.a_val;
			break;
		case AT_ENTRY:
			start.entry = auxv[i].a_un.a_val;
			break;
		}
	}
	if (!err)
		*ret_start = start;
	return err;
}

/* The address of the program's struct r_debug, or 0. */
static uint64_t find_r_debug(memory_read_fn read, void *arg, const struct linkmap_start *start)
{
	Elf64_Phdr segments[MAX_SEGMENTS];
	const Elf64_Phdr *dynamic = NULL;
	uint64_t bias = 0;

	if (!start->phdr || !start->n_phdr || start->n_phdr > MAX_SEGMENTS ||
	    read(arg, start->phdr, segments, start->n_phdr * sizeof(segments[0])))
		return 0;
	for (size_t i = 0; i < start->n_phdr; i++) {
		if (segments[i].p_type == PT_PHDR)
			bias = start->phdr - segments[i].p_vaddr;
		else if (segments[i].p_type == PT_DYNAMIC)
			dynamic = &segments[i];
	}
	if (!dynamic)
		return 0;
	for (size_t i = 0; i < MAX_DYNAMIC; i++) {
		Elf64_Dyn d;

		if (read(arg, dynamic->p_vaddr + bias + i * sizeof(d), &d, sizeof(d)) ||
		    d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_DEBUG)
			return d.d_un.d_ptr;
	}
	return 0;
}

/* NULL if it cannot be read or is too long; the caller takes it for unnamed then. */
static char *read_name(memory_read_fn read, void *arg, uint64_t addr)
{
	char name[MAX_NAME];
	size_t len = 0;

	/* piecewise: what comes after the string may not be mapped */
	while (len < sizeof(name)) {
		size_t piece = 256 - ((addr + len) & 255);
		char *end;

		if (piece > sizeof(name) - len)
			piece = sizeof(name) - len;
		if (read(arg, addr + len, name + len, piece))
			return NULL;
		end = memchr(name + len, '\0', piece);
		if (end)
			return strdup(name);
		len += piece;
	}
	return NULL;
}

static int add(struct linkmap *l, uint64_t dynamic, char *name)
{
	if (l->n == l->capacity) {
		size_t want = l->capacity ? l->capacity * 2 : 32;
		struct linkmap_entry *entries = reallocarray(l->entries, want, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		l->entries = entries;
		l->capacity = want;
	}
	l->entries[l->n++] = (struct linkmap_entry){dynamic, name};
	return 0;
}

static int read_namespace(struct linkmap *l, memory_read_fn read, void *arg, uint64_t at)
{
	struct link_map_64 map;
	uint64_t prev = 0;

	for (; at && l->steps < MAX_STEPS; prev = at, at = map.next) {
		char *name;

		l->steps++;
		/* gdb ends the list at a wrong back pointer too: no list can come round then */
		if (read(arg, at, &map, sizeof(map)) || map.prev != prev)
			break;
		name = read_name(read, arg, map.name);
		if (!name)
			continue;
		l->name_bytes += strlen(name);
		if (l->name_bytes > MAX_NAME_BYTES || add(l, map.ld, name)) {
			free(name);
			return l->name_bytes > MAX_NAME_BYTES ? 0 : -ENOMEM;
		}
	}
	return 0;
}

struct linkmap *linkmap__read(memory_read_fn read, void *arg, const struct linkmap_start *start)
{
	struct linkmap *l = calloc(1, sizeof(*l));
	struct r_debug_64 debug;
	uint64_t at;

	if (!l)
		return NULL;
	at = find_r_debug(read, arg, start);
	for (size_t i = 0; at && i < MAX_NAMESPACES; i++) {
		memset(&debug, 0, sizeof(debug));
		if (read(arg, at, &debug, offsetof(struct r_debug_64, next)))
			break;
		if (debug.version >= 2 &&
		    read(arg, at + offsetof(struct r_debug_64, next), &debug.next, 8))
			debug.next = 0;
		if (read_namespace(l, read, arg, debug.map)) {
			linkmap__free(l);
			errno = ENOMEM;
			return NULL;
		}
		at = debug.next;
	}
	return l;
}

void linkmap__free(struct linkmap *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		free((char *)(uintptr_t)l->entries[i].name);
	free(l->entries);
	free(l);
}

const struct linkmap_entry *linkmap__entries(const struct linkmap *l, size_t *ret_n)
{
	*ret_n = l->n;
	return l->entries;
}
