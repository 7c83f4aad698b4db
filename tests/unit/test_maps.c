// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/maps.h"

static const char sample[] =
	"5618157c1000-5618157c2000 r--p 00000000 fe:00 10952865                   /tmp/a b\n"
	"5618157c2000-5618157c3000 r-xp 00001000 fe:0a 10952865                   /tmp/a b\n"
	"7fb664634000-7fb664637000 rw-p 00000000 00:00 0 \n"
	"7fb664637000-7fb66465d000 r--s 00000000 103:12345 332835  /usr/lib/x.so (deleted)\n"
	"7fb66482c000-7fb66482e000 r-xp 00000000 00:00 0                          [vdso]\n"
	"7fb66482e000-7fb66482f000 rw-p 00000000 00:01 7   /a\\012b\\134 (deleted)\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";

static void test_parse(void **state)
{
	struct maps *m = maps__parse(sample, strlen(sample));
	const struct mapping *all;
	size_t n;

	assert_non_null(m);
	all = maps__all(m, &n);
	assert_int_equal(n, 7);
	assert_string_equal(all[0].path, "/tmp/a b");
	assert_true(all[0].readable && !all[0].writable && !all[0].executable);
	assert_true(all[1].executable);
	assert_int_equal(all[1].offset, 0x1000);
	assert_int_equal(all[1].dev_major, 0xfe);
	assert_int_equal(all[1].dev_minor, 0x0a);
	assert_int_equal(all[1].inode, 10952865);
	assert_string_equal(all[2].path, "");
	assert_int_equal(all[2].inode, 0);
	assert_string_equal(all[3].path, "/usr/lib/x.so");
	assert_true(all[3].deleted);
	assert_int_equal(all[3].dev_major, 0x103);
	assert_int_equal(all[3].dev_minor, 0x12345);
	assert_string_equal(all[4].path, "[vdso]");
	assert_string_equal(all[5].path, "/a\nb\\134");
	assert_true(all[5].deleted);
	assert_int_equal(all[6].start, 0xffffffffff600000);
	maps__free(m);
}

static void test_find(void **state)
{
	struct maps *m = maps__parse(sample, strlen(sample));

	assert_non_null(m);
	assert_null(maps__find(m, 0));
	assert_null(maps__find(m, 0x5618157c0fff));
	assert_int_equal(maps__find(m, 0x5618157c1000)->start, 0x5618157c1000);
	assert_int_equal(maps__find(m, 0x5618157c1fff)->start, 0x5618157c1000);
	assert_int_equal(maps__find(m, 0x5618157c2000)->start, 0x5618157c2000);
	assert_null(maps__find(m, 0x5618157c3000));
	assert_non_null(maps__find(m, 0xffffffffff600fff));
	assert_null(maps__find(m, UINT64_MAX));
	maps__free(m);

	m = maps__parse("", 0);
	assert_non_null(m);
	assert_null(maps__find(m, 1));
	maps__free(m);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *text;
		int n; /* -1: refused */
	} cases[] = {
		{"\n\n", 0},
		{"garbage\n1000-2000 r-xp 0 0:0 0\n", 1},
		{"1000-2000\n", 0},
		{"1000-1000 r-xp 0 0:0 0\n", 0},
		{"2000-1000 r-xp 0 0:0 0\n", 0},
		{"-2000 r-xp 0 0:0 0\n", 0},
		{"1000- r-xp 0 0:0 0\n", 0},
		{"1000-2000 rwx 0 0:0 0\n", 0},
		{"1000-2000 r-xp", 0},
		{"1000-2000 r-xp ", 0},
		{"1000-2000 r-xp 0 ", 0},
		{"1000-2000 r-xp 0 0:0 ", 0},
		{"1000-2000 r-xp 0 0:0 0x1 /a\n", 0},
		{"1000-2000 r-xp 0 1ffffffff:0 0 /a\n", 0},
		{"10000000000000000-20000000000000000 r-xp 0 0:0 0\n", 0},
		{"1000-2000 r-xp 0 0:0 99999999999999999999 /a\n", 0},
		{"1000-2000 r-xp 0 0:0 5 (deleted)\n", 1},
		{"1000-2000 r-xp 0 0:0 5 /a\n1800-3000 r-xp 0 0:0 5 /a\n", -1},
		{"5000-6000 r-xp 0 0:0 5 /a\n1000-2000 r-xp 0 0:0 5 /a\n", -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct maps *m = maps__parse(cases[i].text, strlen(cases[i].text));
		size_t n;

		if (cases[i].n < 0) {
			assert_null(m);
			assert_int_equal(errno, EINVAL);
			continue;
		}
		assert_non_null(m);
		maps__all(m, &n);
		if (n != (size_t)cases[i].n)
			fail_msg("case %zu: %zu mappings", i, n);
		maps__free(m);
	}
}

static void test_nul_bytes_and_cuts(void **state)
{
	char text[sizeof(sample)];

	memcpy(text, sample, sizeof(text));
	for (size_t len = 0; len < sizeof(sample); len++) {
		struct maps *m = maps__parse(sample, len);

		assert_non_null(m);
		maps__free(m);
		text[len] = '\0';
		m = maps__parse(text, sizeof(text) - 1);
		if (m)
			maps__free(m);
		text[len] = sample[len];
	}
}

static void test_read_self(void **state)
{
	struct maps *m = maps__read(getpid());
	const struct mapping *mapping;

	assert_non_null(m);
	mapping = maps__find(m, (uint64_t)(uintptr_t)&test_read_self);
	assert_non_null(mapping);
	assert_true(mapping->executable);
	assert_non_null(strstr(mapping->path, "test_maps"));
	mapping = maps__find(m, (uint64_t)(uintptr_t)&m);
	assert_non_null(mapping);
	assert_true(mapping->writable);
	maps__free(m);
}

static void test_read_nobody(void **state)
{
	assert_null(maps__read(0x3fffffff));
	assert_int_equal(errno, ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	  cmocka_unit_test(test_find),
		cmocka_unit_test(test_malformed), cmocka_unit_test(test_nul_bytes_and_cuts),
		cmocka_unit_test(test_read_self), cmocka_unit_test(test_read_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
