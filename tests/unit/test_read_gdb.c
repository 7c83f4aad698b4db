// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/strbuf.h"
#include "read/gdb.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A stack as [header|frame|frame], `!` before the last one. */
static int note(const struct stack *stack, void *arg)
{
	struct strbuf *out = arg;

	strbuf__append_str(out, stack->last ? "![" : "[");
	strbuf__append(out, stack->header.str, stack->header.len);
	for (size_t i = 0; i < stack->n_frames; i++) {
		strbuf__append_char(out, '|');
		strbuf__append(out, stack->frames[i].str, stack->frames[i].len);
	}
	strbuf__append_char(out, ']');
	return 0;
}

static void read_in_chunks(const char *text, size_t len, size_t chunk, struct strbuf *out)
{
	struct gdb_reader *r = gdb_reader__new(note, out);

	assert_non_null(r);
	for (size_t i = 0; i < len; i += chunk)
		assert_int_equal(gdb_reader__feed(r, text + i, len - i < chunk ? len - i : chunk),
				 0);
	assert_int_equal(gdb_reader__finish(r), 0);
	gdb_reader__free(r);
	strbuf__append_str(out, "");
}

static void test_stacks(void **state)
{
	static const struct {
		const char *text;
		const char *stacks;
	} cases[] = {
		{"", ""},
		{"\n", ""},
		{"no stack here\n", ""},
		{"Thread 1\n#0 a\n#1 b\n", "![Thread 1|#0 a|#1 b]"},
		{"Thread 1\n#0 a", "![Thread 1|#0 a]"},
		{"Thread 1\n#0 a\n\nThread 2\n#0 b\n", "[Thread 1|#0 a]![Thread 2|#0 b]"},
		{"Thread 1\nThread 2", "[Thread 1]![Thread 2]"},
		{"TID 7:\n#0 a\nTIDY\n#", "[TID 7:|#0 a]![TIDY|#]"},
		{"Threads: 2\nThreadPool\n", "[Threads: 2]![ThreadPool]"},
		{"Thread", "![Thread]"},
		{"Threa", ""},
		{"TI\nD", ""},
		{"Threat\n#0 a\nTIE\nThread\n", "[|#0 a]![Thread]"},
		{"thread 1\n Thread 1\n #0 x\n[New Thread 1]\nTS 1.2 x\nID 4\n", ""},
		{"#0 a\n#1 b\n", "![|#0 a|#1 b]"},
		{"#0 a\nThread 1\n#0 b\n", "[|#0 a]![Thread 1|#0 b]"},
		{"Thread 1\r\n#0 a\r\n", "![Thread 1\r|#0 a\r]"},
		{"Thread 1\n#0 a\nwarning: x\n#1 b\n#\n", "![Thread 1|#0 a|#1 b|#]"},
		{"Thread 1\n#0 a\n\nTS 5.6 d\n\nThread 1\n#0 a\n\nTS 5.6 d\n",
		 "[Thread 1|#0 a]![Thread 1|#0 a]"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t len = strlen(cases[i].text);

		for (size_t chunk = 1; chunk <= len + 1; chunk++) {
			struct strbuf out = STRBUF_INIT;

			read_in_chunks(cases[i].text, len, chunk, &out);
			assert_string_equal(out.data, cases[i].stacks);
			strbuf__free(&out);
		}
	}
}

static void test_nul(void **state)
{
	static const char text[] = "\0Thread 0\nThread\0 1\n#\0 a\n";
	struct strbuf out = STRBUF_INIT;

	read_in_chunks(text, sizeof(text) - 1, 3, &out);
	assert_int_equal(out.len, strlen("![Thread_ 1|#_ a]"));
	assert_memory_equal(out.data, "![Thread\0 1|#\0 a]", out.len);
	strbuf__free(&out);
}

static void feed_repeated(struct gdb_reader *r, const char *piece, size_t len, int want)
{
	static char block[1 << 16];
	int err = 0;

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = piece[i % strlen(piece)];
	for (size_t done = 0; !err && done < len; done += sizeof(block))
		err = gdb_reader__feed(r, block, sizeof(block));
	assert_int_equal(err, want);
}

static int measure(const struct stack *stack, void *arg)
{
	size_t *sizes = arg;

	sizes[0] = stack->header.len;
	sizes[1] = stack->n_frames;
	sizes[2] = stack->n_frames ? stack->frames[stack->n_frames - 1].len : 0;
	return 0;
}

static void test_long_lines(void **state)
{
	size_t sizes[3] = {0}, megabytes = (size_t)12 << 20;
	struct gdb_reader *r = gdb_reader__new(measure, sizes);

	feed_repeated(r, "junk", (size_t)80 << 20, 0);
	assert_int_equal(gdb_reader__feed(r, "\nThread ", 8), 0);
	feed_repeated(r, "h", megabytes, 0);
	assert_int_equal(gdb_reader__feed(r, "\n#0\n#1 ", 7), 0);
	feed_repeated(r, "<", megabytes, 0);
	assert_int_equal(gdb_reader__finish(r), 0);
	assert_int_equal(sizes[0], megabytes + 7);
	assert_int_equal(sizes[1], 2);
	assert_int_equal(sizes[2], megabytes + 3);
	gdb_reader__free(r);
}

static void test_limits(void **state)
{
	static const char *const pieces[] = {"a", "\n#",
					     "\n# aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		size_t sizes[3];
		struct gdb_reader *r = gdb_reader__new(measure, sizes);

		assert_int_equal(gdb_reader__feed(r, "Thread 1\n#", 10), 0);
		feed_repeated(r, pieces[i], GDB_READER_STACK_MAX + ((size_t)1 << 20), -E2BIG);
		assert_int_equal(gdb_reader__feed(r, "\n", 1), -E2BIG);
		assert_int_equal(gdb_reader__finish(r), -E2BIG);
		gdb_reader__free(r);
	}
}

static int stop(const struct stack *stack, void *arg)
{
	(*(int *)arg)++;
	return 42;
}

static void test_callback_ends_the_reading(void **state)
{
	int calls = 0;
	struct gdb_reader *r = gdb_reader__new(stop, &calls);

	assert_int_equal(gdb_reader__feed(r, "Thread 1\n#0 a\nThread 2\nThread 3\n", 33), 42);
	assert_int_equal(gdb_reader__feed(r, "Thread 4\n", 9), 42);
	assert_int_equal(gdb_reader__finish(r), 42);
	assert_int_equal(calls, 1);
	gdb_reader__free(r);
	gdb_reader__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_callback_ends_the_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
