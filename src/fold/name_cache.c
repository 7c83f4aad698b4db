// SPDX-License-Identifier: GPL-2.0-or-later
#include "fold/name_cache.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define N_SLOTS	       4096 /* a power of two */
#define NAME_MAX_BYTES 1024

struct slot {
	uint64_t hash;
	uint32_t key_len, capacity;
	bool flag;
	char *bytes; /* key, name and file, one after the other; NULL: empty */
	struct name_entry entry;
};

struct name_cache {
	struct slot slots[N_SLOTS];
};

struct name_cache *name_cache__new(void)
{
	return calloc(1, sizeof(struct name_cache));
}

void name_cache__free(struct name_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < N_SLOTS; i++)
		free(c->slots[i].bytes);
	free(c);
}

/* Multiply and fold, eight bytes at a time, as in wyhash. What collides costs a comparison. */
static uint64_t hash_text(struct text t, bool flag)
{
	uint64_t hash = t.len * 0x9e3779b97f4a7c15ULL + flag, word;

	while (t.len >= 8) {
		unsigned __int128 product;

		memcpy(&word, t.str, 8);
		product = (unsigned __int128)(hash ^ word) * 0xa0761d6478bd642fULL;
		hash = (uint64_t)product ^ (uint64_t)(product >> 64);
		t.str += 8;
		t.len -= 8;
	}
	word = 0;
	if (t.len)
		memcpy(&word, t.str, t.len);
	hash = (hash ^ word) * 0xe7037ed1a0b428dbULL;
	return hash ^ (hash >> 29);
}

const struct name_entry *name_cache__find(struct name_cache *c, struct text key, bool flag)
{
	uint64_t hash = hash_text(key, flag);
	const struct slot *slot = &c->slots[hash % N_SLOTS];

	if (!slot->bytes || slot->hash != hash || slot->key_len != key.len || slot->flag != flag ||
	    memcmp(slot->bytes, key.str, key.len) != 0)
		return NULL;
	return &slot->entry;
}

void name_cache__put(struct name_cache *c, struct text key, bool flag,
		     const struct name_entry *entry)
{
	uint64_t hash = hash_text(key, flag);
	struct slot *slot = &c->slots[hash % N_SLOTS];
	size_t file_len = entry->has_path ? entry->file.len : 0;
	size_t len = key.len + entry->name.len + file_len;
	char *bytes;

	if (key.len > NAME_CACHE_KEY_MAX || entry->name.len + file_len > NAME_MAX_BYTES)
		return;
	if (!slot->bytes || slot->capacity < len) {
		bytes = malloc(len + 1);
		if (!bytes)
			return;
		free(slot->bytes);
		slot->bytes = bytes;
		slot->capacity = (uint32_t)len;
	}
	slot->hash = hash;
	slot->key_len = (uint32_t)key.len;
	slot->flag = flag;
	bytes = slot->bytes;
	memcpy(bytes, key.str, key.len);
	bytes += key.len;
	slot->entry.name = (struct text){bytes, entry->name.len};
	if (entry->name.len)
		memcpy(bytes, entry->name.str, entry->name.len);
	bytes += entry->name.len;
	slot->entry.file = (struct text){bytes, file_len};
	if (file_len)
		memcpy(bytes, entry->file.str, file_len);
	slot->entry.has_path = entry->has_path;
}
