// SPDX-License-Identifier: GPL-2.0-or-later
/* From folded stacks or a report to the tables of --functions and --percent. */
#include "fold/aggregate.h"
#include "fold/functions.h"
#include "read/reader.h"
#include "write/writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define HEADING	      "   self    total  function\n"

static int add(const struct stack *stack, void *arg)
{
	int ret = aggregate__add(arg, stack);

	return ret < 0 ? ret : 0;
}

/* What `folded` has, as the writer of functions or of shares shows it. */
static void print(const char *folded, bool functions, struct strbuf *out)
{
	struct shortener *shortener = shortener__new(SHORTEN_GDB);
	struct aggregate *a = aggregate__new(shortener, NULL, 0);
	struct reader *reader = reader__new(INPUT_FOLDED, add, a);
	struct report report;

	strbuf__append_str(out, "");
	assert_int_equal(reader__feed(reader, folded, strlen(folded)), 0);
	assert_int_equal(reader__finish(reader), 0);
	assert_int_equal(aggregate__report(a, &report), 0);
	if (functions) {
		struct functions *f = functions__new(&report);
		struct report_functions table = functions__table(f);

		assert_int_equal(write_functions__table(out, &table), 0);
		functions__free(f);
	} else {
		assert_int_equal(write_pmp__shares(out, &report), 0);
	}
	reader__free(reader);
	aggregate__free(a);
	shortener__free(shortener);
}

