// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/code_ranges.h"

#include <errno.h>
#include <stdlib.h>

/* How many ranges that began before the closest one are looked at: ranges that enclose others are
 * rare, and a file may claim any number of them. */
#define MAX_ENCLOSING 64

struct range {
	uint64_t low, high;
	size_t die;
};

struct code_ranges {
	struct range *all;
	size_t n, capacity;
	Dwarf_Die *dies;
	size_t n_dies, dies_capacity;
};

struct code_ranges *code_ranges__new(void)
{
	return calloc(1, sizeof(struct code_ranges));
}

void code_ranges__free(struct code_ranges *r)
{
	if (!r)
		return;
	free(r->all);
	free(r->dies);
	free(r);
}

static int add_die(struct code_ranges *r, const Dwarf_Die *die)
{
	if (r->n_dies == r->dies_capacity) {
		size_t capacity = r->dies_capacity ? r->dies_capacity * 2 : 64;
		Dwarf_Die *dies = reallocarray(r->dies, capacity, sizeof(*dies));

		if (!dies)
			return -ENOMEM;
		r->dies = dies;
		r->dies_capacity = capacity;
	}
	r->dies[r->n_dies++] = *die;
	return 0;
}

static int add_range(struct code_ranges *r, uint64_t low, uint64_t high)
{
	if (r->n == r->capacity) {
		size_t capacity = r->capacity ? r->capacity * 2 : 128;
		struct range *all = reallocarray(r->all, capacity, sizeof(*all));

		if (!all)
			return -ENOMEM;
		r->all = all;
		r->capacity = capacity;
	}
	r->all[r->n++] = (struct range){low, high, r->n_dies - 1};
	return 0;
}

int code_ranges__add(struct code_ranges *r, const Dwarf_Die *die)
{
	Dwarf_Die copy = *die;
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	size_t before = r->n;

	while ((at = dwarf_ranges(&copy, at, &base, &low, &high)) > 0) {
		if (low >= high)
			continue;
		if (r->n == before && add_die(r, die))
			return -ENOMEM;
		if (add_range(r, low, high))
			return -ENOMEM;
	}
	return 0;
}

static int by_low(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	/* the larger first, so that the smaller is the closer one; of two names of one function
	 * gdb takes the last (block_compare in its buildsym.c) */
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

void code_ranges__sort(struct code_ranges *r)
{
	if (r->n)
		qsort(r->all, r->n, sizeof(*r->all), by_low);
}

int code_ranges__find(const struct code_ranges *r, uint64_t addr, Dwarf_Die *ret_die)
{
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->all[mid].low <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = 0; i < MAX_ENCLOSING && low > 0; i++) {
		low--;
		if (addr < r->all[low].high) {
			*ret_die = r->dies[r->all[low].die];
			return 0;
		}
	}
	return -ENOENT;
}
