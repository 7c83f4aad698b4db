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

/*
 * All that unwind_rules__from_row() reads of a usual row: the CFA from a register, all else at
 * offsets from it. Making a rule and finding it takes longer than running the CFI program did.
 */
struct key {
	uint64_t words[3];
};

struct memo {
	struct key key;
	uint32_t number; /* 0: free, for no row has rule 0 */
};

#define N_MEMOS	   2048 /* 11 bits of a hash */
#define MULTIPLIER 0x9e3779b97f4a7c15ULL

struct unwind_rules {
	struct pmp_rule *rules;
	size_t n, capacity, max;
	struct entry *entries; /* by rule */
	uint64_t seed;
	struct memo memos[N_MEMOS]; /* direct-mapped by key */
};

static const struct pmp_rule unsupported = {.cfa = PMP_CFA_UNSUPPORTED};

/* Keyed, lest a crafted file has all its rules in one bucket. */
static unsigned int hash(const struct unwind_rules *r, const struct pmp_rule *rule)
{
	uint64_t words[sizeof(*rule) / sizeof(uint64_t)], h = r->seed;

	_Static_assert(sizeof(*rule) % sizeof(uint64_t) == 0, "a rule is hashed by words");
	memcpy(words, rule, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		unsigned __int128 product = (unsigned __int128)(h ^ words[i]) * MULTIPLIER;

		h = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return (unsigned int)(h ^ h >> 32);
}

static struct memo *memo_of(struct unwind_rules *r, const struct key *key)
{
	uint64_t h = key->words[0] ^ key->words[1] * 5 ^ key->words[2] * 9;

	return &r->memos[(h ^ h >> 32) * MULTIPLIER >> 53];
}

static bool same_key(const struct key *a, const struct key *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] &&
	       a->words[2] == b->words[2];
}

/* An offset from the CFA in 16 bits; what the row is unusual by is added to *unusual. */
static inline uint64_t usual(const struct cfi_rule *reg, uint64_t *unusual)
{
	*unusual |= ~(1U << CFI_UNSPECIFIED | 1U << CFI_SAME | 1U << CFI_OFFSET) >> reg->kind & 1;
	/* the others have offset 0; places further away than 16 KiB are as rare */
	*unusual |= ((uint64_t)reg->offset + 0x4000) >> 15;
	return reg->kind == CFI_OFFSET ? (uint16_t)reg->offset : PMP_SAVED_SAME;
}

/* Without branches: which registers a function saves is hard to foresee. */
static bool make_key(const struct cfi_row *row, struct key *ret_key)
{
	const struct cfi_rule *regs = row->regs;
	uint64_t unusual = row->cfa.kind ^ CFI_REGISTER;
	uint64_t cfa_offset = (uint64_t)row->cfa.offset;

	unusual |= regs[CFI_RSP].kind | (regs[CFI_RA].kind ^ CFI_OFFSET) | cfa_offset >> 31;
	ret_key->words[0] = cfa_offset << 16 | (uint64_t)row->cfa.reg << 8 | row->signal_frame;
	ret_key->words[1] = usual(&regs[CFI_RBX], &unusual) |
			    usual(&regs[CFI_RBP], &unusual) << 16 |
			    usual(&regs[CFI_R12], &unusual) << 32 |
			    usual(&regs[CFI_R13], &unusual) << 48;
	ret_key->words[2] = usual(&regs[CFI_R14], &unusual) |
			    usual(&regs[CFI_R15], &unusual) << 16 |
			    usual(&regs[CFI_RA], &unusual) << 32;
	return !unusual;
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

static int find_or_add(struct unwind_rules *r, const struct cfi_row *row, uint32_t *ret_number)
{
	struct pmp_rule rule = unwind_rules__from_row(row);
	unsigned int hashed = hash(r, &rule);
	struct entry *entry;
	int err;

	HASH_FIND_BYHASHVALUE(hh, r->entries, &rule, sizeof(rule), hashed, entry);
	if (entry) {
		*ret_number = entry->number;
		return 0;
	}
	if (r->n == r->max) {
		*ret_number = RULE_UNSUPPORTED;
		return 0;
	}
	err = add(r, &rule, hashed);
	if (!err)
		*ret_number = (uint32_t)r->n - 1;
	return err;
}

int unwind_rules__number(struct unwind_rules *r, const struct cfi_row *row, uint32_t *ret_number)
{
	struct memo *memo;
	struct key key;
	uint32_t number;
	int err;

	if (!make_key(row, &key))
		return find_or_add(r, row, ret_number);
	memo = memo_of(r, &key);
	if (memo->number && same_key(&memo->key, &key)) {
		*ret_number = memo->number;
		return 0;
	}
	err = find_or_add(r, row, &number);
	if (err)
		return err;
	*memo = (struct memo){.key = key, .number = number};
	*ret_number = number;
	return 0;
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
