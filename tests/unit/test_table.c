// SPDX-License-Identifier: GPL-2.0-or-later
#include "cfi_builder.h"

#include "unwind/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define CODE 0x1000ULL
#define LEN  0x100

#define SAME PMP_SAVED_SAME
#define LOST PMP_SAVED_LOST

/* saved[] in the order of enum pmp_saved, none of them with a place */
#define ALL_SAME                                                                                   \
	{                                                                                          \
		SAME, SAME, SAME, SAME, SAME, SAME, SAME                                           \
	}
#define SAVED(rbx, rbp)                                                                            \
	{                                                                                          \
		(rbx), (rbp), SAME, SAME, SAME, SAME, SAME                                         \
	}

#define USUAL(reg, offset)                                                                         \
	.cfa = PMP_CFA_REG, .cfa_reg = (reg), .cfa_offset = (offset), .ra_offset = -8,             \
	.saved_reg = PMP_N_REGS
#define AT_ENTRY USUAL(CFI_RSP, 8)

#define UNSUPPORTED                                                                                \
	{                                                                                          \
		.cfa = PMP_CFA_UNSUPPORTED                                                         \
	}
#define BOTTOM                                                                                     \
	{                                                                                          \
		.cfa = PMP_CFA_REG, .cfa_reg = CFI_RSP, .ra = PMP_RA_UNDEFINED                     \
	}
#define DEREF(reg, offset, offset2)                                                                \
	{                                                                                          \
		.cfa = PMP_CFA_DEREF, .cfa_reg = (reg), .cfa_offset = (offset),                    \
		.cfa_offset2 = (offset2), .ra_offset = -8, .saved_reg = PMP_N_REGS,                \
		.saved = ALL_SAME                                                                  \
	}
#define PLT(n)                                                                                     \
	{                                                                                          \
		.cfa = PMP_CFA_PLT, .cfa_reg = CFI_RSP, .cfa_offset = 8, .cfa_offset2 = (n),       \
		.ra_offset = -8, .saved_reg = PMP_N_REGS, .saved = ALL_SAME                        \
	}

/* An FDE's instructions, after which CFA = rsp + 8 and RA at CFA - 8 hold unless it says else. */
struct rule_case {
	const char *name;
	const uint8_t *program;
	size_t len;
	struct pmp_rule rule;
};

