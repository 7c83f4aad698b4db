// SPDX-License-Identifier: GPL-2.0-or-later
#include "cfi_builder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define CODE 0x1000ULL
#define LEN  0x100

/* One FDE's program, and one register's rule in the row that covers CODE + at. */
struct program_case {
	const char *name;
	const uint8_t *program;
	size_t len;
	unsigned int at;
	int err;
	unsigned int start, end; /* of the row, relative to CODE */
	struct cfi_rule cfa;
	unsigned int reg;
	struct cfi_rule rule;
};

#define CFA(r, o)                                                                                  \
	{                                                                                          \
		.kind = CFI_REGISTER, .reg = (r), .offset = (o)                                    \
	}
#define OFFSET(o)                                                                                  \
	{                                                                                          \
		.kind = CFI_OFFSET, .offset = (o)                                                  \
	}
#define KIND(k)                                                                                    \
	{                                                                                          \
		.kind = (k)                                                                        \
	}
#define ROW(s, e)    .start = (s), .end = (e)
#define OK(a, s, e)  (a), 0, (s), (e)
#define BAD(a, code) (a), (code), 0, 0, KIND(0), 0, KIND(0)
#define RSP_8	     CFA(CFI_RSP, 8)
#define RA_RULE	     CFI_RA, OFFSET(-8)

