// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/writer.h"

#include <locale.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

extern char **environ;

static void test_pmp_report(void **state)
{
	const struct report_line lines[] = {
		{.count = 12345678, .frames = "a,b", .len = 3},
		{.count = 41, .frames = "c\0d", .len = 3},
		{.count = 1, .frames = "", .len = 0},
		{.count = UINT64_MAX, .frames = "z", .len = 1},
	};
	const struct report report = {.lines = lines, .n_lines = ARRAY_SIZE(lines)};
	static const char want[] = "12345678 a,b\n     41 c\0d\n      1 \n"
				   "18446744073709551615 z\n";
	struct strbuf out = STRBUF_INIT;

	assert_int_equal(write_pmp__report(&out, &(struct report){.n_lines = 0}), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(write_pmp__report(&out, &report), 0);
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(out.data, want, out.len);
	strbuf__free(&out);
}

static void test_folded_report(void **state)
{
	const struct report_line lines[] = {
		{.count = 3,
		 .frames = "a,b",
		 .len = 3,
		 .n_frames = 2,
		 .offsets = (uint32_t[]){0, 2}},
		{.count = 2, .frames = "a,b", .len = 3, .n_frames = 1, .offsets = (uint32_t[]){0}},
		{.count = 2,
		 .frames = "a;b\nc,d e",
		 .len = 9,
		 .n_frames = 2,
		 .offsets = (uint32_t[]){0, 6}},
		{.count = 1,
		 .frames = "a,,b,",
		 .len = 5,
		 .n_frames = 4,
		 .offsets = (uint32_t[]){0, 2, 3, 5}},
		{.count = 1, .frames = "", .len = 0, .n_frames = 0},
	};
	const struct report report = {.lines = lines, .n_lines = ARRAY_SIZE(lines)};
	struct strbuf out = STRBUF_INIT;

	assert_int_equal(write_folded__report(&out, &report), 0);
	assert_string_equal(out.data, "b;a 3\na,b 2\nd e;a:b:c 2\n?\?;b;?\?;a 1\n?\? 1\n");
	strbuf__free(&out);
}

static void test_gdb_stack(void **state)
{
	const struct text frames[] = {{"#0  0x1 in a ()", 15}, {"#1  0x2 in b\nThread 7", 21}};
	struct stack stack = {.header = {"Thread 1 (LWP 7):", 17}, .frames = frames, .n_frames = 2, .count = 1};
	struct strbuf out = STRBUF_INIT;

	assert_int_equal(write_gdb__stack(&out, &stack), 0);
	stack.header.len = 0;
	stack.n_frames = 0;
	assert_int_equal(write_gdb__stack(&out, &stack), 0);
	assert_string_equal(out.data, "\nThread 1 (LWP 7):\n#0  0x1 in a ()\n"
				      "#1  0x2 in b?Thread 7\n\n");
	strbuf__free(&out);
}

/* What `date` with these arguments prints, in the environment as it is; false without date. */
static bool run_date(char *const *argv, struct strbuf *out)
{
	posix_spawn_file_actions_t actions;
	char buf[512];
	ssize_t n;
	int fds[2], status, err;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	err = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	while (!err && (n = read(fds[0], buf, sizeof(buf))) > 0)
		strbuf__append(out, buf, (size_t)n);
	close(fds[0]);
	return !err && waitpid(pid, &status, 0) == pid && status == 0;
}

static const char *const zones[] = {"UTC",	   "America/New_York", "Asia/Kolkata",
				    "XXX-3:30YYY", "no/such/zone",     ""};
static const time_t times[] = {0, 1, 951782399, 1700000000, 1720000000, 4102444800, -1};

static void check_dates(const char *locale)
{
	assert_int_equal(setenv("LC_ALL", locale, 1), 0);
	if (!setlocale(LC_ALL, "")) {
		print_message("# SKIP date: no locale %s\n", locale);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(zones) * ARRAY_SIZE(times); i++) {
		time_t seconds = times[i % ARRAY_SIZE(times)];
		/* date(1) takes -1.5 for 1.5 seconds before the epoch */
		struct timespec now = {seconds, seconds < 0 ? 0 : 12345};
		struct strbuf want = STRBUF_INIT, got = STRBUF_INIT;
		char when[32];

		setenv("TZ", zones[i / ARRAY_SIZE(times)], 1);
		snprintf(when, sizeof(when), "@%jd.%09ld", (intmax_t)now.tv_sec, now.tv_nsec);
		assert_true(run_date((char *[]){"date", "-d", when, NULL}, &want));
		assert_true(
			run_date((char *[]){"date", "-d", when, "+TS %N.%s %F %T", NULL}, &want));
		assert_int_equal(write_pmp__date(&got, now.tv_sec), 0);
		assert_int_equal(write_gdb__timestamp(&got, &now), 0);
		assert_string_equal(got.data, want.data);
		strbuf__free(&want);
		strbuf__free(&got);
	}
	unsetenv("TZ");
	setlocale(LC_ALL, "C");
}

static void test_dates_are_those_of_date(void **state)
{
	struct strbuf out = STRBUF_INIT;

	if (!run_date((char *[]){"date", "-d", "@0", NULL}, &out)) {
		print_message("# SKIP: no GNU date\n");
		skip();
	}
	strbuf__free(&out);
	check_dates("C");
	check_dates("C.UTF-8");
	check_dates("en_US.UTF-8");
	check_dates("de_DE.UTF-8");
	check_dates("ja_JP.UTF-8");
}

static void test_date_without_a_year(void **state)
{
	struct strbuf out = STRBUF_INIT;

	/* no calendar has this year: still one line */
	assert_int_equal(write_pmp__date(&out, INT64_MAX), 0);
	assert_string_equal(out.data, "9223372036854775807\n");
	strbuf__reset(&out);
	assert_int_equal(write_gdb__timestamp(&out, &(struct timespec){INT64_MAX, 1}), 0);
	assert_string_equal(out.data, "TS 000000001.9223372036854775807 \n");
	strbuf__free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pmp_report),
		cmocka_unit_test(test_folded_report),
		cmocka_unit_test(test_gdb_stack),
		cmocka_unit_test(test_dates_are_those_of_date),
		cmocka_unit_test(test_date_without_a_year),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
