// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* Without memory, uthash leaves the new element out instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct entry {
	UT_hash_handle hh;
	uint32_t number;
	struct pmp_rule rule;
};

struct unwind_rules {
	struct pmp_rule *rules;
	size_t n, capacity, max;
	struct entry *entries; /* by rule */
	uint64_t seed;
};

static const struct pmp_rule unsupported = {.cfa = PMP_CFA_UNSUPPORTED};

/* Keyed, lest a crafted file has all its rules in one bucket. */
static unsigned int hash(const struct unwind_rules *r, const struct pmp_rule *rule)
{
	uint64_t words[sizeof(*rule) / sizeof(uint64_t)], h = r->seed;

	_Static_assert(sizeof(*rule) % sizeof(uint64_t) == 0, "a rule is hashed by words");
	memcpy(words, rule, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		unsigned __int128 product = (unsigned __int128)(h ^ words[i]) *
					    0x9e3779b97f4a7c15ULL;

		h = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return (unsigned int)(h ^ h >> 32);
}

static int add(struct unwind_rules *r, const struct pmp_rule *rule, unsigned int hashed)
{
	struct entry *entry;

	if (r->n == r->capacity) {
		size_t capacity = r->capacity ? r->capacity * 2 : 256;
		struct pmp_rule *rules = reallocarray(r->rules, capacity, sizeof(*rules));

		if (!rules)
			return -ENOMEM;
		r->rules = rules;
		r->capacity = capacity;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->rule = *rule;
	entry->number = (uint32_t)r->n;
	HASH_ADD_BYHASHVALUE(hh, r->entries, rule, sizeof(entry->rule), hashed, entry);
	if (!entry->hh.tbl) {
		free(entry);
		return -ENOMEM;
	}
	r->rules[r->n++] = *rule;
	return 0;
}

int unwind_rules__number(struct unwind_rules *r, const struct pmp_rule *rule, uint32_t *ret_number)
{
	unsigned int hashed = hash(r, rule);
	struct entry *entry;
	int err;

	HASH_FIND_BYHASHVALUE(hh, r->entries, rule, sizeof(*rule), hashed, entry);
	if (entry) {
		*ret_number = entry->number;
		return 0;
	}
	if (r->n == r->max) {
		*ret_number = RULE_UNSUPPORTED;
		return 0;
	}
	err = add(r, rule, hashed);
	if (!err)
		*ret_number = (uint32_t)r->n - 1;
	return err;
}

struct unwind_rules *unwind_rules__new(size_t max)
{
	static const struct pmp_rule none = {.cfa = PMP_CFA_NONE};
	const void *random = (const void *)getauxval(AT_RANDOM);
	struct unwind_rules *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->max = max;
	if (random)
		memcpy(&r->seed, random, sizeof(r->seed));
	if (add(r, &none, hash(r, &none)) || add(r, &unsupported, hash(r, &unsupported))) {
		unwind_rules__free(r);
		errno = ENOMEM;
		return NULL;
	}
	return r;
}

void unwind_rules__free(struct unwind_rules *r)
{
	struct entry *entry, *next;

	if (!r)
		return;
	HASH_ITER (hh, r->entries, entry, next) {
		HASH_DEL(r->entries, entry);
		free(entry);
	}
	free(r->rules);
	free(r);
}

const struct pmp_rule *unwind_rules__all(const struct unwind_rules *r, size_t *ret_n)
{
	*ret_n = r->n;
	return r->rules;
}