static const struct program_case programs[] = {
	{"the CIE's rules", NO_BYTES, OK(0, 0, LEN), RSP_8, RA_RULE},
	{"last address", NO_BYTES, OK(LEN - 1, 0, LEN), RSP_8, RA_RULE},
	{"before", NO_BYTES, BAD(-1u, -ENOENT)},
	{"behind", NO_BYTES, BAD(LEN, -ENOENT)},
	{"nop", BYTES(0, 0), OK(0, 0, LEN), RSP_8, RA_RULE},
	{"advance_loc: before it", BYTES(0x41, 0x0e, 16), OK(0, 0, 1), RSP_8, RA_RULE},
	{"advance_loc: after it", BYTES(0x41, 0x0e, 16), OK(1, 1, LEN), CFA(CFI_RSP, 16), RA_RULE},
	{"advance_loc 0 makes no row", BYTES(0x40, 0x0e, 16), OK(0, 0, LEN), CFA(CFI_RSP, 16),
	 RA_RULE},
	{"advance_loc1", BYTES(0x02, 0x80, 0x0e, 16), OK(0x80, 0x80, LEN), CFA(CFI_RSP, 16),
	 RA_RULE},
	{"advance_loc2", BYTES(0x03, 0x90, 0, 0x0e, 16), OK(0x90, 0x90, LEN), CFA(CFI_RSP, 16),
	 RA_RULE},
	{"advance_loc4", BYTES(0x04, 0x90, 0, 0, 0, 0x0e, 16), OK(0x90, 0x90, LEN),
	 CFA(CFI_RSP, 16), RA_RULE},
	{"advance_loc8", BYTES(0x1d, 0x90, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16), OK(0x90, 0x90, LEN),
	 CFA(CFI_RSP, 16), RA_RULE},
	{"advance beyond the end", BYTES(0x03, 0, 2, 0x0e, 16), OK(LEN - 1, 0, LEN), RSP_8,
	 RA_RULE},
	{"def_cfa", BYTES(0x0c, CFI_RBP, 16), OK(0, 0, LEN), CFA(CFI_RBP, 16), RA_RULE},
	{"def_cfa, large", BYTES(0x0c, CFI_RSP, 0x80, 0x80, 0x04), OK(0, 0, LEN),
	 CFA(CFI_RSP, 65536), RA_RULE},
	{"def_cfa_sf", BYTES(0x12, CFI_RDI, 0x7f), OK(0, 0, LEN), CFA(CFI_RDI, 8), RA_RULE},
	{"def_cfa_register", BYTES(0x0d, CFI_RBP), OK(0, 0, LEN), CFA(CFI_RBP, 8), RA_RULE},
	{"def_cfa_offset_sf", BYTES(0x13, 0x7e), OK(0, 0, LEN), CFA(CFI_RSP, 16), RA_RULE},
	{"def_cfa_register after an expression keeps the offset",
	 BYTES(0x0f, 1, 0x57, 0x0d, CFI_RBP), OK(0, 0, LEN), CFA(CFI_RBP, 8), RA_RULE},
	{"def_cfa_offset after an expression keeps the register", BYTES(0x0f, 1, 0x57, 0x0e, 32),
	 OK(0, 0, LEN), CFA(CFI_RSP, 32), RA_RULE},
	{"offset", BYTES(0x80 | CFI_RBX, 3), OK(0, 0, LEN), RSP_8, CFI_RBX, OFFSET(-24)},
	{"offset_extended", BYTES(0x05, CFI_RBX, 3), OK(0, 0, LEN), RSP_8, CFI_RBX, OFFSET(-24)},
	{"offset_extended_sf", BYTES(0x11, CFI_RBX, 0x7f), OK(0, 0, LEN), RSP_8, CFI_RBX,
	 OFFSET(8)},
	{"GNU_negative_offset_extended", BYTES(0x2f, CFI_RBX, 2), OK(0, 0, LEN), RSP_8, CFI_RBX,
	 OFFSET(16)},
	{"val_offset",
	 BYTES(0x14, CFI_RSP, 2),
	 OK(0, 0, LEN),
	 RSP_8,
	 CFI_RSP,
	 {.kind = CFI_VAL_OFFSET, .offset = -16}},
	{"val_offset_sf",
	 BYTES(0x15, CFI_RSP, 0x7e),
	 OK(0, 0, LEN),
	 RSP_8,
	 CFI_RSP,
	 {.kind = CFI_VAL_OFFSET, .offset = 16}},
	{"undefined", BYTES(0x07, CFI_RA), OK(0, 0, LEN), RSP_8, CFI_RA, KIND(CFI_UNDEFINED)},
	{"same_value", BYTES(0x80 | CFI_RBX, 3, 0x08, CFI_RBX), OK(0, 0, LEN), RSP_8, CFI_RBX,
	 KIND(CFI_SAME)},
	{"register",
	 BYTES(0x09, CFI_RA, CFI_RDI),
	 OK(0, 0, LEN),
	 RSP_8,
	 CFI_RA,
	 {.kind = CFI_REGISTER, .reg = CFI_RDI}},
	{"register, in a vector register", BYTES(0x09, CFI_RBX, 17), OK(0, 0, LEN), RSP_8, CFI_RBX,
	 KIND(CFI_UNDEFINED)},
	{"RA in a vector register is no bottom", BYTES(0x09, CFI_RA, 17), BAD(0, -EOPNOTSUPP)},
	{"vector registers are passed over", BYTES(0x91, 2, 0x05, 33, 4, 0x07, 70), OK(0, 0, LEN),
	 RSP_8, RA_RULE},
	{"restore", BYTES(0x80 | CFI_RA, 5, 0xc0 | CFI_RA), OK(0, 0, LEN), RSP_8, RA_RULE},
	{"restore_extended", BYTES(0x80 | CFI_RA, 5, 0x06, CFI_RA), OK(0, 0, LEN), RSP_8, RA_RULE},
	{"restore to no rule", BYTES(0x80 | CFI_RBX, 5, 0xc0 | CFI_RBX), OK(0, 0, LEN), RSP_8,
	 CFI_RBX, KIND(CFI_UNSPECIFIED)},
	{"remember_state, restore_state",
	 BYTES(0x41, 0x0a, 0x0e, 64, 0x80 | CFI_RBX, 2, 0x41, 0x0b), OK(2, 2, LEN), RSP_8, CFI_RBX,
	 KIND(CFI_UNSPECIFIED)},
	{"nested", BYTES(0x0a, 0x0e, 16, 0x0a, 0x0e, 24, 0x0b, 0x41, 0x0b), OK(0, 0, 1),
	 CFA(CFI_RSP, 16), RA_RULE},
	{"GNU_args_size", BYTES(0x2e, 0x80, 1), OK(0, 0, LEN), RSP_8, RA_RULE},

	{"no such instruction", BYTES(0x3f), BAD(0, -EINVAL)},
	{"a fault behind pc does not matter", BYTES(0x41, 0x3f), OK(0, 0, 1), RSP_8, RA_RULE},
	{"restore_state without remember_state", BYTES(0x0b), BAD(0, -EINVAL)},
	{"16 remembered", BYTES(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10),
	 OK(0, 0, LEN), RSP_8, RA_RULE},
	{"17 remembered", BYTES(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10),
	 BAD(0, -EOPNOTSUPP)},
	{"def_cfa cut", BYTES(0x0c, CFI_RSP), BAD(0, -EINVAL)},
	{"def_cfa_sf cut", BYTES(0x12, CFI_RSP), BAD(0, -EINVAL)},
	{"def_cfa_register cut", BYTES(0x0d), BAD(0, -EINVAL)},
	{"def_cfa_offset cut", BYTES(0x0e, 0x80), BAD(0, -EINVAL)},
	{"def_cfa on a vector register", BYTES(0x0c, 17, 8), BAD(0, -EOPNOTSUPP)},
	{"def_cfa_offset over 63 bits",
	 BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), BAD(0, -EINVAL)},
	{"ULEB128 over 64 bits",
	 BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2), BAD(0, -EINVAL)},
	{"ULEB128, padded",
	 BYTES(0x0e, 0x90, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0),
	 OK(0, 0, LEN), CFA(CFI_RSP, 16), RA_RULE},
	{"offset times data alignment overflows",
	 BYTES(0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), BAD(0, -EINVAL)},
	{"sf offset times data alignment overflows",
	 BYTES(0x13, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), BAD(0, -EINVAL)},
	{"offset cut", BYTES(0x80), BAD(0, -EINVAL)},
	{"register cut", BYTES(0x09, 3), BAD(0, -EINVAL)},
	{"RA in register, cut", BYTES(0x09, CFI_RA, 0x80), BAD(0, -EINVAL)},
	{"restore_extended cut", BYTES(0x06), BAD(0, -EINVAL)},
	{"advance_loc1 cut", BYTES(0x02), BAD(0, -EINVAL)},
	{"advance_loc4 cut", BYTES(0x04, 0, 0, 0), BAD(0, -EINVAL)},
	{"advance over 64 bits", BYTES(0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	 BAD(0, -EINVAL)},
	{"set_loc backwards", BYTES(0x41, 0x01, 0x00, 0x08, 0xf0, 0xff), BAD(1, -EINVAL)},
	{"expression beyond the end", BYTES(0x0f, 2, 0x57), BAD(0, -EINVAL)},
	{"expression with a huge length",
	 BYTES(0x10, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), BAD(0, -EINVAL)},
	{"args_size cut", BYTES(0x2e), BAD(0, -EINVAL)},
};

