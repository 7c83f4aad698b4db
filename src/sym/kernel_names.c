// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/kernel_names.h"

#include "sym/ksyms.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct known {
	UT_hash_handle hh;
	uint64_t addr;
	char *name; /* NULL: it has none */
};

struct kernel_names {
	struct kernel_names_source source;
	bool asks; /* the source has not failed yet */
	char *path;
	bool read;	     /* the file was, if it could be */
	struct ksyms *ksyms; /* what it has */
	struct known *known; /* what was asked of the source */
};

struct kernel_names *kernel_names__new(const struct kernel_names_source *source, const char *path)
{
	struct kernel_names *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	if (source) {
		k->source = *source;
		k->asks = true;
	}
	if (path) {
		k->path = strdup(path);
		if (!k->path) {
			free(k);
			return NULL;
		}
	}
	return k;
}

void kernel_names__free(struct kernel_names *k)
{
	struct known *known, *next;

	if (!k)
		return;
	HASH_ITER (hh, k->known, known, next) {
		HASH_DEL(k->known, known);
		free(known->name);
		free(known);
	}
	ksyms__free(k->ksyms);
	free(k->path);
	free(k);
}

static const struct ksyms *file(struct kernel_names *k)
{
	if (!k->read)
		k->ksyms = ksyms__new(k->path);
	k->read = true;
	return k->ksyms;
}

/* NULL: the source cannot be asked, or there is no memory to keep what it says. */
static const struct known *ask(struct kernel_names *k, uint64_t addr)
{
	const char *name = NULL;
	struct known *known;

	HASH_FIND(hh, k->known, &addr, sizeof(addr), known);
	if (known || !k->asks)
		return known;
	if (k->source.name(k->source.arg, addr, &name)) {
		k->asks = false;
		return NULL;
	}
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	known->addr = addr;
	known->name = name ? strdup(name) : NULL;
	if (!name || known->name)
		HASH_ADD(hh, k->known, addr, sizeof(known->addr), known);
	/* uthash leaves this 0 where it found no memory */
	if (!known->hh.tbl) {
		free(known->name);
		free(known);
		return NULL;
	}
	return known;
}

const char *kernel_names__find(struct kernel_names *k, uint64_t addr)
{
	const struct known *known = ask(k, addr);

	if (known)
		return known->name;
	return file(k) ? ksyms__find(k->ksyms, addr) : NULL;
}

uint64_t kernel_names__address(struct kernel_names *k, const char *name)
{
	uint64_t addr = 0;

	if (k->asks && !k->source.address(k->source.arg, name, &addr))
		return addr;
	return file(k) ? ksyms__address(k->ksyms, name) : 0;
}

bool kernel_names__hidden(const struct kernel_names *k)
{
	return k->read && !k->asks && (!k->ksyms || ksyms__hidden(k->ksyms));
}
