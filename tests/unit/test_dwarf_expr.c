// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/dwarf_expr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* 16 bytes at 0x1000 can be read, nothing else. */
static int read_word(void *arg, uint64_t addr, uint64_t *ret_word)
{
	static const uint8_t memory[16] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
					   0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x80};

	if (addr < 0x1000 || addr > 0x1008)
		return -EFAULT;
	memcpy(ret_word, memory + (addr - 0x1000), 8);
	return 0;
}

struct expr_case {
	const char *name;
	const uint8_t *expr;
	size_t len;
	int err;
	uint64_t value;
};

#define E(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static const struct expr_case cases[] = {
	{"nothing but the initial value", (const uint8_t[]){0}, 0, 0, 0xcfa},
	{"lit0", E(0x30), 0, 0},
	{"lit31", E(0x4f), 0, 31},
	{"addr + bias", E(0x03, 0x10, 0, 0, 0, 0, 0, 0, 0), 0, 0x7000010},
	{"const1u", E(0x08, 0xff), 0, 0xff},
	{"const1s", E(0x09, 0xff), 0, UINT64_MAX},
	{"const2u", E(0x0a, 0xfe, 0xff), 0, 0xfffe},
	{"const2s", E(0x0b, 0xfe, 0xff), 0, -2ULL},
	{"const4u", E(0x0c, 0xfe, 0xff, 0xff, 0xff), 0, 0xfffffffe},
	{"const4s", E(0x0d, 0xfe, 0xff, 0xff, 0xff), 0, -2ULL},
	{"const8u", E(0x0e, 1, 2, 3, 4, 5, 6, 7, 8), 0, 0x0807060504030201},
	{"const8s", E(0x0f, 1, 2, 3, 4, 5, 6, 7, 0xff), 0, 0xff07060504030201},
	{"constu", E(0x10, 0xe5, 0x8e, 0x26), 0, 624485},
	{"consts", E(0x11, 0xc0, 0xbb, 0x78), 0, -123456ULL},
	{"dup", E(0x34, 0x12, 0x22), 0, 8},
	{"drop", E(0x34, 0x35, 0x13), 0, 4},
	{"over", E(0x34, 0x35, 0x14), 0, 4},
	{"pick 2", E(0x34, 0x35, 0x36, 0x15, 2), 0, 4},
	{"swap", E(0x34, 0x35, 0x16), 0, 4},
	{"rot: the first becomes third", E(0x31, 0x32, 0x33, 0x17), 0, 2},
	{"rot: third value", E(0x31, 0x32, 0x33, 0x17, 0x13, 0x13), 0, 3},
	{"deref", E(0x0a, 0x00, 0x10, 0x06), 0, 0x8877665544332211},
	{"deref_size 2", E(0x0a, 0x00, 0x10, 0x94, 2), 0, 0x2211},
	{"deref_size 4 at the end", E(0x0a, 0x0c, 0x10, 0x94, 4), 0, 0x80ffeedd},
	{"deref_size 1 at the end", E(0x0a, 0x0f, 0x10, 0x94, 1), 0, 0x80},
	{"abs", E(0x09, 0xfb, 0x19), 0, 5},
	{"neg", E(0x35, 0x1f), 0, -5ULL},
	{"not", E(0x30, 0x20), 0, UINT64_MAX},
	{"plus_uconst", E(0x35, 0x23, 0x80, 0x01), 0, 133},
	{"and or xor", E(0x3f, 0x3a, 0x1a, 0x31, 0x21, 0x32, 0x27), 0, 9},
	{"minus", E(0x35, 0x37, 0x1c), 0, -2ULL},
	{"mul", E(0x35, 0x37, 0x1e), 0, 35},
	{"div is signed", E(0x09, 0xf9, 0x32, 0x1b), 0, -3ULL},
	{"div of the least number by -1", E(0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b), 0,
	 0x8000000000000000},
	{"mod is unsigned", E(0x09, 0xff, 0x3a, 0x1d), 0, 5},
	{"shl", E(0x31, 0x3f, 0x24), 0, 0x8000},
	{"shl by 64", E(0x31, 0x08, 64, 0x24), 0, 0},
	{"shr", E(0x09, 0xff, 0x08, 63, 0x25), 0, 1},
	{"shr by 64", E(0x31, 0x08, 64, 0x25), 0, 0},
	{"shra", E(0x09, 0xf0, 0x34, 0x26), 0, UINT64_MAX},
	{"shra by 200", E(0x09, 0xf0, 0x08, 200, 0x26), 0, UINT64_MAX},
	{"eq", E(0x31, 0x31, 0x29), 0, 1},
	{"ne", E(0x31, 0x31, 0x2e), 0, 0},
	{"ge signed", E(0x31, 0x09, 0xff, 0x2a), 0, 1},
	{"gt", E(0x31, 0x31, 0x2b), 0, 0},
	{"le", E(0x31, 0x31, 0x2c), 0, 1},
	{"lt signed", E(0x09, 0xff, 0x31, 0x2d), 0, 1},
	{"skip", E(0x31, 0x2f, 1, 0, 0x32, 0x33), 0, 3},
	{"skip to the end", E(0x31, 0x2f, 1, 0, 0x32), 0, 1},
	{"bra taken", E(0x34, 0x31, 0x28, 1, 0, 0x35), 0, 4},
	{"bra not taken", E(0x34, 0x30, 0x28, 1, 0, 0x35), 0, 5},
	{"a loop that ends", E(0x35, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff), 0, 0},
	{"breg7 + 8", E(0x77, 8), 0, 0x7ff8},
	{"breg6 - 8", E(0x76, 0x78), 0, 0x7ff8 + 0x100 - 16},
	{"bregx", E(0x92, 7, 8), 0, 0x7ff8},
	{"reg7 by value", E(0x57), 0, 0x7ff0},
	{"regx", E(0x90, 7), 0, 0x7ff0},
	{"nop, stack_value", E(0x96, 0x35, 0x9f), 0, 5},
	{"PLT stub, early", E(0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22), 0,
	 0x7ff8},

	{"empty stack", E(0x13), -EINVAL, 0},
	{"drop of nothing", E(0x13, 0x13), -EINVAL, 0},
	{"swap of one", E(0x16), -EINVAL, 0},
	{"rot of two", E(0x31, 0x17), -EINVAL, 0},
	{"plus of one", E(0x22), -EINVAL, 0},
	{"abs of nothing", E(0x13, 0x19), -EINVAL, 0},
	{"bra on nothing", E(0x13, 0x28, 0, 0), -EINVAL, 0},
	{"deref of nothing", E(0x13, 0x06), -EINVAL, 0},
	{"pick too deep", E(0x15, 1), -EINVAL, 0},
	{"div by zero", E(0x31, 0x30, 0x1b), -EINVAL, 0},
	{"mod by zero", E(0x31, 0x30, 0x1d), -EINVAL, 0},
	{"const1u cut", E(0x08), -EINVAL, 0},
	{"const8u cut", E(0x0e, 1, 2, 3, 4, 5, 6, 7), -EINVAL, 0},
	{"uleb cut", E(0x10, 0x80), -EINVAL, 0},
	{"uleb over 64 bits", E(0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02),
	 -EINVAL, 0},
	{"uleb padded",
	 E(0x10, 0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00), 0, 5},
	{"uleb of 64 bits", E(0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), 0,
	 UINT64_MAX},
	{"sleb padded", E(0x11, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
	 0, -2ULL},
	{"sleb of 64 bits", E(0x11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), 0,
	 0x8000000000000000},
	{"sleb over 64 bits", E(0x11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
	 -EINVAL, 0},
	{"plus_uconst cut", E(0x31, 0x23), -EINVAL, 0},
	{"skip cut", E(0x2f, 0), -EINVAL, 0},
	{"skip before the start", E(0x2f, 0xfc, 0xff), -EINVAL, 0},
	{"skip behind the end", E(0x2f, 1, 0), -EINVAL, 0},
	{"deref_size 0", E(0x94, 0), -EINVAL, 0},
	{"deref_size 9", E(0x94, 9), -EINVAL, 0},
	{"deref of what cannot be read", E(0x06), -EFAULT, 0},
	{"deref_size of what cannot be read", E(0x94, 1), -EFAULT, 0},
	{"endless", E(0x2f, 0xfd, 0xff), -ELOOP, 0},
	{"a register that is not known", E(0x70, 0), -ENODATA, 0},
	{"a vector register", E(0x81, 0), -EOPNOTSUPP, 0},
	{"register number over 32", E(0x92, 0xff, 0x7f, 0), -EOPNOTSUPP, 0},
	{"call_frame_cfa: not allowed here", E(0x9c), -EOPNOTSUPP, 0},
	{"no such operation", E(0x00), -EOPNOTSUPP, 0},
};

static uint64_t regs[17] = {[6] = 0x7ff0 + 0x100, [7] = 0x7ff0, [16] = 0x5551235};

static const struct dwarf_expr_space space = {
	.regs = regs,
	.n_regs = 17,
	.known = 1 << 6 | 1 << 7 | 1 << 16,
	.bias = 0x7000000,
	.read_word = read_word,
};

static void test_cases(void **state)
{
	const uint64_t cfa = 0xcfa;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t value = 0xdead;
		/* from the heap, so that ASan sees a read behind the end */
		uint8_t *expr = malloc(cases[i].len + 1);
		int err;

		assert_non_null(expr);
		memcpy(expr + 1, cases[i].expr, cases[i].len);
		err = dwarf_expr__eval(expr + 1, cases[i].len, &space, &cfa, &value);
		free(expr);
		if (err != cases[i].err || value != (err ? 0xdead : cases[i].value))
			fail_msg("%s: %d, %#lx", cases[i].name, err, (unsigned long)value);
	}
}

static void test_plt_late(void **state)
{
	const uint8_t expr[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	uint64_t value;

	regs[16] = 0x555123b;
	assert_int_equal(dwarf_expr__eval(expr, sizeof(expr), &space, NULL, &value), 0);
	assert_int_equal(value, 0x8000);
}

static void test_no_initial_value(void **state)
{
	uint64_t value = 7;

	assert_int_equal(dwarf_expr__eval((const uint8_t *)"", 0, &space, NULL, &value), -EINVAL);
	assert_int_equal(value, 7);
}

static void test_stack_overflow(void **state)
{
	uint8_t expr[100];
	uint64_t value;

	memset(expr, 0x31, sizeof(expr));
	assert_int_equal(dwarf_expr__eval(expr, 64, &space, NULL, &value), 0);
	assert_int_equal(dwarf_expr__eval(expr, 65, &space, NULL, &value), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_plt_late),
		cmocka_unit_test(test_no_initial_value),
		cmocka_unit_test(test_stack_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
