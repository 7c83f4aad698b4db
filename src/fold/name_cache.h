/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * name_cache: what frames were shortened to, by what follows their address. A trace of many
 * threads holds the same few thousand frames over and over. Bounded: a new entry takes the place
 * of the one in its slot. Texts are owned by the cache, valid until the next name_cache__put().
 */
#ifndef PMP_NAME_CACHE_H
#define PMP_NAME_CACHE_H

#include "model/stack.h"

#include <stdbool.h>

#define NAME_CACHE_KEY_MAX ((size_t)512) /* bytes; longer keys are not kept */

struct name_cache;

struct name_entry {
	struct text name;
	struct text file; /* the file's name that carries over, if has_path */
	bool has_path;
};

/* NULL with errno ENOMEM. */
struct name_cache *name_cache__new(void);
void name_cache__free(struct name_cache *c);

/* `flag` belongs to the key. NULL: not there. */
const struct name_entry *name_cache__find(struct name_cache *c, struct text key, bool flag);

/* Keep copies. Without memory, or with texts that are too long, nothing is kept. */
void name_cache__put(struct name_cache *c, struct text key, bool flag,
		     const struct name_entry *entry);

#endif