static const struct rule_case cases[] = {
	{"at a function's entry", NO_BYTES, {AT_ENTRY, .saved = ALL_SAME}},
	{"CFA from rbp",
	 BYTES(0x0c, CFI_RBP, 16, 0x80 | CFI_RBP, 2),
	 {USUAL(CFI_RBP, 16), .saved = SAVED(SAME, -16)}},
	{"CFA from another register",
	 BYTES(0x0c, CFI_R10, 0),
	 {USUAL(CFI_R10, 0), .saved = ALL_SAME}},
	{"CFA offset over 16 bits",
	 BYTES(0x0e, 0x80, 0x80, 0x04),
	 {USUAL(CFI_RSP, 65536), .saved = ALL_SAME}},
	{"CFA offset of 31 bits",
	 BYTES(0x0e, 0xff, 0xff, 0xff, 0xff, 0x07),
	 {USUAL(CFI_RSP, INT32_MAX), .saved = ALL_SAME}},
	{"CFA offset over 31 bits", BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 0x08), UNSUPPORTED},
	{"CFA offset below zero", BYTES(0x13, 1), {USUAL(CFI_RSP, -8), .saved = ALL_SAME}},

	{"CFA expression: a register",
	 BYTES(0x0f, 2, 0x76, 24),
	 {USUAL(CFI_RBP, 24), .saved = ALL_SAME}},
	{"CFA expression: sums",
	 BYTES(0x0f, 11, 0x77, 8, 0x23, 1, 0x32, 0x22, 0x08, 4, 0x22, 0x09, 0xff), UNSUPPORTED},
	{"CFA expression: more sums",
	 BYTES(0x0f, 12, 0x77, 8, 0x23, 1, 0x32, 0x22, 0x08, 4, 0x22, 0x09, 0xff, 0x22),
	 {USUAL(CFI_RSP, 14), .saved = ALL_SAME}},
	{"CFA expression: constants of all sizes",
	 BYTES(0x0f, 32, 0x77, 0, 0x0a, 1, 0, 0x22, 0x0b, 2, 0, 0x22, 0x0c, 4, 0, 0, 0, 0x22, 0x0d,
	       8, 0, 0, 0, 0x22, 0x10, 16, 0x22, 0x11, 32, 0x22, 0x23, 64, 0x31, 0x22),
	 {USUAL(CFI_RSP, 128), .saved = ALL_SAME}},
	{"CFA in memory", BYTES(0x0f, 3, 0x77, 16, 0x06), DEREF(CFI_RSP, 16, 0)},
	{"CFA in memory, below rbp", BYTES(0x0f, 3, 0x76, 0x78, 0x06), DEREF(CFI_RBP, -8, 0)},
	{"CFA in memory, plus_uconst", BYTES(0x0f, 5, 0x77, 16, 0x06, 0x23, 8),
	 DEREF(CFI_RSP, 16, 8)},
	{"CFA in memory, plus a literal", BYTES(0x0f, 5, 0x77, 16, 0x06, 0x38, 0x22),
	 DEREF(CFI_RSP, 16, 8)},
	{"CFA in memory, plus a constant", BYTES(0x0f, 6, 0x77, 16, 0x06, 0x09, 0xf8, 0x22),
	 DEREF(CFI_RSP, 16, -8)},
	{"CFA in memory, twice", BYTES(0x0f, 4, 0x77, 16, 0x06, 0x06), UNSUPPORTED},
	{"CFA in memory, over 31 bits",
	 BYTES(0x0f, 9, 0x77, 16, 0x06, 0x23, 0x80, 0x80, 0x80, 0x80, 0x08), UNSUPPORTED},
	{"CFA in memory, found over 31 bits",
	 BYTES(0x0f, 7, 0x77, 0x80, 0x80, 0x80, 0x80, 0x08, 0x06), UNSUPPORTED},
	{"CFA in memory, found by two registers",
	 BYTES(0x0f, 8, 0x77, 8, 0x70, 0, 0x38, 0x1e, 0x22, 0x06), UNSUPPORTED},
	{"CFA expression: empty", BYTES(0x0f, 0), UNSUPPORTED},
	{"CFA expression: cut", BYTES(0x0f, 1, 0x77), UNSUPPORTED},
	{"CFA expression: a constant without end", BYTES(0x0f, 3, 0x77, 8, 0x08), UNSUPPORTED},
	{"CFA expression: no register", BYTES(0x0f, 1, 0x38), UNSUPPORTED},
	{"CFA expression: a vector register", BYTES(0x0f, 2, 0x81, 0), UNSUPPORTED},
	{"CFA expression: an overflow",
	 BYTES(0x0f, 22, 0x77, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x23,
	       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00),
	 UNSUPPORTED},

	{"PLT", BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22),
	 PLT(11)},
	{"PLT with endbr64",
	 BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22), PLT(10)},
	{"PLT, but by 16",
	 BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x34, 0x24, 0x22), UNSUPPORTED},
	{"PLT, but no literal",
	 BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x2f, 0x2a, 0x33, 0x24, 0x22), UNSUPPORTED},
	{"PLT, but more",
	 BYTES(0x0f, 12, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22, 0x96),
	 UNSUPPORTED},
	{"PLT, but one byte of it", BYTES(0x0f, 3, 0x77, 8, 0x80), UNSUPPORTED},

	{"the outermost frame", BYTES(0x07, CFI_RA), BOTTOM},
	{"the outermost frame, whatever the CFA is", BYTES(0x0f, 1, 0x38, 0x07, CFI_RA), BOTTOM},
	{"RA in a register",
	 BYTES(0x0e, 0, 0x09, CFI_RA, CFI_RDI),
	 {.cfa = PMP_CFA_REG,
	  .cfa_reg = CFI_RSP,
	  .ra = PMP_RA_REG,
	  .ra_reg = CFI_RDI,
	  .saved_reg = PMP_N_REGS,
	  .saved = ALL_SAME}},
	{"RA elsewhere",
	 BYTES(0x80 | CFI_RA, 3),
	 {.cfa = PMP_CFA_REG,
	  .cfa_reg = CFI_RSP,
	  .cfa_offset = 8,
	  .ra_offset = -24,
	  .saved_reg = PMP_N_REGS,
	  .saved = ALL_SAME}},
	{"RA over 31 bits away", BYTES(0x80 | CFI_RA, 0x80, 0x80, 0x80, 0x80, 0x08), UNSUPPORTED},
	{"RA the same", BYTES(0x08, CFI_RA), UNSUPPORTED},
	{"RA by a value", BYTES(0x14, CFI_RA, 1), UNSUPPORTED},
	{"RA by an expression", BYTES(0x10, CFI_RA, 2, 0x77, 0), UNSUPPORTED},

	{"all saved",
	 BYTES(0x83, 7, 0x86, 2, 0x8c, 6, 0x8d, 5, 0x8e, 4, 0x8f, 3),
	 {AT_ENTRY, .saved = {-56, -16, -48, -40, -32, -24, SAME}}},
	{"the same value", BYTES(0x83, 2, 0x08, CFI_RBX), {AT_ENTRY, .saved = ALL_SAME}},
	{"undefined", BYTES(0x07, CFI_RBX), {AT_ENTRY, .saved = SAVED(LOST, SAME)}},
	{"in a register", BYTES(0x09, CFI_RBP, CFI_R11), {AT_ENTRY, .saved = SAVED(SAME, LOST)}},
	{"a value", BYTES(0x14, CFI_RBX, 2), {AT_ENTRY, .saved = SAVED(LOST, SAME)}},
	{"a value by an expression",
	 BYTES(0x16, CFI_RBX, 2, 0x77, 0),
	 {AT_ENTRY, .saved = SAVED(LOST, SAME)}},
	{"at the lowest offset", BYTES(0x83, 0x80, 0x20), {AT_ENTRY, .saved = SAVED(-32768, SAME)}},
	{"below the lowest offset",
	 BYTES(0x83, 0x81, 0x20),
	 {AT_ENTRY, .saved = SAVED(LOST, SAME)}},
	{"at the highest offset",
	 BYTES(0x2f, CFI_RBX, 0xff, 0x1f),
	 {AT_ENTRY, .saved = SAVED(32760, SAME)}},
	{"above the highest offset",
	 BYTES(0x2f, CFI_RBX, 0x80, 0x20),
	 {AT_ENTRY, .saved = SAVED(LOST, SAME)}},
	{"the offset that means SAME",
	 BYTES(0x10, CFI_RBX, 4, 0x77, 0xff, 0xff, 0x01),
	 {AT_ENTRY, .saved = SAVED(LOST, SAME)}},
	{"the offset that means LOST",
	 BYTES(0x10, CFI_RBX, 4, 0x77, 0xfe, 0xff, 0x01),
	 {AT_ENTRY, .saved = SAVED(LOST, SAME)}},
	{"vector and other registers",
	 BYTES(0x91, 2, 0x88, 3, 0x07, CFI_RAX),
	 {AT_ENTRY, .saved = ALL_SAME}},

	{"a realigned stack",
	 BYTES(0x0f, 3, 0x76, 0x78, 0x06, 0x10, CFI_RBP, 2, 0x76, 0, 0x10, CFI_RBX, 2, 0x76, 0x68),
	 {.cfa = PMP_CFA_DEREF,
	  .cfa_reg = CFI_RBP,
	  .cfa_offset = -8,
	  .ra_offset = -8,
	  .saved_reg = CFI_RBP,
	  .saved = SAVED(-24, 0)}},
	{"rbp's base counts",
	 BYTES(0x83, 3, 0x10, CFI_RBP, 2, 0x76, 0),
	 {.cfa = PMP_CFA_REG,
	  .cfa_reg = CFI_RSP,
	  .cfa_offset = 8,
	  .ra_offset = -8,
	  .saved_reg = CFI_RBP,
	  .saved = SAVED(LOST, 0)}},
	{"rbp's base counts, if it is the CFA",
	 BYTES(0x86, 2, 0x10, CFI_RBX, 2, 0x76, 0),
	 {AT_ENTRY, .saved = SAVED(LOST, -16)}},
	{"without rbp, the first one's base",
	 BYTES(0x8c, 2, 0x10, CFI_RBX, 2, 0x70, 8),
	 {.cfa = PMP_CFA_REG,
	  .cfa_reg = CFI_RSP,
	  .cfa_offset = 8,
	  .ra_offset = -8,
	  .saved_reg = CFI_RAX,
	  .saved = {8, SAME, LOST, SAME, SAME, SAME, SAME}}},
	{"a base that is no sum",
	 BYTES(0x10, CFI_RBP, 3, 0x76, 0, 0x06),
	 {AT_ENTRY, .saved = SAVED(SAME, LOST)}},

	{"rsp saved",
	 BYTES(0x87, 4),
	 {AT_ENTRY, .saved = {SAME, SAME, SAME, SAME, SAME, SAME, -32}}},
	{"rsp's base comes before rbp's",
	 BYTES(0x86, 2, 0x10, CFI_RSP, 2, 0x76, 8),
	 {.cfa = PMP_CFA_REG,
	  .cfa_reg = CFI_RSP,
	  .cfa_offset = 8,
	  .ra_offset = -8,
	  .saved_reg = CFI_RBP,
	  .saved = {SAME, LOST, SAME, SAME, SAME, SAME, 8}}},
	{"rsp in a register", BYTES(0x09, CFI_RSP, CFI_R8), UNSUPPORTED},
	{"rsp the same, which is not the CFA", BYTES(0x08, CFI_RSP), UNSUPPORTED},
	{"rsp undefined", BYTES(0x07, CFI_RSP), UNSUPPORTED},
	{"rsp a value", BYTES(0x14, CFI_RSP, 2), UNSUPPORTED},
	{"rsp too far away", BYTES(0x87, 0x80, 0x40), UNSUPPORTED},
};

