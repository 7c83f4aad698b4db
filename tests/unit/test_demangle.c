// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "sym/demangle.h"

/* each as gdb 13 prints it; NULL: as it is */
static const struct {
	const char *name, *text;
} cases[] = {
	{"main", NULL},
	{"_Z", NULL},
	{"_Znot_mangled", NULL},
	{"", NULL},
	{"_", NULL},
	{"$", NULL},
	{"@", NULL},
	{"__poll", NULL},
	{"_Z1fv", "f()"},
	{"_Z1fv@plt", "f()@plt"},
	{"_Z1fv@@VERS_1", "f()@@VERS_1"},
	{"._Z1fv", ".f()"},
	{"free@plt", NULL},
	{"_ZN1A1fEi", "A::f(int)"},
	{"_ZNK1A1fEv.part.0", "A::f() const [clone .part.0]"},
	{"_Z1fSs", "f(std::basic_string<char, std::char_traits<char>, std::allocator<char> >)"},
	{"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"},
	{"_ZlsRSoRK1A", "operator<<(std::basic_ostream<char, std::char_traits<char> >&, A const&)"},
	{"_Z1fIiEvT_", "void f<int>(int)"},
	{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"},
	{"_ZN4core3fmt5Write9write_str17h0123456789abcdefE",
	 "core::fmt::Write::write_str::h0123456789abcdef"},
	/* C names that can be read as GNAT's */
	{"a__b", "a.b"},
	{"f.part.0", "f.part"},
	{"f.constprop.0", "f.constprop"},
	{"f.cold", "f[cold]"},
	{"f.part.0.cold", "f.part[cold]"},
	{"A__b", NULL},
	{"a__B_c", NULL},
	{"a___b", NULL},
	{"f__", NULL},
	{"a_b___XP", "a_b"},
	{"f.1", "f"},
	{"f__2", "f"},
	{"f2", NULL},
	{".f", "f"},
	{"_ada_main", "main"},
};

static void test_names(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf b = STRBUF_INIT;
		int err;

		strbuf__append_str(&b, "x");
		err = demangle(cases[i].name, &b);
		if (err && err != -ENOENT)
			fail_msg("%s: %d", cases[i].name, err);
		if (!cases[i].text) {
			/* "as it is" may be said by the result too */
			if (!err)
				assert_string_equal(b.data + 1, cases[i].name);
			else
				assert_string_equal(b.data, "x");
		} else {
			assert_int_equal(err, 0);
			assert_string_equal(b.data + 1, cases[i].text);
		}
		strbuf__free(&b);
	}
}

/* each level names the one before twice */
static void test_doubling(void **state)
{
	char name[1024] = "_Z1f";
	struct strbuf b = STRBUF_INIT;
	struct timespec start, end;

	strcat(name, "1AIiiE");
	for (int i = 0; i < 60; i++) {
		char level[32] = "1BIS_S_E";

		/* S0_ is A<int, int>, S2_ the first B<...>, and so on */
		if (i) {
			int seq = 2 * i;
			char digit = (char)(seq < 10 ? '0' + seq : 'A' + seq - 10);

			if (seq > 35)
				break;
			sprintf(level, "1BIS%c_S%c_E", digit, digit);
		} else {
			strcpy(level, "1BIS0_S0_E");
		}
		strcat(name, level);
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(demangle(name, &b), -E2BIG);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - start.tv_sec < 2);
	assert_int_equal(b.len, 0);
	strbuf__free(&b);
}

static void test_hostile(void **state)
{
	static const char *const pieces[] = {"P", "I", "N",  "E", "S_", "S0_",	"T_",
					     "i", "K", "1a", "X", "L",	"DpT_", "J",
					     "F", "Z", "_",  "R", "Ul", "C1"};
	char *name = malloc(200001);
	struct strbuf b = STRBUF_INIT;

	assert_non_null(name);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t len = strlen(pieces[i]);

		for (size_t total = 100; total <= 200000; total *= 10) {
			strcpy(name, "_Z1f");
			for (size_t at = 4; at + len < total; at += len)
				strcpy(name + at, pieces[i]);
			strbuf__reset(&b);
			demangle(name, &b);
			assert_true(b.len <= DEMANGLE_MAX + 16384);
		}
	}
	srand(1);
	for (int i = 0; i < 20000; i++) {
		strcpy(name, i & 1 ? "_Z1f" : "_RNvC1a1b");
		for (int j = 0; j < rand() % 60; j++)
			strcat(name, pieces[(size_t)rand() % (sizeof(pieces) / sizeof(pieces[0]))]);
		strbuf__reset(&b);
		demangle(name, &b);
	}
	strbuf__free(&b);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_doubling),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
