// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/unit/pipeline.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static void test_lines(void **state)
{
	static const struct {
		const char *text;
		size_t lines;
		const char *tids;
		const char *printed;
	} cases[] = {
		{"", 0, NULL, ""},
		{"nothing\n", 0, NULL, ""},
		{"Thread 1\n#0 a\n#1 b\n", 0, NULL, "      1 a,b\n"},
		{"Thread 1\n#0 a\nThread 2\n#0 a\nThread 3\n#0 b\n", 0, NULL,
		 "      2 a\n      1 b\n"},
		/* equal counts: last name first */
		{"Thread 1\n#0 a\nThread 2\n#0 c\nThread 3\n#0 b\n", 0, NULL,
		 "      1 c\n      1 b\n      1 a\n"},
		{"Thread 1\n#0 a\nThread 2\n#0 a\n#1 b\n", 0, NULL, "      1 a,b\n      1 a\n"},
		/* a limit of frames */
		{"Thread 1\n#0 a\n#1 b\n#2 c\n", 2, NULL, "      1 a,b\n"},
		{"Thread 1\n#0 a\n#1 b\nThread 2\n#0 a\n#1 c\n", 1, NULL, "      2 a\n"},
		{"Thread 1\n#0\n#1 b\n", 1, NULL, "      1 \n"},
		/* empty threads: counted only as the last */
		{"Thread 1\nThread 2\n#0 a\n", 0, NULL, "      1 a\n"},
		{"Thread 1\n#0 a\nThread 2\n", 0, NULL, "      1 a\n      1 \n"},
		{"Thread 1\n", 0, NULL, "      1 \n"},
		{"Thread 1\n#0\n#1\nThread 2\n#0 @@x\n", 0, NULL, "      1 \n"},
		/* frames without a name */
		{"Thread 1\n#0\n#1 a\n#2\n#3 b\n#4\n", 0, NULL, "      1 a,,b,\n"},
		/* the same text is the same line, wherever its frames end */
		{"Thread 1\n#0 a,b\nThread 2\n#0 a\n#1 b\n", 0, NULL, "      2 a,b\n"},
		/* frames before the first header are dropped, but their file carries over */
		{"#0 0x1 in a () from /x/y.so\nThread 1\n#0 0x1 in void b\n", 0, NULL,
		 "      1 b(y.so)\n"},
		{"#0 a\n#1 b\n", 0, NULL, "      1 a,b\n"},
		{"#0 a\n#1 b\n", 1, NULL, "      1 a\n"},
		{"#0\n", 0, NULL, "      1 \n"},
		{"#0 a\n", 0, "1", ""},
		{"#0 a\nThread 1\n", 0, NULL, "      1 \n"},
		/* --tids */
		{"Thread 1 (LWP 11):\n#0 a\nThread 2 (LWP 12):\n#0 b\n", 0, "12", "      1 b\n"},
		{"Thread 1 (LWP 11):\n#0 a\nThread 2 (LWP 12):\n", 0, "12", "      1 \n"},
		{"Thread 1 (LWP 11):\n#0 a\nThread 2 (LWP 12):\n", 0, "11", "      1 a\n"},
		{"TID 1:\n#0 0x1 in a () from /x/y.so\nTID 2:\n#0 0x1 in void b\n", 0, "2",
		 "      1 b(y.so)\n"},
		{"TID 1:\n#0 x\n#1 0x1 in a () from /x/y.so\nTID 2:\n#0 0x1 in void b\n", 1, "2",
		 "      1 b\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t chunk = 0; chunk < 12; chunk++) {
			struct pipeline p = {.lines = cases[i].lines,
					     .tids = cases[i].tids,
					     .chunk = chunk,
					     .write = write_pmp__report};
			struct strbuf out = STRBUF_INIT;

			strbuf__append_str(&out, "");
			assert_int_equal(
				pipeline_run(&p, cases[i].text, strlen(cases[i].text), &out), 0);
			assert_string_equal(out.data, cases[i].printed);
			strbuf__free(&out);
		}
	}
}

static void test_return_values(void **state)
{
	struct shortener *s = shortener__new(SHORTEN_GDB);
	struct filter *f = filter__new("7", NULL);
	struct aggregate *a = aggregate__new(s, f, 0);
	struct text frames[] = {{"#0 a", 4}};
	struct stack stack = {.header = {"TID 7:", 6}, .frames = frames, .n_frames = 1, .count = 1};
	struct report report;

	assert_int_equal(aggregate__report(a, &report), 0);
	assert_int_equal(report.n_lines, 0);
	assert_int_equal(aggregate__add(a, &stack), 1);
	stack.header.str = "TID 8:";
	assert_int_equal(aggregate__add(a, &stack), 0);
	stack.header.str = "TID 7:";
	stack.n_frames = 0;
	assert_int_equal(aggregate__add(a, &stack), 0);
	stack.last = true;
	assert_int_equal(aggregate__add(a, &stack), 1);
	assert_int_equal(aggregate__report(a, &report), 0);
	assert_int_equal(report.n_lines, 2);
	/* it goes on after a report */
	stack.n_frames = 1;
	assert_int_equal(aggregate__add(a, &stack), 1);
	assert_int_equal(aggregate__report(a, &report), 0);
	assert_int_equal(report.lines[0].count, 2);
	assert_string_equal(report.lines[0].frames, "a");
	aggregate__free(a);
	filter__free(f);
	shortener__free(s);
	aggregate__free(NULL);
}