static struct cfi_row row_of(const struct cfi_builder *b, uint64_t pc)
{
	struct eh_frame *eh = cfi__new(b, NULL);
	struct cfi_row row;

	assert_non_null(eh);
	assert_int_equal(eh_frame__find_row(eh, pc, &row), 0);
	eh_frame__free(eh);
	return row;
}

/* The table's rule is the row's by itself, also when the row was seen before. */
static void check_in_table(const char *name, const struct cfi_builder *b,
			   const struct pmp_rule *expected)
{
	struct unwind_rules *rules = unwind_rules__new(10);
	struct eh_frame *eh = cfi__new(b, NULL);

	for (int i = 0; i < 2; i++) {
		struct unwind_table *t = unwind_table__new(eh, rules);
		const struct pmp_rule *all;
		size_t n;

		assert_non_null(t);
		all = unwind_rules__all(rules, &n);
		assert_int_equal(n, expected->cfa == PMP_CFA_UNSUPPORTED ? 2 : 3);
		if (memcmp(&all[unwind_table__find(t, CODE)], expected, sizeof(*expected)) != 0)
			fail_msg("%s: in a table", name);
		unwind_table__free(t);
	}
	eh_frame__free(eh);
	unwind_rules__free(rules);
}

static void test_rules(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct rule_case *c = &cases[i];
		struct cfi_builder b = {.len = 0};
		struct cfi_row row;
		struct pmp_rule rule;

		cfi__fde(&b, cfi__usual_cie(&b), CODE, LEN, c->program, c->len);
		row = row_of(&b, CODE);
		rule = unwind_rules__from_row(&row);
		if (memcmp(&rule, &c->rule, sizeof(rule)) != 0)
			fail_msg("%s: cfa %u, register %u%+d %+d; ra %u, %u, %d; base %u: %d %d %d "
				 "%d %d "
				 "%d %d; flags %u",
				 c->name, rule.cfa, rule.cfa_reg, rule.cfa_offset, rule.cfa_offset2,
				 rule.ra, rule.ra_reg, rule.ra_offset, rule.saved_reg,
				 rule.saved[0], rule.saved[1], rule.saved[2], rule.saved[3],
				 rule.saved[4], rule.saved[5], rule.saved[6], rule.flags);
		check_in_table(c->name, &b, &c->rule);
	}
}