static bool same_rule(const struct cfi_rule *a, const struct cfi_rule *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->offset == b->offset;
}

static void test_programs(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		const struct program_case *c = &programs[i];
		struct cfi_builder b = {.len = 0};
		struct cfi_row row;
		struct eh_frame *eh;
		int err;

		cfi__fde(&b, cfi__usual_cie(&b), CODE, LEN, c->program, c->len);
		eh = cfi__new(&b, NULL);
		assert_non_null(eh);
		err = eh_frame__find_row(eh, CODE + (uint64_t)(int)c->at, &row);
		eh_frame__free(eh);
		if (err != c->err)
			fail_msg("%s: %d", c->name, err);
		if (err)
			continue;
		if (row.start != CODE + c->start || row.end != CODE + c->end)
			fail_msg("%s: row %#lx-%#lx", c->name, (unsigned long)row.start,
				 (unsigned long)row.end);
		if (!same_rule(&row.cfa, &c->cfa) || !same_rule(&row.regs[c->reg], &c->rule))
			fail_msg("%s: rules", c->name);
		assert_false(row.signal_frame);
	}
}

static void test_expressions(void **state)
{
	struct cfi_builder b = {.len = 0};
	struct eh_frame *eh;
	struct cfi_row row;

	cfi__fde(&b, cfi__usual_cie(&b), CODE, LEN,
		 BYTES(0x0f, 2, 0x77, 9, 0x10, CFI_RBX, 1, 0x31, 0x16, CFI_R12, 3, 0x32, 0x33,
		       0x34));
	eh = cfi__new(&b, NULL);
	assert_int_equal(eh_frame__find_row(eh, CODE, &row), 0);
	assert_int_equal(row.cfa.kind, CFI_EXPRESSION);
	assert_int_equal(row.cfa.expr_len, 2);
	assert_int_equal(row.cfa.expr[1], 9);
	assert_int_equal(row.regs[CFI_RBX].kind, CFI_EXPRESSION);
	assert_int_equal(row.regs[CFI_RBX].expr_len, 1);
	assert_int_equal(row.regs[CFI_R12].kind, CFI_VAL_EXPRESSION);
	assert_int_equal(row.regs[CFI_R12].expr[2], 0x34);
	eh_frame__free(eh);
}

/* CIEs: what each does to an FDE that has an address in 4 pc-relative bytes or as written. */
struct cie_case {
	const char *name;
	const char *augmentation;
	const uint8_t *data;
	size_t len;
	uint8_t version;
	int err;
	bool signal_frame;
};