static void test_tables(void **state)
{
	static const struct {
		const char *folded;
		const char *functions;
		const char *shares;
	} cases[] = {
		{"", HEADING, ""},
		{"main;do_something 4\nmain;other 1\n",
		 HEADING " 80.00%   80.00%  do_something\n 20.00%   20.00%  other\n"
			 "  0.00%  100.00%  main\n",
		 " 80.00% do_something,main\n 20.00% other,main\n"},
		{"main 1\n", HEADING "100.00%  100.00%  main\n", "100.00% main\n"},
		/* recursion: direct, and by way of another */
		{"main;f;f;f 3\nmain;f;g;f 1\n",
		 HEADING "100.00%  100.00%  f\n  0.00%  100.00%  main\n  0.00%   25.00%  g\n",
		 " 75.00% f,f,f,main\n 25.00% f,g,f,main\n"},
		/* the same function innermost and not: the sum of both */
		{"a;b 1\nb;a 2\n", HEADING " 66.67%  100.00%  a\n 33.33%  100.00%  b\n",
		 " 66.67% a,b\n 33.33% b,a\n"},
		/* ties: by total, then by name */
		{"z;B 1\na;b 1\nz;_ 1\n",
		 HEADING " 33.33%   33.33%  B\n 33.33%   33.33%  _\n 33.33%   33.33%  b\n"
			 "  0.00%   66.67%  z\n  0.00%   33.33%  a\n",
		 " 33.33% b,a\n 33.33% _,z\n 33.33% B,z\n"},
		/* less than is shown, and not quite everything */
		{"a 1000000\nb 1\n", HEADING "100.00%  100.00%  a\n  0.00%    0.00%  b\n",
		 "100.00% a\n  0.00% b\n"},
		/* counts that are large, and that come to too much */
		{"a;b 18446744073709551615\n", HEADING "100.00%  100.00%  b\n  0.00%  100.00%  a\n",
		 "100.00% b,a\n"},
		{"a;b 18446744073709551615\na;c 18446744073709551615\n",
		 HEADING "100.00%  100.00%  b\n100.00%  100.00%  c\n  0.00%  100.00%  a\n",
		 "100.00% c,a\n100.00% b,a\n"},
		{"a;b 9223372036854775807\na;c 9223372036854775807\n",
		 HEADING " 50.00%   50.00%  b\n 50.00%   50.00%  c\n  0.00%  100.00%  a\n",
		 " 50.00% c,a\n 50.00% b,a\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf out = STRBUF_INIT;

		print(cases[i].folded, true, &out);
		assert_string_equal(out.data, cases[i].functions);
		strbuf__reset(&out);
		print(cases[i].folded, false, &out);
		assert_string_equal(out.data, cases[i].shares);
		strbuf__free(&out);
	}
}

/* Names come from others: commas, control characters, NULs, none at all. */
static void test_untrusted_names(void **state)
{
	const struct report_line lines[] = {
		{.count = 4,
		 .frames = "op,x\033[31m\0y,,a\nb",
		 .len = 16,
		 .n_frames = 3,
		 .offsets = (uint32_t[]){0, 12, 13}},
		{.count = 2,
		 .frames = "\xff\xc3\xa4",
		 .len = 3,
		 .n_frames = 1,
		 .offsets = (uint32_t[]){0}},
		{.count = 2, .frames = "", .len = 0, .n_frames = 0},
		/* alike up to the NUL */
		{.count = 1, .frames = "n\0a", .len = 3, .n_frames = 1, .offsets = (uint32_t[]){0}},
		{.count = 1,
		 .frames = "n\0b,n",
		 .len = 5,
		 .n_frames = 2,
		 .offsets = (uint32_t[]){0, 4}},
	};
	const struct report report = {.lines = lines, .n_lines = ARRAY_SIZE(lines), .total = 10};
	struct functions *f = functions__new(&report);
	struct report_functions table = functions__table(f);
	struct strbuf out = STRBUF_INIT;

	assert_int_equal(table.n_functions, 7);
	assert_int_equal(write_functions__table(&out, &table), 0);
	assert_string_equal(out.data, HEADING " 40.00%   40.00%  op,x?[31m?y\n"
					      " 20.00%   60.00%  ?\?\n"
					      " 20.00%   20.00%  ?ä\n"
					      " 10.00%   10.00%  n?a\n"
					      " 10.00%   10.00%  n?b\n"
					      "  0.00%   40.00%  a?b\n"
					      "  0.00%   10.00%  n\n");
	strbuf__reset(&out);
	/* who shows fewer does not change the shares */
	table.n_functions = 1;
	assert_int_equal(write_functions__table(&out, &table), 0);
	assert_string_equal(out.data, HEADING " 40.00%   40.00%  op,x?[31m?y\n");
	strbuf__free(&out);
	functions__free(f);
	functions__free(NULL);
}

static void test_total(void **state)
{
	static const struct report_line line = {.count = 5, .frames = "a", .len = 1};
	struct report report = {.lines = &line, .n_lines = 1, .total = 20};
	struct strbuf out = STRBUF_INIT;

	assert_int_equal(write_pmp__shares(&out, &report), 0);
	report.n_lines = 0;
	assert_int_equal(write_pmp__shares(&out, &report), 0);
	assert_string_equal(out.data, " 25.00% a\n");
	strbuf__free(&out);
}

static void test_nothing_of_nothing(void **state)
{
	const struct report_line line = {
		.frames = "a,b", .len = 3, .n_frames = 2, .offsets = (uint32_t[]){0, 2}};
	const struct report report = {.lines = &line, .n_lines = 1};
	struct functions *f = functions__new(&report);
	struct report_functions table = functions__table(f);
	struct strbuf out = STRBUF_INIT;

	assert_int_equal(write_functions__table(&out, &table), 0);
	assert_int_equal(write_pmp__shares(&out, &report), 0);
	assert_string_equal(out.data, HEADING "  0.00%    0.00%  a\n  0.00%    0.00%  b\n"
					      "  0.00% a,b\n");
	strbuf__free(&out);
	functions__free(f);
}

/* Deep and many: each function is found again. */
static void test_many(void **state)
{
	struct strbuf folded = STRBUF_INIT, out = STRBUF_INIT;
	const char *line;

	for (int i = 0; i < 2000; i++)
		strbuf__printf(&folded, "root;f%d;f%d;leaf%d 1\n", i % 7, i % 7, i);
	print(folded.data, true, &out);
	line = out.data;
	for (size_t n = 0; n < 2001; n++)
		line = strchr(line, '\n') + 1;
	assert_string_equal(line, "  0.00%  100.00%  root\n"
				  "  0.00%   14.30%  f0\n  0.00%   14.30%  f1\n"
				  "  0.00%   14.30%  f2\n  0.00%   14.30%  f3\n"
				  "  0.00%   14.30%  f4\n  0.00%   14.25%  f5\n"
				  "  0.00%   14.25%  f6\n");
	strbuf__free(&folded);
	strbuf__free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables), cmocka_unit_test(test_untrusted_names),
		cmocka_unit_test(test_total),  cmocka_unit_test(test_nothing_of_nothing),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("functions", tests, NULL, NULL);
}