/* Two rows in one table are not taken for one another. */
static void check_unlike(const char *name, const uint8_t *first, size_t first_len,
			 const uint8_t *second, size_t second_len, bool signal_frame)
{
	struct unwind_rules *rules = unwind_rules__new(10);
	struct cfi_builder b = {.len = 0};
	size_t cie = cfi__usual_cie(&b), n;
	struct unwind_table *t;
	struct eh_frame *eh;
	const struct pmp_rule *all;

	cfi__fde(&b, cie, CODE, LEN, first, first_len);
	if (signal_frame)
		cie = cfi__cie(&b, 1, "zRS", BYTES(0x1b), CFI_AT_ENTRY);
	cfi__fde(&b, cie, CODE + LEN, LEN, second, second_len);
	eh = cfi__new(&b, NULL);
	t = unwind_table__new(eh, rules);
	assert_non_null(t);
	all = unwind_rules__all(rules, &n);
	for (uint64_t pc = CODE; pc <= CODE + LEN; pc += LEN) {
		struct pmp_rule rule;
		struct cfi_row row;

		assert_int_equal(eh_frame__find_row(eh, pc, &row), 0);
		rule = unwind_rules__from_row(&row);
		if (memcmp(&all[unwind_table__find(t, pc)], &rule, sizeof(rule)) != 0)
			fail_msg("%s", name);
	}
	unwind_table__free(t);
	eh_frame__free(eh);
	unwind_rules__free(rules);
}

static void test_unlike_rules(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_unlike(cases[i].name, NO_BYTES, cases[i].program, cases[i].len, false);
	check_unlike("a signal frame", NO_BYTES, NO_BYTES, true);
	check_unlike("CFA 2^48 further away", NO_BYTES,
		     BYTES(0x0e, 0x88, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40), false);
	check_unlike("saved 2^16 further away", BYTES(0x83, 2), BYTES(0x83, 0x82, 0x40), false);
	check_unlike("RA 2^16 further away", BYTES(0x90, 2), BYTES(0x90, 0x82, 0x40), false);
	for (unsigned int reg = 0; reg < CFI_RA; reg++) {
		check_unlike("same, undefined", NO_BYTES, BYTES(0x07, (uint8_t)reg), false);
		check_unlike("same, saved", NO_BYTES, BYTES((uint8_t)(0x80 | reg), 3), false);
		check_unlike("saved, saved elsewhere", BYTES((uint8_t)(0x80 | reg), 2),
			     BYTES((uint8_t)(0x80 | reg), 3), false);
		check_unlike("CFA from another register", NO_BYTES, BYTES(0x0d, (uint8_t)reg),
			     false);
	}
}

