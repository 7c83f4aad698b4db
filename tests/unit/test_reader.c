// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The pairs under golden/read: FORMAT-CASE.in gives FORMAT-CASE.out, whatever pieces it comes in.
 * FORMAT is what has to be recognised, except for `bcc-folded...`, which has to be said.
 */
#include "fold/aggregate.h"
#include "read/reader.h"
#include "write/writer.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static void slurp(const char *path, struct strbuf *out)
{
	FILE *f = fopen(path, "r");
	char buffer[4096];
	size_t n;

	if (!f)
		fail_msg("cannot open %s", path);
	while ((n = fread(buffer, 1, sizeof(buffer), f)))
		strbuf__append(out, buffer, n);
	strbuf__append_str(out, "");
	fclose(f);
}

struct run {
	struct reader *reader;
	struct aggregate *aggregates[2]; /* gdb's dialect, and eu's */
};

static int add(const struct stack *stack, void *arg)
{
	struct run *run = arg;
	int ret = aggregate__add(run->aggregates[reader__format(run->reader) == INPUT_EU], stack);

	return ret < 0 ? ret : 0;
}

/* What is printed for FILES, each fed in pieces of `chunk` bytes. Returns the format. */
static enum input_format print(enum input_format format, const char *const *files, size_t n,
			       size_t chunk, const char *tids, struct strbuf *out)
{
	struct shortener *gdb = shortener__new(SHORTEN_GDB), *eu = shortener__new(SHORTEN_EU);
	struct filter *filter = filter__new(tids, NULL);
	struct run run;
	struct report report;

	run.aggregates[0] = aggregate__new(gdb, filter, 0);
	run.aggregates[1] = aggregate__new(eu, filter, 0);
	run.reader = reader__new(format, add, &run);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(files[i]);

		for (size_t at = 0; at < len; at += chunk)
			assert_int_equal(reader__feed(run.reader, files[i] + at,
						      len - at < chunk ? len - at : chunk),
					 0);
		if (i + 1 < n)
			assert_int_equal(reader__next_file(run.reader), 0);
	}
	assert_int_equal(reader__finish(run.reader), 0);
	format = reader__format(run.reader);
	strbuf__append_str(out, "");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(aggregate__report(run.aggregates[i], &report), 0);
		assert_int_equal(write_pmp__report(out, &report), 0);
		aggregate__free(run.aggregates[i]);
	}
	reader__free(run.reader);
	filter__free(filter);
	shortener__free(gdb);
	shortener__free(eu);
	return format;
}

static void check_pair(const char *in_path)
{
	static const size_t chunks[] = {SIZE_MAX / 2, 1, 7, 4096};
	struct strbuf in = STRBUF_INIT, want = STRBUF_INIT;
	const char *base = strrchr(in_path, '/') + 1, *files[1];
	enum input_format expected, got;
	char path[256], name[32];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "-"), base);
	assert_int_equal(input_format__parse(name, &expected), 0);
	snprintf(path, sizeof(path), "%.*s.out", (int)strlen(in_path) - 3, in_path);
	slurp(in_path, &in);
	slurp(path, &want);
	files[0] = in.data;
	for (size_t i = 0; i < ARRAY_SIZE(chunks); i++) {
		struct strbuf out = STRBUF_INIT;
		bool said = strncmp(base, "bcc-folded", 10) == 0;

		got = print(said ? expected : INPUT_AUTO, files, 1, chunks[i], NULL, &out);
		if (got != expected || strcmp(out.data, want.data) != 0)
			fail_msg("%s is read as %s and gives\n%s", in_path, input_format__name(got),
				 out.data);
		strbuf__free(&out);
	}
	strbuf__free(&in);
	strbuf__free(&want);
}