static const struct cie_case cies[] = {
	{"zR", "zR", BYTES(0x1b), 1, 0, false},
	{"version 3", "zR", BYTES(0x1b), 3, 0, false},
	{"version 4", "zR", BYTES(0x1b), 4, 0, false},
	{"version 2", "zR", BYTES(0x1b), 2, -EOPNOTSUPP, false},
	{"signal frame", "zRS", BYTES(0x1b), 1, 0, true},
	{"key B", "zRB", BYTES(0x1b), 1, 0, false},
	{"personality and LSDA", "zPLR", BYTES(0x9b, 1, 2, 3, 4, 0x1b, 0x1b), 1, 0, false},
	{"personality of 8 bytes", "zPR", BYTES(0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b), 1, 0, false},
	{"personality of 2 bytes", "zPR", BYTES(0x02, 1, 2, 0x1b), 1, 0, false},
	{"personality as ULEB128", "zPR", BYTES(0x01, 0x81, 2, 0x1b), 1, 0, false},
	{"personality omitted", "zPR", BYTES(0xff, 0x1b), 1, 0, false},
	{"no such format", "zPR", BYTES(0x0e, 0x1b), 1, -EINVAL, false},
	{"data shorter than its letters", "zR", NO_BYTES, 1, -EINVAL, false},
	{"data longer than its letters", "zR", BYTES(0x1b, 1, 2, 3), 1, 0, false},
	{"unknown letter", "zRQ", BYTES(0x1b), 1, -EOPNOTSUPP, false},
	{"textrel", "zR", BYTES(0x2b), 1, -EOPNOTSUPP, false},
	{"indirect", "zR", BYTES(0x9b), 1, -EOPNOTSUPP, false},
};

static void test_cies(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cies); i++) {
		const struct cie_case *c = &cies[i];
		struct cfi_builder b = {.len = 0};
		struct eh_frame *eh;
		struct cfi_row row;
		int err;

		cfi__fde(&b,
			 cfi__cie(&b, c->version, c->augmentation, c->data, c->len, CFI_AT_ENTRY),
			 CODE, LEN, BYTES(0x41, 0x0e, 16));
		eh = cfi__new(&b, NULL);
		assert_non_null(eh);
		err = eh_frame__find_row(eh, CODE + 1, &row);
		/* what an index cannot read is nowhere */
		if (err != (c->err ? -ENOENT : 0))
			fail_msg("%s: %d", c->name, err);
		if (!err && (row.cfa.offset != 16 || row.signal_frame != c->signal_frame))
			fail_msg("%s: row", c->name);
		eh_frame__free(eh);
	}
}

static void put_fde_with_pointers(struct cfi_builder *b, size_t cie, const uint8_t *bytes,
				  size_t len)
{
	cfi__open(b);
	cfi__put_u32(b, (uint32_t)(b->len - cie));
	cfi__put(b, bytes, len);
	cfi__close(b);
}