static void test_no_cfa(void **state)
{
	struct cfi_builder none = {.len = 0}, bottom = {.len = 0};
	struct cfi_row row;

	cfi__fde(&none, cfi__cie(&none, 1, "zR", BYTES(0x1b), NO_BYTES), CODE, LEN, BYTES(0x90, 1));
	row = row_of(&none, CODE);
	assert_int_equal(row.cfa.kind, CFI_UNDEFINED);
	assert_int_equal(unwind_rules__from_row(&row).cfa, PMP_CFA_UNSUPPORTED);
	cfi__fde(&bottom, cfi__cie(&bottom, 1, "zR", BYTES(0x1b), NO_BYTES), CODE, LEN,
		 BYTES(0x07, CFI_RA));
	row = row_of(&bottom, CODE);
	assert_int_equal(unwind_rules__from_row(&row).ra, PMP_RA_UNDEFINED);
}

/* Not only the rules of the trampoline make a signal frame: hand-written code has usual ones. */
static void test_signal_flag(void **state)
{
	struct cfi_builder b = {.len = 0};
	struct pmp_rule expected = {AT_ENTRY, .saved = ALL_SAME}, rule;
	struct cfi_row row;

	cfi__fde(&b, cfi__signal_cie(&b), CODE, LEN, CFI_AT_ENTRY);
	row = row_of(&b, CODE);
	rule = unwind_rules__from_row(&row);
	expected.flags = PMP_RULE_SIGNAL_FRAME;
	assert_memory_equal(&rule, &expected, sizeof(rule));
	check_in_table("signal flag", &b, &expected);
}

/* glibc's __restore_rt, as readelf --debug-dump=frames shows it. */
static const uint8_t in_sigcontext[] = {
	CFI_R8,	 CFI_R9,  CFI_R10, CFI_R11, CFI_R12, CFI_R13, CFI_R14, CFI_R15, CFI_RDI,
	CFI_RSI, CFI_RBP, CFI_RBX, CFI_RDX, CFI_RAX, CFI_RCX, CFI_RSP, CFI_RA,
};

static void put_trampoline(struct cfi_builder *b, size_t cie, size_t n_regs, unsigned int moved)
{
	uint8_t program[200] = {0x0f, 4, 0x77, 0xa0, 0x01, 0x06};
	size_t len = 6;

	for (size_t i = 0; i < n_regs; i++) {
		unsigned int offset = 40 + 8 * (unsigned int)i + (in_sigcontext[i] == moved);

		program[len++] = 0x10;
		program[len++] = in_sigcontext[i];
		program[len++] = 3;
		program[len++] = 0x77;
		program[len++] = (uint8_t)(0x80 | (offset & 0x7f));
		program[len++] = (uint8_t)(offset >> 7);
	}
	cfi__fde(b, cie, CODE, LEN, program, len);
}

static void test_signal_trampoline(void **state)
{
	const struct pmp_rule expected = {.cfa = PMP_CFA_SIGNAL,
					  .cfa_reg = CFI_RSP,
					  .cfa_offset = 40,
					  .flags = PMP_RULE_SIGNAL_FRAME};
	struct cfi_builder b = {.len = 0}, usual = {.len = 0}, fewer = {.len = 0};
	struct pmp_rule rule;
	struct cfi_row row;

	put_trampoline(&b, cfi__signal_cie(&b), ARRAY_SIZE(in_sigcontext), -1u);
	row = row_of(&b, CODE);
	rule = unwind_rules__from_row(&row);
	assert_memory_equal(&rule, &expected, sizeof(rule));
	check_in_table("trampoline", &b, &expected);

	/* what is like it, but is not it */
	put_trampoline(&usual, cfi__usual_cie(&usual), ARRAY_SIZE(in_sigcontext), -1u);
	row = row_of(&usual, CODE);
	assert_int_equal(unwind_rules__from_row(&row).cfa, PMP_CFA_UNSUPPORTED);
	put_trampoline(&fewer, cfi__signal_cie(&fewer), ARRAY_SIZE(in_sigcontext) - 1, -1u);
	row = row_of(&fewer, CODE);
	assert_int_equal(unwind_rules__from_row(&row).cfa, PMP_CFA_UNSUPPORTED);
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++) {
		struct cfi_builder moved = {.len = 0};

		put_trampoline(&moved, cfi__signal_cie(&moved), ARRAY_SIZE(in_sigcontext), reg);
		row = row_of(&moved, CODE);
		assert_int_equal(unwind_rules__from_row(&row).cfa, PMP_CFA_UNSUPPORTED);
	}
}

static void check_rows(const char *name, const struct unwind_table *t,
		       const struct pmp_row *expected, size_t n)
{
	size_t n_rows;
	const struct pmp_row *rows = unwind_table__rows(t, &n_rows);

	for (size_t i = 0; i < n && i < n_rows; i++) {
		if (rows[i].pc != expected[i].pc || rows[i].rule != expected[i].rule)
			fail_msg("%s: row %zu: %#x: %u", name, i, rows[i].pc, rows[i].rule);
	}
	if (n_rows != n)
		fail_msg("%s: %zu rows", name, n_rows);
}

