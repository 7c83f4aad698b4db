/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mutate_dwarf: debug information (DWARF 4) that is well-formed and has no end of something, or
 * leads in circles; for mutate.h alone.
 */
#ifndef PMP_MUTATE_DWARF_H
#define PMP_MUTATE_DWARF_H

#include <dwarf.h>

enum abbreviation {
	UNIT = 1,	/* name, lines, range */
	FUNCTION,	/* name, range; children */
	INLINED,	/* origin, range, call; children */
	ABSTRACT,	/* name */
	BLOCK,		/* children */
	NAMESPACE,	/* name; children */
	INSTANCE,	/* origin, range; children */
	BLOCK_SIBLING,	/* sibling; children */
	EMPTY_BLOCK,	/* nothing */
	EMPTY_FUNCTION, /* name, range */
	ORIGIN,		/* origin */
	CALL,		/* return address, origin */
	TAIL_CALL,	/* the same, and that it is one */
};

struct abbreviated {
	uint16_t tag;
	bool children;
	uint8_t attributes[12]; /* and their forms */
};

#define NAMED  DW_AT_name, DW_FORM_string
#define RANGED DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8
#define FROM   DW_AT_abstract_origin, DW_FORM_ref4

static const struct abbreviated abbreviations[] = {
	[UNIT] = {DW_TAG_compile_unit,
		  true,
		  {NAMED, DW_AT_language, DW_FORM_data1, DW_AT_stmt_list, DW_FORM_sec_offset,
		   RANGED}},
	[FUNCTION] = {DW_TAG_subprogram, true, {NAMED, RANGED}},
	[INLINED] = {DW_TAG_inlined_subroutine,
		     true,
		     {FROM, RANGED, DW_AT_call_file, DW_FORM_data1, DW_AT_call_line,
		      DW_FORM_data1}},
	[ABSTRACT] = {DW_TAG_subprogram, false, {NAMED}},
	[BLOCK] = {DW_TAG_lexical_block, true, {0}},
	[NAMESPACE] = {DW_TAG_namespace, true, {NAMED}},
	[INSTANCE] = {DW_TAG_subprogram, true, {FROM, RANGED}},
	[BLOCK_SIBLING] = {DW_TAG_lexical_block, true, {DW_AT_sibling, DW_FORM_ref4}},
	[EMPTY_BLOCK] = {DW_TAG_lexical_block, false, {0}},
	[EMPTY_FUNCTION] = {DW_TAG_subprogram, false, {NAMED, RANGED}},
	[ORIGIN] = {DW_TAG_subprogram, false, {FROM}},
	[CALL] = {DW_TAG_GNU_call_site, false, {DW_AT_low_pc, DW_FORM_addr, FROM}},
	[TAIL_CALL] = {DW_TAG_GNU_call_site, false, {DW_AT_low_pc, DW_FORM_addr, FROM}},
};

struct unit {
	struct bytes info;
	uint64_t low, len; /* of the code */
};

