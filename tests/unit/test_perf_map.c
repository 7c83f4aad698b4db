// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sym/perf_map.h"

static struct perf_map *of(const char *text)
{
	struct perf_map *m = perf_map__from_text(text, strlen(text));

	assert_non_null(m);
	return m;
}

static void is(const struct perf_map *m, uint64_t addr, const char *name)
{
	const char *found = perf_map__find(m, addr);

	if (name)
		assert_string_equal(found ? found : "(none)", name);
	else
		assert_null(found);
}

static void test_names(void **state)
{
	struct perf_map *m = of("1000 20 first\n"
				"0x2000 0X10 with blanks in it\n"
				"  3000  8 indented\n"
				"ffffffffffffff00 ff last");

	(void)state;
	is(m, 0xfff, NULL);
	is(m, 0x1000, "first");
	is(m, 0x101f, "first");
	is(m, 0x1020, NULL);
	is(m, 0x2008, "with blanks in it");
	is(m, 0x3007, "indented");
	is(m, 0xffffffffffffff80, "last");
	perf_map__free(m);
	perf_map__free(NULL);
}

/* code that was thrown away, and other code in its place */
static void test_newer_wins(void **state)
{
	struct perf_map *m = of("1000 100 old\n"
				"1040 20 inner\n"
				"2000 10 before\n"
				"2000 10 after\n"
				"3008 10 right\n"
				"3000 10 left\n"
				"4040 20 covered\n"
				"4000 100 cover\n");

	(void)state;
	is(m, 0x103f, "old");
	is(m, 0x1040, "inner");
	is(m, 0x2008, "after");
	is(m, 0x300c, "left");
	is(m, 0x3010, "right");
	is(m, 0x4050, "cover");
	is(m, 0x40ff, "cover");
	perf_map__free(m);
}

static void test_nonsense(void **state)
{
	static const char *const lines[] = {
		"",
		"\n\n\n",
		"1000",
		"1000 10",
		"1000 10 ",
		"1000 0 empty",
		"x 10 name",
		"1000 y name",
		"11111111111111111 10 too long",
		"ffffffffffffff00 200 wraps",
		"1000\t10\tname",
		"-1000 10 name",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct perf_map *m = of(lines[i]);

		for (uint64_t addr = 0xff0; addr < 0x1020; addr++)
			is(m, addr, NULL);
		is(m, UINT64_MAX, NULL);
		perf_map__free(m);
	}
	/* no name reaches beyond its line, nor beyond the text */
	struct perf_map *m = perf_map__from_text("1000 10 a\n1010 10 bXYZ", 20);

	assert_non_null(m);
	is(m, 0x1000, "a");
	is(m, 0x1010, "bX");
	perf_map__free(m);
}

static char path[64];

static void leave(const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* our own: only a regular file of ours or of root's is taken */
static void test_file(void **state)
{
	struct perf_map *m;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	assert_null(perf_map__new(getpid()));
	assert_int_equal(errno, ENOENT);
	leave("1000 10 ours\n");
	m = perf_map__new(getpid());
	assert_non_null(m);
	is(m, 0x1008, "ours");
	perf_map__free(m);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_null(perf_map__new(getpid()));
		assert_int_equal(errno, ENOENT);
	}
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(perf_map__new(getpid()));
	unlink(path);
	assert_null(perf_map__new(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_newer_wins),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