/* CFA = rsp + n: with n = 8, 16, 24..., rules 2, 3, 4... once some_rules() has seen them. */
#define CFA_RSP(n) BYTES(0x0e, (n))

static struct unwind_rules *some_rules(void)
{
	struct unwind_rules *rules = unwind_rules__new(100);
	struct cfi_builder b = {.len = 0};
	size_t cie = cfi__usual_cie(&b);
	struct unwind_table *t;
	struct eh_frame *eh;

	for (unsigned int i = 0; i < 8; i++)
		cfi__fde(&b, cie, CODE + i * LEN, LEN, CFA_RSP((uint8_t)(8 + 8 * i)));
	eh = cfi__new(&b, NULL);
	t = unwind_table__new(eh, rules);
	assert_non_null(t);
	check_rows(__func__, t,
		   (struct pmp_row[]){{0, 2},
				      {0x100, 3},
				      {0x200, 4},
				      {0x300, 5},
				      {0x400, 6},
				      {0x500, 7},
				      {0x600, 8},
				      {0x700, 9},
				      {0x800, 0}},
		   9);
	unwind_table__free(t);
	eh_frame__free(eh);
	return rules;
}

struct fde {
	unsigned int start, end; /* relative to CODE */
	const uint8_t *program;
	size_t len;
};

struct table_case {
	const char *name;
	struct fde fdes[6];
	struct pmp_row rows[10]; /* up to the one with rule 0 and a pc that nothing follows */
};

#define END(pc)                                                                                    \
	{                                                                                          \
		(pc), 0                                                                            \
	}

static const struct table_case tables[] = {
	{"rows",
	 {{0, 64, BYTES(0x41, 0x0e, 16, 0x44, 0x0e, 24)}},
	 {{0, 2}, {1, 3}, {5, 4}, END(64)}},
	{"equal rows of one FDE merge",
	 {{0, 64, BYTES(0x41, 0x0e, 16, 0x44, 0x0e, 16, 0x44, 0x0e, 8)}},
	 {{0, 2}, {1, 3}, {9, 2}, END(64)}},
	{"equal rows of two FDEs merge",
	 {{0, 64, NO_BYTES}, {64, 128, BYTES(0x41, 0x0e, 16)}},
	 {{0, 2}, {65, 3}, END(128)}},
	{"the order of the section does not matter",
	 {{64, 128, CFA_RSP(16)}, {0, 64, NO_BYTES}, {128, 192, CFA_RSP(24)}},
	 {{0, 2}, {64, 3}, {128, 4}, END(192)}},
	{"a gap", {{0, 32, NO_BYTES}, {64, 96, NO_BYTES}}, {{0, 2}, {32, 0}, {64, 2}, END(96)}},
	{"a gap of 16 bytes",
	 {{0, 16, NO_BYTES}, {32, 48, NO_BYTES}},
	 {{0, 2}, {16, 0}, {32, 2}, END(48)}},
	{"padding of 15 bytes",
	 {{0, 17, NO_BYTES}, {32, 48, CFA_RSP(16)}},
	 {{0, 2}, {32, 3}, END(48)}},
	{"padding between equals", {{0, 17, NO_BYTES}, {32, 48, NO_BYTES}}, {{0, 2}, END(48)}},
	{"one in the middle of another",
	 {{0, 96, CFA_RSP(16)}, {32, 64, CFA_RSP(24)}},
	 {{0, 3}, {32, 4}, {64, 3}, END(96)}},
	{"one within a row of another goes on with the row after it",
	 {{0, 96, BYTES(0x60, 0x0e, 16, 0x50, 0x0e, 24)}, {16, 40, CFA_RSP(32)}},
	 {{0, 2}, {16, 5}, {40, 3}, {48, 4}, END(96)}},
	{"one that ends at a row of another",
	 {{0, 96, BYTES(0x60, 0x0e, 16, 0x50, 0x0e, 24)}, {16, 48, CFA_RSP(32)}},
	 {{0, 2}, {16, 5}, {48, 4}, END(96)}},
	{"one that reaches beyond another",
	 {{0, 64, CFA_RSP(16)}, {32, 96, CFA_RSP(24)}},
	 {{0, 3}, {32, 4}, END(96)}},
	{"one at the end of another",
	 {{0, 64, CFA_RSP(16)}, {32, 64, CFA_RSP(24)}},
	 {{0, 3}, {32, 4}, END(64)}},
	{"of two that start together, the section's first one",
	 {{0, 64, CFA_RSP(16)}, {0, 96, CFA_RSP(24)}, {0, 32, CFA_RSP(32)}},
	 {{0, 3}, {64, 4}, END(96)}},
	{"three deep",
	 {{0, 128, CFA_RSP(16)},
	  {16, 112, CFA_RSP(24)},
	  {32, 96, CFA_RSP(32)},
	  {48, 80, CFA_RSP(40)}},
	 {{0, 3}, {16, 4}, {32, 5}, {48, 6}, {80, 5}, {96, 4}, {112, 3}, END(128)}},
	{"those below have ended when the last one does",
	 {{0, 48, CFA_RSP(16)}, {16, 40, CFA_RSP(24)}, {32, 96, CFA_RSP(32)}},
	 {{0, 3}, {16, 4}, {32, 5}, END(96)}},
	{"one that goes on with the same rule is not seen",
	 {{0, 96, CFA_RSP(16)}, {32, 64, CFA_RSP(16)}},
	 {{0, 3}, END(96)}},
	{"a malformed one counts up to the fault",
	 {{0, 64, BYTES(0x60, 0x3f)}, {64, 96, CFA_RSP(16)}},
	 {{0, 2}, {32, 0}, {64, 3}, END(96)}},
};