/* A source that has counted, and names that are short already: A::operator()() stays. */
static void test_counted_and_shortened(void **state)
{
	struct shortener *s = shortener__new(SHORTEN_GDB);
	struct aggregate *a = aggregate__new(s, NULL, 0);
	struct text frames[] = {{"f<int>", 6}, {"g(a.cc:1)", 9}};
	struct stack stack = {.frames = frames, .n_frames = 2, .last = true, .shortened = true};
	struct report report;

	stack.count = 3;
	assert_int_equal(aggregate__add(a, &stack), 1);
	stack.count = 4;
	assert_int_equal(aggregate__add(a, &stack), 1);
	assert_int_equal(aggregate__report(a, &report), 0);
	assert_int_equal(report.n_lines, 1);
	assert_int_equal(report.lines[0].count, 7);
	assert_string_equal(report.lines[0].frames, "f<int>,g(a.cc:1)");
	stack.count = UINT64_MAX;
	assert_int_equal(aggregate__add(a, &stack), 1);
	assert_int_equal(aggregate__report(a, &report), 0);
	assert_true(report.lines[0].count == UINT64_MAX);
	aggregate__free(a);
	shortener__free(s);
}

static void test_offsets(void **state)
{
	struct shortener *s = shortener__new(SHORTEN_GDB);
	struct aggregate *a = aggregate__new(s, NULL, 0);
	struct text frames[] = {{"#0", 2}, {"#1 a,b", 6}, {"#2", 2}, {"#3 c\0d", 6}};
	struct stack stack = {.header = {"TID 7:", 6}, .frames = frames, .n_frames = 4, .count = 1};
	struct report report;

	assert_int_equal(aggregate__add(a, &stack), 1);
	assert_int_equal(aggregate__report(a, &report), 0);
	assert_int_equal(report.lines[0].n_frames, 3);
	assert_int_equal(report.lines[0].offsets[0], 0);
	assert_int_equal(report.lines[0].offsets[1], 4);
	assert_int_equal(report.lines[0].offsets[2], 5);
	assert_int_equal(report.lines[0].len, 8);
	assert_memory_equal(report.lines[0].frames, "a,b,,c\0d", 9);
	aggregate__free(a);
	shortener__free(s);
}

static void test_too_long(void **state)
{
	struct shortener *s = shortener__new(SHORTEN_GDB);
	struct aggregate *a = aggregate__new(s, NULL, 0);
	struct strbuf line = STRBUF_INIT;
	struct text frames[40];
	struct stack stack = {.header = {"T", 1}, .frames = frames, .n_frames = 40, .count = 1};
	size_t mib8 = (size_t)8 << 20;

	strbuf__append_str(&line, "#0 ");
	assert_int_equal(strbuf__reserve(&line, mib8), 0);
	memset(line.data + line.len, 'a', mib8);
	line.len += mib8;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = (struct text){line.data, line.len};
	assert_int_equal(aggregate__add(a, &stack), -E2BIG);
	stack.n_frames = 3;
	assert_int_equal(aggregate__add(a, &stack), 1);
	strbuf__free(&line);
	aggregate__free(a);
	shortener__free(s);
}

static void test_many_lines(void **state)
{
	struct pipeline p = {.write = write_pmp__report};
	struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;

	for (int i = 0; i < 30000; i++)
		strbuf__printf(&text, "Thread %d\n#0 f%d\n", i, i % 20000);
	assert_int_equal(pipeline_run(&p, text.data, text.len, &out), 0);
	assert_memory_equal(out.data, "      2 f9999\n      2 f9998\n", 28);
	assert_memory_equal(out.data + out.len - 30, "      1 f10001\n      1 f10000\n", 30);
	strbuf__free(&text);
	strbuf__free(&out);
}

static void test_collation(void **state)
{
	static const char text[] = "TID 1\n#0 a\nTID 2\n#0 B\nTID 3\n#0 _c\nTID 4\n#0 D\n";
	struct pipeline p = {.write = write_pmp__report};
	struct strbuf out = STRBUF_INIT;

	assert_int_equal(pipeline_run(&p, text, strlen(text), &out), 0);
	assert_string_equal(out.data, "      1 a\n      1 _c\n      1 D\n      1 B\n");
	strbuf__free(&out);
	if (!setlocale(LC_ALL, "en_US.UTF-8")) {
		print_message("# SKIP collation: no locale en_US.UTF-8\n");
		skip();
	}
	assert_int_equal(pipeline_run(&p, text, strlen(text), &out), 0);
	setlocale(LC_ALL, "C");
	assert_string_equal(out.data, "      1 D\n      1 _c\n      1 B\n      1 a\n");
	strbuf__free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_return_values),
		cmocka_unit_test(test_counted_and_shortened),
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_collation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