static void test_goldens(void **state)
{
	glob_t found;

	assert_int_equal(glob("golden/read/*.in", 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 20);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_pair(found.gl_pathv[i]);
	globfree(&found);
}

static void check(const char *const *files, size_t n, const char *tids, enum input_format format,
		  const char *want)
{
	for (size_t chunk = 1; chunk < 20; chunk++) {
		struct strbuf out = STRBUF_INIT;

		assert_int_equal(print(INPUT_AUTO, files, n, chunk, tids, &out), format);
		assert_string_equal(out.data, want);
		strbuf__free(&out);
	}
}

/* One line of input, or a few, and what is printed for it. */
static void test_forms(void **state)
{
	static const struct {
		enum input_format format;
		const char *text, *want;
	} cases[] = {
		{INPUT_AUTO, "", ""},
		{INPUT_GDB, "\n", ""},
		{INPUT_GDB, "nothing of note\n", ""},
		{INPUT_GDB, "Thread 1\n#0  f ()\n", "      1 f\n"},
		{INPUT_GDB, "#0  f ()\n#1  0x12 in g ()", "      1 f,g\n"},
		{INPUT_GDB, "TID 7:\n#0 a\n", "      1 a\n"},
		{INPUT_EU, "TID 7:\n#0  0x00000000000000a1 f\r\n", "      1 f\n"},
		{INPUT_EU, "TID 7:\n#0  0x00000000000000a1\n",
		 "      1 "
		 "??"
		 "\n"},
		{INPUT_EU, "TID 7:\n#0  0x00000000000000a1 f - /a/b.so\n    x.c:3:1\n",
		 "      1 f\n"},
		{INPUT_GDB, "TID 7:\n#0  0x00000000000000a1 f - /a/b.so   x.c:3:1\n",
		 "      1 -\n"},
		{INPUT_BPFTRACE, "# a\n\n\t401000 f(int, void*)+12 (/a/b)\r\n\n\tab01 g+1 (/c)",
		 "      1 f,g\n"},
		{INPUT_BPFTRACE, "#0 a\n\t4010 is_const+12 (/a/b)\n#1 b\n\t4010 h+1 (/c)\n#2\n",
		 "      1 is_const\n      1 h\n"},
		{INPUT_BPFTRACE, "\t4010 f+12 (/a)\n\n\t4010 f+4 (/a)\n", "      2 f\n"},
		{INPUT_BPFTRACE, "# a\n\t4010 0x4010 ([unknown])\n\t4011 [unknown] (/l/b.so.1)\n",
		 "      1 "
		 "??"
		 ",b::"
		 "??"
		 "\n"},
		{INPUT_BPFTRACE, "@[\n    f+1\n    g+2\n]: 5\n@[\n    f+7\n    g+2\n, x]: 2\n",
		 "      7 f,g\n"},
		{INPUT_BPFTRACE,
		 "@[a, \n    f+1\n, 4]: count 3, average 2, total 6\n@[\n    cut+1\n",
		 "      3 f\n"},
		{INPUT_BPFTRACE, "@[\n    f+1\n]: -4\n@[\n    g+1\n]: \n[1]  3 |@@@|\n", ""},
		{INPUT_BPFTRACE, "@s[, ]: 4\n@[x]: 3\n", ""},
		{INPUT_BCC, "    f\n    --\n    g\n    -                a b (7)\n        12\n\n",
		 "     12 f,g\n"},
		{INPUT_BCC,
		 "Sampling at 49 Hertz.\n    [Missed User Stack]\n"
		 "    -                a (7)\n        2\n    cut\n",
		 "      2 "
		 "??"
		 "\n"},
		{INPUT_PERF,
		 "a b 12/13 [001] 1.000001: 250 cycles:P: \n\t  40 f(int)+0x3 (/a/b)\n\t"
		 "  41 [unknown] ([unknown])\n\n",
		 "      1 f,"
		 "??"
		 "\n"},
		{INPUT_PERF,
		 "  a 12 1.000001:  250 cpu-clock:  4010ab f+0x3 (/a b (deleted))\n"
		 "  a 12 1.000002:  250 cpu-clock:  4010ac f+0x4 (/a b (deleted))\n",
		 "      2 f\n"},
		{INPUT_FOLDED, "a;b;c 3\n", "      3 c,b,a\n"},
		{INPUT_FOLDED, "a 1\na;b(x, y)_[k] 3\nA<i>::b;operator new(int) 2\n",
		 "      3 b,a\n      2 operator,A::b\n      1 a\n"},
		{INPUT_FOLDED,
		 "m;f(libc.so.6);g(x.c:12);libc::"
		 "??"
		 " 2\n",
		 "      2 libc::"
		 "??"
		 ",g(x.c:12),f(libc.so.6),m\n"},
		{INPUT_PMP, "Fri Nov 20 15:43:06 UTC 2026\n      4 a,b\n12345678 c\n      1 a,b\n",
		 "12345678 c\n      5 a,b\n"},
		{INPUT_PMP, "      4 a,,b\n      1 \n", "      4 a,,b\n      1 \n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check(&cases[i].text, 1, NULL, cases[i].format, cases[i].want);
}

static void test_files(void **state)
{
	static const char *const gdb[] = {"Thread 1\n#0  f ()", "#1  g ()\nThread 2\n#0  f ()", ""};
	static const char *const mixed[] = {"Thread 1\n#0  f ()", "a;f 3\nb;f 2", "      1 f",
					    "Thread 1\n#0  f ()\n"};
	static const char *const perf[] = {"a 1 2.000001: 5 c:\n\t40 f",
					   "a 1 2.000001: 5 c:\n\t40 f"};

	check(gdb, ARRAY_SIZE(gdb), NULL, INPUT_GDB, "      1 f,g\n      1 f\n");
	check(mixed, ARRAY_SIZE(mixed), NULL, INPUT_GDB, "      3 f,a\n      3 f\n      2 f,b\n");
	check(perf, ARRAY_SIZE(perf), NULL, INPUT_PERF, "      2 f\n");
}

static void test_threads(void **state)
{
	static const struct {
		enum input_format format;
		const char *text;
	} cases[] = {
		{INPUT_PERF, "my comm 12/77 [001] 1.000001: 2 c:\n\t40 f\n\n"
			     "other 12/78 [001] 1.000001: 2 c:\n\t40 g\n"},
		{INPUT_BCC, "    f\n    -                my comm (77)\n        1\n"
			    "    g\n    -                other (78)\n        1\n"},
		{INPUT_BPFTRACE, "# my comm 77\n\t4010 f+1 (/x)\n# other 78\n\t4010 g+1 (/x)\n"},
		{INPUT_BPFTRACE, "@[\n    f+1\n, my comm, 77]: 1\n@[\n    g+1\n, other, 78]: 1\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		check(&cases[i].text, 1, "77", cases[i].format, "      1 f\n");
		check(&cases[i].text, 1, "my comm", cases[i].format, "      1 f\n");
		check(&cases[i].text, 1, "^79", cases[i].format, "");
	}
}

static int note_frames(const struct stack *stack, void *arg)
{
	struct strbuf *out = arg;

	assert_true(stack->shortened);
	for (size_t i = 0; i < stack->n_frames; i++) {
		strbuf__append_char(out, '|');
		strbuf__append(out, stack->frames[i].str, stack->frames[i].len);
	}
	return 0;
}

static void test_pmp_frames(void **state)
{
	static const char *const cases[][2] = {
		{"a,b", "|a|b"},
		{"f<a,b>,g(c,d),h", "|f<a,b>|g(c,d)|h"},
		{"operator<,a,operator>,b", "|operator<|a|operator>|b"},
		{"x::operator->,a<b,c>,d", "|x::operator->|a<b,c>|d"},
		{"<signal,a,f<b,c>", "|<signal|a|f<b,c>"},
		{"a(x.so,b,c)", "|a(x.so,b,c)"},
		{"a<b,c", "|a<b|c"},
		{"operator()(x.so),a,b)", "|operator()(x.so)|a|b)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf out = STRBUF_INIT;
		struct reader *r = reader__new(INPUT_PMP, note_frames, &out);

		assert_int_equal(reader__feed(r, "      1 ", 8), 0);
		assert_int_equal(reader__feed(r, cases[i][0], strlen(cases[i][0])), 0);
		assert_int_equal(reader__finish(r), 0);
		reader__free(r);
		assert_string_equal(out.data, cases[i][1]);
		strbuf__free(&out);
	}
}

static int ignore(const struct stack *stack, void *arg)
{
	*(size_t *)arg += stack->n_frames;
	return 0;
}

/* NULs, invalid UTF-8, and lines of megabytes, in every format; too much is an error, no crash. */
static void test_hostile(void **state)
{
	static const char *const starts[] = {"\xff;", "\t4010 ", "@[", "# ", "      1 ", "    "};
	static char block[1 << 16];
	size_t n = 0;

	for (int format = INPUT_AUTO; format <= INPUT_PMP; format++) {
		for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
			struct reader *r = reader__new((enum input_format)format, ignore, &n);

			memset(block, "<(,;\0\xfe"[i], sizeof(block));
			assert_int_equal(reader__feed(r, starts[i], strlen(starts[i])), 0);
			for (int j = 0; j < 64; j++)
				assert_int_equal(reader__feed(r, block, sizeof(block)), 0);
			assert_int_equal(reader__feed(r, " 3\n", 3), 0);
			assert_int_equal(reader__finish(r), 0);
			reader__free(r);
		}
	}
}

static void test_limits(void **state)
{
	static char block[1 << 20];
	size_t n = 0;
	struct reader *r = reader__new(INPUT_PERF, ignore, &n);
	int err = 0;

	memset(block, 'x', sizeof(block));
	for (int i = 0; !err && i < 18; i++)
		err = reader__feed(r, block, sizeof(block));
	assert_int_equal(err, -E2BIG);
	assert_int_equal(reader__next_file(r), -E2BIG);
	assert_int_equal(reader__finish(r), -E2BIG);
	reader__free(r);
	reader__free(NULL);
}

static void test_names(void **state)
{
	enum input_format format = INPUT_PMP;

	assert_int_equal(input_format__parse("gdbx", &format), -EINVAL);
	assert_int_equal(format, INPUT_PMP);
	assert_int_equal(input_format__parse("pstack", &format), 0);
	assert_int_equal(format, INPUT_GDB);
	assert_string_equal(input_format__name(INPUT_PERF), "perf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goldens),	   cmocka_unit_test(test_forms),
		cmocka_unit_test(test_files),	   cmocka_unit_test(test_threads),
		cmocka_unit_test(test_pmp_frames), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_limits),	   cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