static void test_tables(void **state)
{
	struct unwind_rules *rules = some_rules();

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct table_case *c = &tables[i];
		struct cfi_builder b = {.len = 0};
		size_t cie = cfi__usual_cie(&b), n = 1;
		struct unwind_table *t;
		struct eh_frame *eh;

		for (const struct fde *f = c->fdes; f->end; f++)
			cfi__fde(&b, cie, CODE + f->start, f->end - f->start, f->program, f->len);
		while (n < ARRAY_SIZE(c->rows) && c->rows[n].pc)
			n++;
		eh = cfi__new(&b, NULL);
		t = unwind_table__new(eh, rules);
		assert_non_null(t);
		assert_int_equal(unwind_table__base(t), CODE);
		check_rows(c->name, t, c->rows, n);
		/* each row is found where it starts and where it ends */
		for (size_t k = 0; k < n; k++) {
			assert_int_equal(unwind_table__find(t, CODE + c->rows[k].pc),
					 c->rows[k].rule);
			if (k)
				assert_int_equal(unwind_table__find(t, CODE + c->rows[k].pc - 1),
						 c->rows[k - 1].rule);
		}
		unwind_table__free(t);
		eh_frame__free(eh);
	}
	unwind_rules__free(rules);
}

static struct unwind_table *table_of(struct cfi_builder *b, struct unwind_rules *rules)
{
	struct eh_frame *eh = cfi__new(b, NULL);
	struct unwind_table *t = unwind_table__new(eh, rules);
	int err = errno;

	eh_frame__free(eh);
	errno = err;
	return t;
}

static void test_base_and_edges(void **state)
{
	struct unwind_rules *rules = some_rules();
	struct cfi_builder b = {.len = 0};
	struct unwind_table *t;

	cfi__fde(&b, cfi__usual_cie(&b), 0x403210, 0x10, NO_BYTES);
	t = table_of(&b, rules);
	assert_int_equal(unwind_table__base(t), 0x403000);
	check_rows(__func__, t, (struct pmp_row[]){{0x210, 2}, {0x220, 0}}, 2);
	assert_int_equal(unwind_table__find(t, 0), 0);
	assert_int_equal(unwind_table__find(t, 0x402fff), 0);
	assert_int_equal(unwind_table__find(t, 0x403000), 0);
	assert_int_equal(unwind_table__find(t, 0x40320f), 0);
	assert_int_equal(unwind_table__find(t, 0x403210), 2);
	assert_int_equal(unwind_table__find(t, 0x40321f), 2);
	assert_int_equal(unwind_table__find(t, 0x403220), 0);
	assert_int_equal(unwind_table__find(t, 0x100403210), 0);
	assert_int_equal(unwind_table__find(t, UINT64_MAX), 0);
	unwind_table__free(t);
	unwind_rules__free(rules);
}

/* An FDE with addresses of 8 bytes, as written. */
static void put_wide_fde(struct cfi_builder *b, size_t cie, uint64_t start, uint64_t len)
{
	cfi__open(b);
	cfi__put_u32(b, (uint32_t)(b->len - cie));
	cfi__put_u64(b, start);
	cfi__put_u64(b, len);
	cfi__put_u8(b, 0);
	cfi__close(b);
}

