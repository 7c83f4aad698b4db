// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/names.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SCOPES 64

/* Its own, or that of what it is an instance or the definition of. */
static const char *string_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr_integrate(die, attribute, &attr));
}

static const char *linkage_name(Dwarf_Die *die, int language)
{
	const char *name;

	/* gdb does not trust rustc's, and goes by names and scopes */
	if (language == DW_LANG_Rust)
		return NULL;
	name = string_of(die, DW_AT_linkage_name);
	return name ? name : string_of(die, DW_AT_MIPS_linkage_name);
}

static bool has_scopes(int language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_D:
	case DW_LANG_Rust:
		return true;
	}
	return false;
}

/* The DIE that says where the function was declared: within its class, not where its code is. */
static Dwarf_Die declaration(const Dwarf_Die *function)
{
	Dwarf_Die die = *function, next;
	Dwarf_Attribute attr;

	for (int i = 0; i < MAX_SCOPES; i++) {
		if (!dwarf_formref_die(dwarf_attr(&die, DW_AT_abstract_origin, &attr), &next) &&
		    !dwarf_formref_die(dwarf_attr(&die, DW_AT_specification, &attr), &next))
			break;
		die = next;
	}
	return die;
}

struct path {
	uint64_t offset;
	Dwarf_Die dies[MAX_SCOPES];
	size_t n;
};

/* libdw has no parent of a DIE: look for it from the unit's on. */
static bool find_path(struct path *p, Dwarf_Die *die)
{
	Dwarf_Die child, next;
	bool more;

	if (p->n == MAX_SCOPES || dwarf_child(die, &child))
		return false;
	p->dies[p->n++] = *die;
	do {
		if (dwarf_dieoffset(&child) == p->offset)
			return true;
		more = dwarf_siblingof(&child, &next) == 0;
		/* its children lie between it and its next sibling */
		if ((!more || dwarf_dieoffset(&next) > p->offset) &&
		    dwarf_dieoffset(&child) < p->offset && find_path(p, &child))
			return true;
		child = next;
	} while (more);
	p->n--;
	return false;
}

static void append_scope(Dwarf_Die *die, struct strbuf *text)
{
	const char *name;

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		name = string_of(die, DW_AT_name);
		strbuf__append_str(text, name ? name : "(anonymous namespace)");
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
		name = string_of(die, DW_AT_name);
		if (!name)
			return;
		strbuf__append_str(text, name);
		break;
	default:
		return;
	}
	strbuf__append_str(text, "::");
}

int names__append(const Dwarf_Die *function, int language, struct strbuf *ret_text,
		  bool *ret_mangled)
{
	Dwarf_Die die = *function, unit;
	const char *linkage = linkage_name(&die, language), *name = string_of(&die, DW_AT_name);
	struct path path = {0};

	if (linkage || !name || !has_scopes(language)) {
		if (!linkage && !name)
			return -ENOENT;
		*ret_mangled = linkage && has_scopes(language);
		return strbuf__append_str(ret_text, linkage ? linkage : name);
	}
	die = declaration(function);
	path.offset = dwarf_dieoffset(&die);
	if (dwarf_diecu(&die, &unit, NULL, NULL) && find_path(&path, &unit)) {
		for (size_t i = 0; i < path.n; i++)
			append_scope(&path.dies[i], ret_text);
	}
	*ret_mangled = false;
	return strbuf__append_str(ret_text, name) || ret_text->failed ? -ENOMEM : 0;
}
