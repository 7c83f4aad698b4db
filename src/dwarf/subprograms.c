// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/subprograms.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "dwarf/code_ranges.h"

/* Of scopes within scopes: a file may claim any depth. */
#define MAX_DEPTH 256

struct subprograms {
	Dwarf_Die unit;
	struct code_ranges *outer;  /* those of the unit and its namespaces and classes */
	struct code_ranges *nested; /* those within other functions; NULL: not looked for yet */
};

/* What may hold functions without being in one. */
static bool is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return true;
	}
	return false;
}

/* The functions below `die`: with `nested` those that are within others, else the others. */
static int collect(struct code_ranges *ranges, Dwarf_Die *die, bool nested, bool inside, int depth)
{
	Dwarf_Die child;
	int err = 0;

	if (depth > MAX_DEPTH || dwarf_child(die, &child))
		return 0;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram && inside == nested)
			err = code_ranges__add(ranges, &child);
		if (err)
			return err;
		if (is_scope(tag))
			err = collect(ranges, &child, nested, inside, depth + 1);
		else if (nested && (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block))
			err = collect(ranges, &child, nested, true, depth + 1);
	} while (!err && dwarf_siblingof(&child, &child) == 0);
	return err;
}

static struct code_ranges *collect_all(const Dwarf_Die *unit, bool nested)
{
	struct code_ranges *ranges = code_ranges__new();
	Dwarf_Die die = *unit;

	if (!ranges)
		return NULL;
	if (collect(ranges, &die, nested, false, 0)) {
		code_ranges__free(ranges);
		errno = ENOMEM;
		return NULL;
	}
	code_ranges__sort(ranges);
	return ranges;
}

struct subprograms *subprograms__new(const Dwarf_Die *unit)
{
	struct subprograms *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->unit = *unit;
	s->outer = collect_all(unit, false);
	if (s->outer)
		return s;
	free(s);
	errno = ENOMEM;
	return NULL;
}

void subprograms__free(struct subprograms *s)
{
	if (!s)
		return;
	code_ranges__free(s->outer);
	code_ranges__free(s->nested);
	free(s);
}

int subprograms__find(struct subprograms *s, uint64_t addr, Dwarf_Die *ret_function)
{
	if (!code_ranges__find(s->outer, addr, ret_function))
		return 0;
	/* rare, and it takes a walk through all of the unit */
	if (!s->nested)
		s->nested = collect_all(&s->unit, true);
	if (!s->nested)
		return -ENOMEM;
	return code_ranges__find(s->nested, addr, ret_function);
}

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_ranges) || dwarf_hasattr(die, DW_AT_high_pc);
}

struct inlined {
	uint64_t addr;
	Dwarf_Die *found;
	size_t n, max;
};

/* Returns whether there is a scope with the address below `die`. */
static bool descend(struct inlined *in, Dwarf_Die *die, int depth)
{
	Dwarf_Die child;

	if (depth > MAX_DEPTH || in->n == in->max || dwarf_child(die, &child))
		return false;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_inlined_subroutine:
			if (dwarf_haspc(&child, in->addr) <= 0)
				break;
			in->found[in->n++] = child;
			descend(in, &child, depth + 1);
			return true;
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			/* one without code of its own is as good as none */
			if (!has_code(&child)) {
				if (descend(in, &child, depth + 1))
					return true;
			} else if (dwarf_haspc(&child, in->addr) > 0) {
				descend(in, &child, depth + 1);
				return true;
			}
			break;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

size_t subprograms__inlined(const Dwarf_Die *function, uint64_t addr, Dwarf_Die *ret_inlined,
			    size_t max)
{
	struct inlined in = {.addr = addr, .found = ret_inlined, .max = max};
	Dwarf_Die die = *function;

	descend(&in, &die, 0);
	return in.n;
}