static void test_spread(void **state)
{
	static const struct {
		uint64_t start, len, second, second_len;
		int err;
	} spreads[] = {
		{0x1000, 0x10, 0x1000 + 0xffffff00ULL, 0xff, 0},
		{0x1000, 0x10, 0x1000 + 0xffffff00ULL, 0x100, EFBIG},
		{0x1ff0, 0x10, 0x1000 + 0xffffff00ULL, 0x100, EFBIG},
		{0x1000, 0x10, 0x200001000ULL, 0x10, EFBIG},
		{0x1000, 0xffffffff, 0x2000, 0x10, 0},
		{0x1000, 0x100000000ULL, 0x2000, 0x10, EFBIG},
		{0x80001000, 0x10, 0x1000, 0x10, 0},
		{0x1000, 0x10, 0x80001000, 0x10, 0},
		{0, 1, UINT64_MAX - 1, 1, EFBIG},
		{UINT64_MAX - 0x100, 0x80, UINT64_MAX - 1, 1, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(spreads); i++) {
		struct unwind_rules *rules = some_rules();
		struct cfi_builder b = {.len = 0};
		size_t cie = cfi__cie(&b, 1, "zR", BYTES(0x00), CFI_AT_ENTRY);
		struct unwind_table *t;

		put_wide_fde(&b, cie, spreads[i].start, spreads[i].len);
		put_wide_fde(&b, cie, spreads[i].second, spreads[i].second_len);
		errno = 0;
		t = table_of(&b, rules);
		if (spreads[i].err) {
			assert_null(t);
			assert_int_equal(errno, spreads[i].err);
		} else {
			uint64_t last = spreads[i].second + spreads[i].second_len - 1;

			assert_non_null(t);
			assert_int_equal(unwind_table__find(t, spreads[i].start), 2);
			assert_int_equal(unwind_table__find(t, last), 2);
			if (spreads[i].second > spreads[i].start + spreads[i].len)
				assert_int_equal(unwind_table__find(t, last + 1), 0);
		}
		unwind_table__free(t);
		unwind_rules__free(rules);
	}
}

static void test_no_rows(void **state)
{
	struct unwind_rules *rules = unwind_rules__new(2);
	struct cfi_builder b = {.len = 0};
	size_t n;

	cfi__fde(&b, cfi__usual_cie(&b), CODE, LEN, BYTES(0x3f));
	errno = 0;
	assert_null(table_of(&b, rules));
	assert_int_equal(errno, ENODATA);
	unwind_rules__all(rules, &n);
	assert_int_equal(n, 2);
	unwind_rules__free(rules);
	unwind_table__free(NULL);
	unwind_rules__free(NULL);
}

/* Rules are shared by tables, keep their numbers, and end in PMP_CFA_UNSUPPORTED. */
static void test_out_of_room(void **state)
{
	struct unwind_rules *rules = unwind_rules__new(4);
	struct cfi_builder first = {.len = 0}, second = {.len = 0};
	const struct pmp_rule none = {.cfa = PMP_CFA_NONE}, bad = UNSUPPORTED, *all;
	struct unwind_table *t;
	size_t n;

	all = unwind_rules__all(rules, &n);
	assert_int_equal(n, 2);
	assert_memory_equal(&all[0], &none, sizeof(none));
	assert_memory_equal(&all[1], &bad, sizeof(bad));

	cfi__fde(&first, cfi__usual_cie(&first), CODE, 64, BYTES(0x41, 0x0e, 16));
	t = table_of(&first, rules);
	check_rows(__func__, t, (struct pmp_row[]){{0, 2}, {1, 3}, {64, 0}}, 3);
	unwind_table__free(t);

	cfi__fde(&second, cfi__usual_cie(&second), CODE, 64,
		 BYTES(0x0e, 24, 0x41, 0x0e, 16, 0x41, 0x0e, 32, 0x41, 0x0e, 24, 0x41, 0x0e, 8));
	for (int i = 0; i < 2; i++) {
		t = table_of(&second, rules);
		check_rows(__func__, t, (struct pmp_row[]){{0, 1}, {1, 3}, {2, 1}, {4, 2}, {64, 0}},
			   5);
		unwind_table__free(t);
	}
	unwind_rules__all(rules, &n);
	assert_int_equal(n, 4);
	unwind_rules__free(rules);
}

/* More rules than the first allocation holds, and than the memo. */
static void test_many_rules(void **state)
{
	struct unwind_rules *rules = unwind_rules__new(10000);
	size_t n;

	for (unsigned int part = 0; part < 40; part++) {
		struct cfi_builder b = {.len = 0};
		size_t cie = cfi__usual_cie(&b);
		struct unwind_table *t;
		const struct pmp_rule *all;

		for (unsigned int i = 0; i < 100; i++) {
			unsigned int cfa = 8 * (100 * part + i + 1);

			cfi__fde(&b, cie, CODE + 16 * i, 16,
				 BYTES(0x0e, (uint8_t)(0x80 | cfa), (uint8_t)(0x80 | cfa >> 7),
				       (uint8_t)(cfa >> 14)));
		}
		t = table_of(&b, rules);
		assert_non_null(t);
		all = unwind_rules__all(rules, &n);
		assert_int_equal(n, 2 + 100 * (part + 1));
		for (unsigned int i = 0; i < 100; i++)
			assert_int_equal(all[unwind_table__find(t, CODE + 16 * i)].cfa_offset,
					 8 * (100 * part + i + 1));
		unwind_table__free(t);
	}
	unwind_rules__free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_unlike_rules),
		cmocka_unit_test(test_no_cfa),
		cmocka_unit_test(test_signal_flag),
		cmocka_unit_test(test_signal_trampoline),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_base_and_edges),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_no_rows),
		cmocka_unit_test(test_out_of_room),
		cmocka_unit_test(test_many_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