static void put_uleb(struct bytes *b, uint64_t value)
{
	do {
		bytes__put(b, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

static void put_abbreviations(struct bytes *b)
{
	for (size_t i = 1; i < sizeof(abbreviations) / sizeof(abbreviations[0]); i++) {
		const struct abbreviated *a = &abbreviations[i];

		put_uleb(b, i);
		put_uleb(b, a->tag);
		bytes__put(b, a->children, 1);
		for (size_t j = 0; j < sizeof(a->attributes) && a->attributes[j]; j++)
			put_uleb(b, a->attributes[j]);
		if (i == TAIL_CALL) {
			put_uleb(b, DW_AT_GNU_tail_call);
			put_uleb(b, DW_FORM_flag_present);
		}
		bytes__put(b, 0, 2);
	}
	bytes__put(b, 0, 1);
}

static void put_name(struct unit *u, const char *name)
{
	bytes__add(&u->info, name, strlen(name) + 1);
}

static void put_range(struct unit *u)
{
	bytes__put(&u->info, u->low, 8);
	bytes__put(&u->info, u->len, 8);
}

/* Returns its offset in the unit. */
static uint32_t put_die(struct unit *u, enum abbreviation number)
{
	put_uleb(&u->info, number);
	return (uint32_t)u->info.len - 1;
}

static uint32_t put_function(struct unit *u, enum abbreviation number, const char *name)
{
	uint32_t at = put_die(u, number);

	put_name(u, name);
	if (number != ABSTRACT)
		put_range(u);
	return at;
}

static uint32_t put_instance(struct unit *u, enum abbreviation number, uint32_t origin)
{
	uint32_t at = put_die(u, number);

	bytes__put(&u->info, origin, 4);
	if (number != ORIGIN)
		put_range(u);
	if (number == INLINED)
		bytes__put(&u->info, 0x0101, 2);
	return at;
}

/* A unit for all of the file's code. */
static struct unit begin_unit(struct mutant *m)
{
	const Elf64_Shdr *text = mutant__section(m, mutant__find(m, ".text"));
	struct unit u = {.low = text->sh_addr, .len = text->sh_size};

	bytes__put(&u.info, 0, 4); /* its length: later */
	bytes__put(&u.info, 4, 2);
	bytes__put(&u.info, 0, 4);
	bytes__put(&u.info, 8, 1);
	put_die(&u, UNIT);
	put_name(&u, "unit");
	bytes__put(&u.info, DW_LANG_C_plus_plus, 1);
	bytes__put(&u.info, 0, 4);
	put_range(&u);
	return u;
}

static void set_length(struct unit *u, uint64_t more)
{
	uint32_t length = (uint32_t)(u->info.len + more - 4);

	memcpy(u->info.at, &length, 4);
}

static void set_abbreviations(struct mutant *m)
{
	struct bytes b = {0};

	put_abbreviations(&b);
	mutant__set(m, ".debug_abbrev", b.at, b.len);
	/* what says which unit has which code would be of the other one */
	if (mutant__look_for(m, ".debug_aranges"))
		mutant__section(m, mutant__find(m, ".debug_aranges"))->sh_size = 0;
	free(b.at);
}

static void end_unit(struct mutant *m, struct unit *u, size_t open)
{
	bytes__fill(&u->info, 0, open + 1);
	set_length(u, 0);
	set_abbreviations(m);
	mutant__set(m, ".debug_info", u->info.at, u->info.len);
	free(u->info.at);
}

/* The low half: how many are inlined in each other; the high: how long their names are. */
static void mutate_dwarf__deep(struct mutant *m, uint64_t arg)
{
	static const size_t lengths[] = {65536, 1024, 8};
	size_t n = arg & UINT32_MAX, len = lengths[arg >> 32];
	struct unit u = begin_unit(m);
	uint32_t *origins = calloc(n, sizeof(*origins));
	char *name = malloc(len + 1);

	memset(name, 'n', len);
	name[len] = '\0';
	for (size_t i = 0; i < n; i++) {
		snprintf(name, 8, "f%05zu", i % 100000);
		name[6] = '_';
		origins[i] = put_function(&u, ABSTRACT, name);
	}
	put_instance(&u, INSTANCE, origins[0]);
	for (size_t i = 1; i < n; i++)
		put_instance(&u, INLINED, origins[i]);
	end_unit(m, &u, n);
	free(name);
	free(origins);
}

static void mutate_dwarf__origins(struct mutant *m, uint64_t arg)
{
	struct unit u = begin_unit(m);
	uint32_t at = (uint32_t)u.info.len, origin = at;

	if (arg == 0)
		put_instance(&u, ORIGIN, at);
	if (arg == 1)
		put_instance(&u, ORIGIN, put_instance(&u, ORIGIN, at + 5));
	if (arg == 2)
		origin = at + 2;
	if (arg == 3)
		origin = INT32_MAX;
	put_instance(&u, INSTANCE, origin);
	put_instance(&u, INLINED, origin);
	put_instance(&u, INLINED, (uint32_t)u.info.len); /* its own */
	end_unit(m, &u, 3);
}

static void mutate_dwarf__siblings(struct mutant *m, uint64_t arg)
{
	struct unit u = begin_unit(m);
	uint32_t first = put_function(&u, FUNCTION, "f"), at;

	for (int i = 0; i < 3; i++) {
		at = put_die(&u, BLOCK_SIBLING);
		bytes__put(&u.info, arg == 0 ? at : arg == 1 ? first : INT32_MAX, 4);
		bytes__put(&u.info, 0, 1);
	}
	end_unit(m, &u, 1);
}

/* The low half: how many; the high: 0 in each other, 1 after each other, 3 so and compressed. */
static void mutate_dwarf__blocks(struct mutant *m, uint64_t arg)
{
	uint64_t n = arg & UINT32_MAX;
	struct unit u = begin_unit(m);
	struct bytes data = {0};

	put_function(&u, FUNCTION, "f");
	if (arg >> 32 < 2) {
		bytes__fill(&u.info, arg >> 32 ? EMPTY_BLOCK : BLOCK, n);
		end_unit(m, &u, arg >> 32 ? 1 : n + 1);
		return;
	}
	/* without its end, which the unit's is as well */
	set_length(&u, n);
	set_abbreviations(m);
	deflate(&data, u.info.at, u.info.len, EMPTY_BLOCK, n);
	set_compressed(m, ".debug_info", ELFCOMPRESS_ZLIB, u.info.len + n, &data);
	free(data.at);
	free(u.info.at);
}

static void mutate_dwarf__namespaces(struct mutant *m, uint64_t arg)
{
	struct unit u = begin_unit(m);

	for (uint64_t i = 0; i < arg; i++) {
		put_die(&u, NAMESPACE);
		put_name(&u, "n");
		if (i == 40 || i == 200)
			put_function(&u, EMPTY_FUNCTION, "f");
	}
	end_unit(m, &u, arg);
}

static void mutate_dwarf__functions(struct mutant *m, uint64_t arg)
{
	struct unit u = begin_unit(m);

	for (uint64_t i = 0; i < arg; i++)
		put_function(&u, EMPTY_FUNCTION, "f");
	end_unit(m, &u, 0);
}

/* Functions of 32 bytes each, with a call that returns to each byte of theirs, and jumps to all. */
static void mutate_dwarf__calls(struct mutant *m, uint64_t arg)
{
	struct unit u = begin_unit(m);
	uint64_t low = u.low, n = u.len / 32 < arg ? u.len / 32 : arg;
	uint32_t first = (uint32_t)u.info.len, size = 0;

	for (uint64_t i = 0; i < n; i++) {
		u.low = low + i * (u.len / n);
		put_die(&u, FUNCTION);
		put_name(&u, "f");
		bytes__put(&u.info, u.low, 8);
		bytes__put(&u.info, u.len / n, 8);
		for (uint64_t j = 0; j < n; j++) {
			put_die(&u, TAIL_CALL);
			bytes__put(&u.info, u.low + j, 8);
			bytes__put(&u.info, size ? first + size * (uint32_t)j : first, 4);
		}
		for (uint64_t j = 0; j < u.len / n; j++) {
			put_die(&u, CALL);
			bytes__put(&u.info, u.low + j, 8);
			bytes__put(&u.info, size ? first + size * (uint32_t)((i + 1) % n) : first,
				   4);
		}
		bytes__put(&u.info, 0, 1);
		size = size ? size : (uint32_t)u.info.len - first;
	}
	end_unit(m, &u, 0);
}

/* 0: a form that says that the next one counts, again and again */
static void mutate_dwarf__attributes(struct mutant *m, uint64_t arg)
{
	struct bytes abbreviation = {0};
	struct unit u = begin_unit(m);

	if (!arg) {
		u.info.len = 11;
		bytes__put(&u.info, 1, 1);
		bytes__fill(&u.info, DW_FORM_indirect, MUTATE_MANY);
	}
	put_uleb(&abbreviation, 1);
	put_uleb(&abbreviation, DW_TAG_compile_unit);
	bytes__put(&abbreviation, 1, 1);
	for (uint64_t i = 0; i <= arg; i++) {
		put_uleb(&abbreviation, arg ? DW_AT_external : DW_AT_name);
		put_uleb(&abbreviation, arg ? DW_FORM_flag_present : DW_FORM_indirect);
	}
	bytes__put(&abbreviation, 0, 3);
	end_unit(m, &u, 0);
	mutant__set(m, ".debug_abbrev", abbreviation.at, abbreviation.len);
	free(abbreviation.at);
}

enum lines {
	RANGE_0,
	NO_OPERATIONS,
	OPCODES_FROM_0,
	MANY_ROWS,
	HUGE_HEADER,
	MANY_FILES,
	ONE_ADDRESS,
	TWO_FILES
};

static void put_rows(struct bytes *b, uint64_t low, enum lines kind)
{
	bytes__put(b, 0x020900, 3); /* DW_LNE_set_address */
	bytes__put(b, low, 8);
	if (kind == ONE_ADDRESS || kind == TWO_FILES) {
		bytes__put(b, 20, 1);
		bytes__put(b, DW_LNS_negate_stmt, 1);
	}
	for (size_t i = 0; i < 3 * MUTATE_MANY; i++) {
		if (kind == TWO_FILES) {
			bytes__put(b, DW_LNS_set_file, 1);
			bytes__put(b, 1 + i % 2, 1);
		}
		/* a row: to the next address, or not; to the next line */
		bytes__put(b, kind == MANY_ROWS ? 20 + 14 : 19, 1);
	}
	bytes__put(b, 0x7f02, 2); /* DW_LNS_advance_pc */
	bytes__put(b, 0x010100, 3);
}

static void mutate_dwarf__lines(struct mutant *m, uint64_t arg)
{
	const uint8_t standard[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	struct unit u = begin_unit(m);
	struct bytes b = {0};
	enum lines kind = (enum lines)arg;
	uint32_t length;

	bytes__put(&b, 0, 4);
	bytes__put(&b, 4, 2);
	bytes__put(&b, 0, 4);
	bytes__put(&b, 1, 1);
	bytes__put(&b, kind != NO_OPERATIONS, 1);
	bytes__put(&b, 1, 1);
	bytes__put(&b, 0xfb, 1); /* -5 */
	bytes__put(&b, kind == RANGE_0 ? 0 : 14, 1);
	bytes__put(&b, kind == OPCODES_FROM_0 ? 0 : 13, 1);
	bytes__add(&b, standard, sizeof(standard));
	bytes__put(&b, 0, 1);
	for (size_t i = 0; i < (kind == MANY_FILES ? 100000 : 2); i++) {
		bytes__add(&b, i % 2 ? "/b/b.c" : "/a/a.c", 7);
		bytes__put(&b, 0, 3);
	}
	bytes__put(&b, 0, 1);
	length = kind == HUGE_HEADER ? UINT32_MAX - 16 : (uint32_t)b.len - 10;
	memcpy(b.at + 6, &length, 4);
	put_rows(&b, u.low, kind);
	length = (uint32_t)b.len - 4;
	memcpy(b.at, &length, 4);
	put_function(&u, EMPTY_FUNCTION, "f");
	end_unit(m, &u, 0);
	mutant__set(m, ".debug_line", b.at, b.len);
	free(b.at);
}

#endif
