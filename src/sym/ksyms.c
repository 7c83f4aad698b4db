// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/ksyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"

#define BUFFER	     (64u << 10) /* also the longest line */
#define MAX_SYMBOLS  (4u << 20)
#define MAX_NAMES    (256u << 20)
#define MAX_FUNCTION (1u << 20) /* bytes: past the last symbol of a region nothing has a name */
#define NO_NAME	     UINT32_MAX /* not code: only ends what is before it */

struct symbol {
	uint64_t addr;
	uint32_t name;
	uint32_t order; /* in the file */
};

struct ksyms {
	struct symbol *symbols;
	size_t n, capacity;
	struct strbuf names;
	bool sorted;
};

static int add(struct ksyms *k, uint64_t addr, const char *name, size_t len)
{
	struct symbol *last = k->n ? &k->symbols[k->n - 1] : NULL;

	/* of a run of data only the first ends something */
	if (!name && last && last->name == NO_NAME && addr >= last->addr)
		return 0;
	if (k->n == MAX_SYMBOLS || k->names.len > MAX_NAMES)
		return 0;
	if (k->n == k->capacity) {
		size_t want = k->capacity ? k->capacity + k->capacity / 2 : 16384;
		struct symbol *symbols = reallocarray(k->symbols, want, sizeof(*symbols));

		if (!symbols)
			return -ENOMEM;
		k->symbols = symbols;
		k->capacity = want;
		last = k->n ? &k->symbols[k->n - 1] : NULL;
	}
	if (last && addr < last->addr)
		k->sorted = false;
	k->symbols[k->n] = (struct symbol){addr, name ? (uint32_t)k->names.len : NO_NAME,
					   (uint32_t)k->n};
	k->n++;
	if (!name)
		return 0;
	strbuf__append(&k->names, name, len);
	return strbuf__append_char(&k->names, '\0');
}

/* `ffffffff81000000 T name\t[module]` */
static int parse_line(struct ksyms *k, const char *line, const char *end)
{
	uint64_t addr = 0;
	const char *name;
	size_t len = 0;
	bool code;

	for (; line < end && *line != ' '; line++) {
		char c = *line;

		if (c >= '0' && c <= '9')
			addr = addr << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			addr = addr << 4 | (uint64_t)(c - 'a' + 10);
		else
			return 0;
	}
	if (end - line < 4 || line[2] != ' ' || !addr)
		return 0;
	name = line + 3;
	while (name + len < end && name[len] != '\t' && name[len] != ' ' && name[len])
		len++;
	code = line[1] && strchr("tTwW", line[1]);
	return len ? add(k, addr, code ? name : NULL, len) : 0;
}

static int read_symbols(struct ksyms *k, int fd)
{
	char *buffer = malloc(BUFFER);
	size_t have = 0;
	bool skip = false; /* the rest of a line that is too long */
	int err = buffer ? 0 : -ENOMEM;

	while (!err) {
		char *line = buffer, *eol;
		ssize_t n = read(fd, buffer + have, BUFFER - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		have += (size_t)n;
		while (!err && (eol = memchr(line, '\n', have - (size_t)(line - buffer)))) {
			if (!skip)
				err = parse_line(k, line, eol);
			skip = false;
			line = eol + 1;
		}
		have -= (size_t)(line - buffer);
		memmove(buffer, line, have);
		if (have == BUFFER) {
			skip = true;
			have = 0;
		}
	}
	free(buffer);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

struct ksyms *ksyms__new(const char *path)
{
	struct ksyms *k = calloc(1, sizeof(*k));
	int fd = -1, err = 0;

	if (!k)
		return NULL;
	k->sorted = true;
	fd = open(path ? path : "/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err = -errno;
	else
		err = read_symbols(k, fd);
	if (fd >= 0)
		close(fd);
	if (err) {
		ksyms__free(k);
		errno = -err;
		return NULL;
	}
	if (!k->sorted)
		qsort(k->symbols, k->n, sizeof(k->symbols[0]), compare);
	return k;
}

void ksyms__free(struct ksyms *k)
{
	if (!k)
		return;
	free(k->symbols);
	strbuf__free(&k->names);
	free(k);
}

const char *ksyms__find(const struct ksyms *k, uint64_t addr)
{
	size_t low = 0, high = k->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->symbols[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || addr - k->symbols[low - 1].addr >= MAX_FUNCTION)
		return NULL;
	/* back to the first of equal addresses, over data that starts there too */
	for (uint64_t start = k->symbols[--low].addr; low; low--) {
		if (k->symbols[low - 1].addr != start)
			break;
	}
	while (k->symbols[low].name == NO_NAME && low + 1 < k->n &&
	       k->symbols[low + 1].addr == k->symbols[low].addr)
		low++;
	return k->symbols[low].name == NO_NAME ? NULL : k->names.data + k->symbols[low].name;
}

uint64_t ksyms__address(const struct ksyms *k, const char *name)
{
	for (size_t i = 0; i < k->n; i++) {
		if (k->symbols[i].name != NO_NAME &&
		    !strcmp(k->names.data + k->symbols[i].name, name))
			return k->symbols[i].addr;
	}
	return 0;
}

bool ksyms__hidden(const struct ksyms *k)
{
	return k->n == 0;
}