static void test_pointer_encodings(void **state)
{
	const struct {
		uint8_t encoding;
		const uint8_t *bytes;
		size_t len;
	} encodings[] = {
		{0x00, BYTES(0, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)},
		{0x04, BYTES(0, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)},
		{0x0c, BYTES(0, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)},
		{0x03, BYTES(0, 0x10, 0, 0, 0, 1, 0, 0, 0)},
		{0x0b, BYTES(0, 0x10, 0, 0, 0, 1, 0, 0, 0)},
		{0x02, BYTES(0, 0x10, 0, 1, 0)},
		{0x0a, BYTES(0, 0x10, 0, 1, 0)},
		{0x01, BYTES(0x80, 0x20, 0x80, 2, 0)},
		{0x09, BYTES(0x80, 0x20, 0x80, 2, 0)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(encodings); i++) {
		struct cfi_builder b = {.len = 0};
		struct eh_frame *eh;
		struct cfi_row row;

		put_fde_with_pointers(
			&b, cfi__cie(&b, 1, "zR", BYTES(encodings[i].encoding), CFI_AT_ENTRY),
			encodings[i].bytes, encodings[i].len);
		eh = cfi__new(&b, NULL);
		assert_int_equal(eh_frame__find_row(eh, CODE, &row), 0);
		assert_int_equal(row.start, CODE);
		assert_int_equal(row.end, CODE + LEN);
		eh_frame__free(eh);
	}
}

static void test_unsized_augmentation(void **state)
{
	static const char *const augmentations[] = {"", "eh"};

	for (size_t i = 0; i < ARRAY_SIZE(augmentations); i++) {
		struct cfi_builder b = {.len = 0};
		struct eh_frame *eh;
		struct cfi_row row;

		put_fde_with_pointers(
			&b, cfi__cie(&b, 1, augmentations[i], NO_BYTES, CFI_AT_ENTRY),
			BYTES(0, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x41, 0x0e, 16));
		eh = cfi__new(&b, NULL);
		assert_int_equal(eh_frame__find_row(eh, CODE + 1, &row), 0);
		assert_int_equal(row.cfa.offset, 16);
		eh_frame__free(eh);
	}
}

static void test_set_loc(void **state)
{
	struct cfi_builder b = {.len = 0};
	struct eh_frame *eh;
	struct cfi_row row;

	/* absolute addresses of 2 bytes */
	put_fde_with_pointers(&b, cfi__cie(&b, 1, "zR", BYTES(0x02), CFI_AT_ENTRY),
			      BYTES(0, 0x10, 0, 1, 0, 0x01, 0x40, 0x10, 0x0e, 16));
	eh = cfi__new(&b, NULL);
	assert_int_equal(eh_frame__find_row(eh, CODE + 0x3f, &row), 0);
	assert_int_equal(row.end, CODE + 0x40);
	assert_int_equal(eh_frame__find_row(eh, CODE + 0x40, &row), 0);
	assert_int_equal(row.cfa.offset, 16);
	eh_frame__free(eh);
}

/* After a 64-bit length, ids take 4 bytes by the LSB and 8 by some tools. */
static void test_64_bit_length(void **state)
{
	for (size_t id_len = 4; id_len <= 8; id_len += 4) {
		const uint8_t zeros[4] = {0};
		struct cfi_builder b = {.len = 0};
		struct eh_frame *eh;
		struct cfi_row row;

		cfi__put_u32(&b, 0xffffffff);
		cfi__put_u64(&b, id_len + 16);
		cfi__put(&b, zeros, 4);
		cfi__put(&b, zeros, id_len - 4);
		cfi__put(&b, BYTES(1, 'z', 'R', 0, 1, 0x78, CFI_RA, 1, 0x1b));
		cfi__put(&b, CFI_AT_ENTRY);
		cfi__put(&b, zeros, 2);
		cfi__put_u32(&b, 0xffffffff);
		cfi__put_u64(&b, id_len + 9);
		cfi__put_u32(&b, (uint32_t)b.len);
		cfi__put(&b, zeros, id_len - 4);
		cfi__put_u32(&b, (uint32_t)(CODE - (CFI_SECTION + b.len)));
		cfi__put_u32(&b, LEN);
		cfi__put_u8(&b, 0);
		eh = cfi__new(&b, NULL);
		assert_non_null(eh);
		assert_int_equal(eh_frame__find_row(eh, CODE, &row), 0);
		assert_int_equal(row.cfa.offset, 8);
		eh_frame__free(eh);
	}
}

static void test_no_cfa(void **state)
{
	struct cfi_builder b = {.len = 0};
	struct eh_frame *eh;
	struct cfi_row row;

	/* .cfi_startproc simple, .cfi_undefined rip: a bottom without a CFA */
	cfi__fde(&b, cfi__cie(&b, 1, "zR", BYTES(0x1b), NO_BYTES), CODE, LEN,
		 BYTES(0x07, CFI_RA, 0x41, 0x0e, 8));
	eh = cfi__new(&b, NULL);
	assert_int_equal(eh_frame__find_row(eh, CODE, &row), 0);
	assert_int_equal(row.cfa.kind, CFI_UNDEFINED);
	assert_int_equal(row.regs[CFI_RA].kind, CFI_UNDEFINED);
	assert_int_equal(eh_frame__find_row(eh, CODE + 1, &row), -EINVAL);
	eh_frame__free(eh);
}

static void test_bad_cies(void **state)
{
	const struct {
		const uint8_t *program;
		size_t len;
	} bad[] = {
		{BYTES(0xc0 | CFI_RBX)}, {BYTES(0x41)}, {BYTES(0x01, 0, 0, 0, 0)},
		{BYTES(0x0b)},		 {BYTES(0x0c)}, {BYTES(0x3f)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct cfi_builder b = {.len = 0};
		struct eh_frame *eh;
		struct cfi_row row;

		cfi__fde(&b, cfi__cie(&b, 1, "zR", BYTES(0x1b), bad[i].program, bad[i].len), CODE,
			 LEN, NO_BYTES);
		eh = cfi__new(&b, NULL);
		assert_int_equal(eh_frame__find_row(eh, CODE, &row), -ENOENT);
		eh_frame__free(eh);
	}
}

static void test_new_refuses(void **state)
{
	struct cfi_builder b = {.len = 0};

	assert_null(cfi__new(&b, NULL));
	assert_int_equal(errno, EINVAL);
	cfi__put_u32(&b, 100); /* longer than the section */
	assert_null(cfi__new(&b, NULL));
	b.len = 0;
	cfi__put_u32(&b, 4); /* an FDE whose CIE would be before the section */
	cfi__put_u32(&b, 8);
	assert_null(cfi__new(&b, NULL));
	b.len = 0;
	cfi__put_u32(&b, 0xfffffff0); /* reserved */
	assert_null(cfi__new(&b, NULL));
	b.len = 0;
	cfi__put_u32(&b, 0); /* nothing but the terminator */
	eh_frame__free(cfi__new(&b, NULL));
	eh_frame__free(NULL);
}

/* .debug_frame: a CIE's id is all ones, an FDE's CIE is told from the section's start. */
static void put_debug_frame(struct cfi_builder *b, bool is_64)
{
	for (int i = 0; i < 3; i++) {
		size_t len = i ? 18 : 10, at;

		if (is_64) {
			cfi__put_u32(b, 0xffffffff);
			cfi__put_u64(b, len + 8);
			cfi__put_u64(b, i ? 0 : UINT64_MAX);
		} else {
			cfi__put_u32(b, (uint32_t)len + 4);
			cfi__put_u32(b, i ? 0 : UINT32_MAX);
		}
		at = b->len;
		if (i) {
			cfi__put_u64(b, (uint64_t)i * 0x1000);
			cfi__put_u64(b, 0x100);
			cfi__put(b, BYTES(0x0e, (uint8_t)(16 * i)));
		} else {
			cfi__put(b, BYTES(3, 0, 1, 0x78, CFI_RA));
			cfi__put(b, CFI_AT_ENTRY);
		}
		assert_int_equal(b->len - at, len);
	}
}

static struct eh_frame *debug_frame(const struct cfi_builder *b)
{
	struct eh_frame_bytes bytes = {.eh_frame_len = b->len, .is_debug_frame = true};

	bytes.owned = malloc(b->len + 1);
	assert_non_null(bytes.owned);
	memcpy(bytes.owned, b->bytes, b->len);
	bytes.eh_frame = bytes.owned;
	return eh_frame__new(&bytes);
}

static int count_row(const struct cfi_row *row, void *arg);

static void test_debug_frame(void **state)
{
	for (int is_64 = 0; is_64 < 2; is_64++) {
		struct cfi_builder b = {.len = 0}, first = {.len = 0};
		struct eh_frame *eh;
		struct cfi_row row;
		size_t n = 0, malformed;

		put_debug_frame(&b, is_64);
		eh = debug_frame(&b);
		assert_non_null(eh);
		assert_int_equal(eh_frame__find_row(eh, 0x2080, &row), 0);
		assert_int_equal(row.fde_start, 0x2000);
		assert_int_equal(row.cfa.offset, 32);
		assert_int_equal(row.regs[CFI_RA].offset, -8);
		assert_int_equal(eh_frame__find_row(eh, 0x3000, &row), -ENOENT);
		/* it is asked where .eh_frame has nothing */
		cfi__fde(&first, cfi__usual_cie(&first), 0x2000, 0x100, BYTES(0x0e, 64));
		eh = eh_frame__join(cfi__new(&first, NULL), eh);
		assert_int_equal(eh_frame__find_row(eh, 0x2080, &row), 0);
		assert_int_equal(row.cfa.offset, 64);
		assert_int_equal(eh_frame__find_row(eh, 0x1080, &row), 0);
		assert_int_equal(row.cfa.offset, 16);
		assert_int_equal(eh_frame__each_row(eh, count_row, &n, &malformed), 0);
		assert_int_equal(n, 3);
		assert_int_equal(malformed, 0);
		eh_frame__free(eh);
		/* .eh_frame's way of writing it is no .debug_frame */
		assert_null(debug_frame(&first));
		for (size_t i = 0; i < b.len; i++) {
			for (unsigned int value = 0; value < 256; value++) {
				struct cfi_builder changed = b;

				changed.bytes[i] = (uint8_t)value;
				changed.len = value % 2 ? b.len : i;
				eh = debug_frame(&changed);
				if (eh) {
					eh_frame__each_row(eh, count_row, &n, NULL);
					eh_frame__find_row(eh, 0x2080, &row);
				}
				eh_frame__free(eh);
			}
		}
	}
	assert_null(eh_frame__join(NULL, NULL));
}

struct seen {
	size_t n, stop_at;
	uint64_t starts[16], ends[16];
};

static int see(const struct cfi_row *row, void *arg)
{
	struct seen *seen = arg;

	assert_true(seen->n < ARRAY_SIZE(seen->starts));
	seen->starts[seen->n] = row->start;
	seen->ends[seen->n] = row->end;
	seen->n++;
	return seen->n == seen->stop_at ? -EINVAL : 0;
}

static void test_each_row(void **state)
{
	static const uint64_t starts[] = {0x3000, 0x3001, 0x1000, 0x5000};
	struct cfi_builder b = {.len = 0};
	struct seen seen = {.n = 0};
	struct eh_frame *eh;
	size_t cie = cfi__usual_cie(&b), malformed, second;

	cfi__fde(&b, cie, 0x3000, 4, BYTES(0x41, 0x0e, 16));
	cfi__fde(&b, cie, 0x4000, 0, NO_BYTES); /* covers nothing: not malformed */
	second = cfi__fde(&b, cie, 0x1000, 4, BYTES(0x41, 0x3f));
	cfi__fde(&b, second, 0x2000, 4, NO_BYTES); /* an FDE for a CIE */
	cfi__fde(&b, cfi__usual_cie(&b), 0x5000, 4, NO_BYTES);
	cfi__put_u32(&b, 0);
	cfi__fde(&b, cie, 0x6000, 4, NO_BYTES); /* behind the terminator */
	eh = cfi__new(&b, NULL);

	assert_int_equal(eh_frame__each_row(eh, see, &seen, &malformed), 0);
	assert_int_equal(malformed, 2);
	assert_int_equal(seen.n, ARRAY_SIZE(starts));
	assert_memory_equal(seen.starts, starts, sizeof(starts));
	assert_int_equal(seen.ends[1], 0x3004);

	/* the callback's own value, also one that an error could have */
	seen = (struct seen){.stop_at = 2};
	assert_int_equal(eh_frame__each_row(eh, see, &seen, NULL), -EINVAL);
	assert_int_equal(seen.n, 2);
	eh_frame__free(eh);
}

static void test_overlaps(void **state)
{
	struct cfi_builder b = {.len = 0};
	struct eh_frame *eh;
	struct cfi_row row;
	size_t cie = cfi__usual_cie(&b);

	cfi__fde(&b, cie, 0x1000, 0x1000, BYTES(0x0e, 16));
	cfi__fde(&b, cie, 0x1100, 0x10, BYTES(0x0e, 24));
	cfi__fde(&b, cie, 0x1200, 0x10, BYTES(0x0e, 32));
	eh = cfi__new(&b, NULL);
	assert_int_equal(eh_frame__find_row(eh, 0x1100, &row), 0);
	assert_int_equal(row.cfa.offset, 24);
	assert_int_equal(eh_frame__find_row(eh, 0x1fff, &row), 0);
	assert_int_equal(row.cfa.offset, 16);
	assert_int_equal(eh_frame__find_row(eh, 0x2000, &row), -ENOENT);
	/* the cache gives the same again */
	assert_int_equal(eh_frame__find_row(eh, 0x2000, &row), -ENOENT);
	assert_int_equal(eh_frame__find_row(eh, 0x1100, &row), 0);
	assert_int_equal(row.cfa.offset, 24);
	eh_frame__free(eh);
}

/* Three functions, and tables that are right or lie: every one has to be found all the same. */
static void check_table(const char *name, struct cfi_builder *b, const struct cfi_builder *hdr)
{
	struct eh_frame *eh = cfi__new(b, hdr);
	struct cfi_row row;

	assert_non_null(eh);
	for (uint64_t i = 0; i < 3; i++) {
		for (uint64_t at = 0; at < 0x100; at += 0xff) {
			if (eh_frame__find_row(eh, 0x1000 * (i + 1) + at, &row) ||
			    row.start != 0x1000 * (i + 1) ||
			    row.cfa.offset != (int64_t)(16 + 8 * i))
				fail_msg("%s: function %d", name, (int)i);
		}
	}
	assert_int_equal(eh_frame__find_row(eh, 0xfff, &row), -ENOENT);
	assert_int_equal(eh_frame__find_row(eh, 0x1100, &row), -ENOENT);
	assert_int_equal(eh_frame__find_row(eh, 0x3100, &row), -ENOENT);
	eh_frame__free(eh);
}

static void test_tables(void **state)
{
	struct cfi_builder b = {.len = 0}, hdr;
	size_t cie = cfi__usual_cie(&b);
	size_t first = cfi__fde(&b, cie, 0x1000, 0x100, BYTES(0x0e, 16));
	size_t second = cfi__fde(&b, cie, 0x2000, 0x100, BYTES(0x0e, 24));
	size_t third = cfi__fde(&b, cie, 0x3000, 0x100, BYTES(0x0e, 32));
	const struct {
		const char *name;
		struct cfi_table_entry entries[3];
		uint32_t count;
	} cases[] = {
		{"right", {{0x1000, first}, {0x2000, second}, {0x3000, third}}, 3},
		{"not sorted", {{0x3000, third}, {0x1000, first}, {0x2000, second}}, 3},
		{"not sorted, 2", {{0x2000, second}, {0x1000, first}, {0x3000, third}}, 3},
		{"leaves one out", {{0x1000, first}, {0x3000, third}}, 2},
		{"empty", {{0, 0}}, 0},
		{"counts too many", {{0x1000, first}, {0x2000, second}, {0x3000, third}}, 4},
		{"counts far too many", {{0x1000, first}, {0x2000, second}}, UINT32_MAX},
		{"FDEs of others", {{0x1000, third}, {0x2000, first}, {0x3000, second}}, 3},
		{"a CIE for an FDE", {{0x1000, cie}, {0x2000, cie}, {0x3000, cie}}, 3},
		{"into an FDE", {{0x1000, first + 4}, {0x2000, second + 1}, {0x3000, third}}, 3},
		{"behind the end", {{0x1000, 0x5000}, {0x2000, 0x10000}, {0x3000, b.len}}, 3},
		{"before the start", {{0x1000, -8ULL}, {0x2000, second}, {0x3000, third}}, 3},
		{"other starts", {{0x0800, first}, {0x1800, second}, {0x2800, third}}, 3},
	};

	check_table("none", &b, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		hdr = (struct cfi_builder){.len = 0};
		cfi__hdr(&hdr, cases[i].entries, 3, cases[i].count);
		check_table(cases[i].name, &b, &hdr);
	}
	/* cut at each length, and each byte of the head changed */
	for (size_t len = 0; len < hdr.len; len++) {
		struct cfi_builder cut = hdr;

		cut.len = len;
		check_table("cut", &b, &cut);
	}
	for (size_t i = 0; i < 12; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			struct cfi_builder changed = {.len = 0};

			cfi__hdr(&changed, cases[0].entries, 3, 3);
			changed.bytes[i] ^= (uint8_t)(1 << bit);
			check_table("changed", &b, &changed);
		}
	}
}

/* The table says that there is an FDE, so code that is not understood is not code without one. */
static void test_not_understood(void **state)
{
	struct cfi_builder b = {.len = 0}, hdr = {.len = 0};
	size_t fde = cfi__fde(&b, cfi__cie(&b, 1, "zRQ", BYTES(0x1b), CFI_AT_ENTRY), 0x1000, 0x100,
			      NO_BYTES);
	const struct cfi_table_entry entries[] = {{0x1000, fde}};
	struct eh_frame *eh;
	struct cfi_row row;

	cfi__hdr(&hdr, entries, 1, 1);
	eh = cfi__new(&b, &hdr);
	assert_int_equal(eh_frame__find_row(eh, 0x1000, &row), -EOPNOTSUPP);
	eh_frame__free(eh);
}

static int count_row(const struct cfi_row *row, void *arg)
{
	assert_true(row->start < row->end);
	++*(size_t *)arg;
	return 0;
}

/* Everything that can be asked, of bytes on the heap so that ASan sees each read too far. */
static void ask_all(const uint8_t *bytes, size_t len, const struct cfi_builder *hdr)
{
	uint8_t *copy = malloc(len + 1);
	struct eh_frame_bytes b = {
		.eh_frame = copy + 1,
		.eh_frame_len = len,
		.eh_frame_addr = CFI_SECTION,
		.hdr = hdr->bytes,
		.hdr_len = hdr->len,
		.hdr_addr = CFI_HDR,
	};
	struct eh_frame *eh;
	struct cfi_row row;
	size_t n = 0, malformed;

	assert_non_null(copy);
	memcpy(copy + 1, bytes, len);
	eh = eh_frame__new(&b);
	if (eh) {
		eh_frame__each_row(eh, count_row, &n, &malformed);
		for (uint64_t pc = 0xfff; pc < 0x3200; pc += 0x101)
			eh_frame__find_row(eh, pc, &row);
		eh_frame__free(eh);
	}
	free(copy);
}

static void test_cut_and_changed(void **state)
{
	struct cfi_builder b = {.len = 0}, hdr = {.len = 0};
	size_t cie = cfi__cie(&b, 1, "zPLR", BYTES(0x9b, 1, 2, 3, 4, 0x1b, 0x1b), CFI_AT_ENTRY);
	size_t first = cfi__fde(&b, cie, 0x1000, 0x100,
				BYTES(0x41, 0x0a, 0x0e, 16, 0x86, 2, 0x02, 9, 0x0f, 2, 0x77, 8,
				      0x0b, 0x10, 3, 2, 0x30, 0x31, 0x01, 0, 0, 0, 0));
	size_t second = cfi__fde(&b, cfi__signal_cie(&b), 0x2000, 0x100, BYTES(0x0c, 7, 8));
	const struct cfi_table_entry entries[] = {{0x1000, first}, {0x2000, second}};

	cfi__put_u32(&b, 0);
	cfi__hdr(&hdr, entries, 2, 2);
	for (size_t len = 0; len <= b.len; len++)
		ask_all(b.bytes, len, &hdr);
	for (size_t i = 0; i < b.len; i++) {
		for (unsigned int value = 0; value < 256; value++) {
			struct cfi_builder changed = b;

			changed.bytes[i] = (uint8_t)value;
			ask_all(changed.bytes, changed.len, &hdr);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_cies),
		cmocka_unit_test(test_pointer_encodings),
		cmocka_unit_test(test_unsized_augmentation),
		cmocka_unit_test(test_set_loc),
		cmocka_unit_test(test_64_bit_length),
		cmocka_unit_test(test_no_cfa),
		cmocka_unit_test(test_bad_cies),
		cmocka_unit_test(test_new_refuses),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_each_row),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_not_understood),
		cmocka_unit_test(test_cut_and_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
