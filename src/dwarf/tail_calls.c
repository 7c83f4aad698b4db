// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/tail_calls.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MAX_DEPTH 256
#define MAX_SITES 64   /* tail calls of one function */
#define MAX_STEPS 4096 /* of the search */

struct search {
	const struct tail_calls_space *space;
	uint64_t callee;
	uint64_t chain[TAIL_CALLS_MAX]; /* return addresses, outermost first */
	size_t n, steps;
	/* the ways found so far: the first one, and how much of it all others share */
	uint64_t found[TAIL_CALLS_MAX];
	size_t n_found, callers, callees;
	bool any;
};

/* A DW_TAG_call_site, by either of its names. */
static bool is_call_site(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site;
}

static bool returns_to(Dwarf_Die *site, uint64_t *ret_addr)
{
	Dwarf_Attribute attr;
	Dwarf_Addr addr;

	if (dwarf_formaddr(dwarf_attr(site, DW_AT_call_return_pc, &attr), &addr) &&
	    dwarf_formaddr(dwarf_attr(site, DW_AT_low_pc, &attr), &addr))
		return false;
	*ret_addr = addr;
	return true;
}

static bool is_tail_call(Dwarf_Die *site)
{
	Dwarf_Attribute attr;
	bool flag = false;

	if (dwarf_formflag(dwarf_attr(site, DW_AT_call_tail_call, &attr), &flag))
		dwarf_formflag(dwarf_attr(site, DW_AT_GNU_tail_call, &attr), &flag);
	return flag;
}

/* Each call site of a function, those in what is inlined there too; stops when fn returns true. */
static bool each_site(Dwarf_Die *scope, int depth, bool (*fn)(Dwarf_Die *site, void *arg),
		      void *arg)
{
	Dwarf_Die child;

	if (depth > MAX_DEPTH || dwarf_child(scope, &child))
		return false;
	do {
		if (is_call_site(&child)) {
			if (fn(&child, arg))
				return true;
		} else if (dwarf_tag(&child) != DW_TAG_subprogram &&
			   each_site(&child, depth + 1, fn, arg)) {
			return true;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* Where the call goes. Returns 0, or -ENOENT if only registers tell. */
static int target_of(struct search *s, Dwarf_Die *site, uint64_t *ret_addr)
{
	Dwarf_Attribute attr;
	Dwarf_Die target;
	Dwarf_Addr addr;
	const char *name;

	if (dwarf_hasattr(site, DW_AT_call_target) ||
	    dwarf_hasattr(site, DW_AT_GNU_call_site_target))
		return -ENOENT;
	if (!dwarf_formref_die(dwarf_attr(site, DW_AT_call_origin, &attr), &target) &&
	    !dwarf_formref_die(dwarf_attr(site, DW_AT_abstract_origin, &attr), &target))
		return -ENOENT;
	if (dwarf_hasattr(&target, DW_AT_declaration) &&
	    !dwarf_hasattr(&target, DW_AT_specification)) {
		name = dwarf_formstring(dwarf_attr_integrate(&target, DW_AT_linkage_name, &attr));
		if (!name)
			name = dwarf_diename(&target);
		return name ? s->space->symbol(s->space->arg, name, ret_addr) : -ENOENT;
	}
	if (dwarf_entrypc(&target, &addr))
		return -ENOENT;
	*ret_addr = addr;
	return 0;
}

/* A way to the callee: what it does not share with the first one is not certain. */
static void take_chain(struct search *s)
{
	size_t same = 0;

	if (!s->any) {
		memcpy(s->found, s->chain, sizeof(s->found));
		s->n_found = s->callers = s->callees = s->n;
		s->any = true;
		return;
	}
	while (same < s->callers && same < s->n && s->found[same] == s->chain[same])
		same++;
	s->callers = same;
	for (same = 0; same < s->callees && same < s->n; same++) {
		if (s->found[s->n_found - 1 - same] != s->chain[s->n - 1 - same])
			break;
	}
	s->callees = same;
}

struct sites {
	Dwarf_Die all[MAX_SITES];
	size_t n;
};

static bool add_tail_call(Dwarf_Die *site, void *arg)
{
	struct sites *sites = arg;

	if (!is_tail_call(site))
		return false;
	if (sites->n == MAX_SITES)
		return true;
	sites->all[sites->n++] = *site;
	return false;
}

static bool in_chain(const struct search *s, uint64_t addr)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->chain[i] == addr)
			return true;
	}
	return false;
}

/* Follow one call. False: it cannot be told where it leads, so nothing is certain. */
static bool follow(struct search *s, Dwarf_Die *site)
{
	struct sites sites;
	Dwarf_Die function;
	uint64_t target, addr;
	Dwarf_Addr entry;

	if (++s->steps > MAX_STEPS || target_of(s, site, &target))
		return false;
	if (target == s->callee) {
		take_chain(s);
		return true;
	}
	if (s->space->function_at(s->space->arg, target, &function) ||
	    dwarf_entrypc(&function, &entry) || entry != target)
		return false;
	sites.n = 0;
	if (each_site(&function, 0, add_tail_call, &sites))
		return false;
	for (size_t i = 0; i < sites.n; i++) {
		if (!returns_to(&sites.all[i], &addr) || in_chain(s, addr))
			continue;
		if (s->n == TAIL_CALLS_MAX)
			return false;
		s->chain[s->n++] = addr;
		if (!follow(s, &sites.all[i]))
			return false;
		s->n--;
	}
	return true;
}

struct wanted {
	uint64_t return_addr;
	Dwarf_Die site;
};

static bool is_wanted(Dwarf_Die *site, void *arg)
{
	struct wanted *w = arg;
	uint64_t addr;

	if (!returns_to(site, &addr) || addr != w->return_addr)
		return false;
	w->site = *site;
	return true;
}

size_t tail_calls__find(const struct tail_calls_space *space, uint64_t return_addr,
			uint64_t callee_addr, uint64_t ret_addrs[TAIL_CALLS_MAX])
{
	struct search s = {.space = space};
	struct wanted wanted = {.return_addr = return_addr};
	Dwarf_Die caller, callee;
	Dwarf_Addr entry;
	size_t n = 0;

	if (space->function_at(space->arg, callee_addr, &callee) ||
	    dwarf_entrypc(&callee, &entry) ||
	    space->function_at(space->arg, return_addr - 1, &caller) ||
	    !each_site(&caller, 0, is_wanted, &wanted))
		return 0;
	s.callee = entry;
	if (!follow(&s, &wanted.site) || !s.any)
		return 0;
	/* one way: all of it is both what comes first and what comes last */
	if (s.callers == s.n_found)
		s.callees = 0;
	for (size_t i = 0; i < s.callees; i++)
		ret_addrs[n++] = s.found[s.n_found - 1 - i];
	for (size_t i = 0; i < s.callers; i++)
		ret_addrs[n++] = s.found[s.callers - 1 - i];
	return n;
}
