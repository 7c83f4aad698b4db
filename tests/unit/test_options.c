// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Parse a line split at blanks; `words` is cut in place. */
static int parse(const char *line, struct plan *plan, struct error *e)
{
	static char copy[512];
	char *argv[32], *save = NULL;
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word && argc < 32;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return options__parse(argc, argv, NULL, plan, e);
}

static void test_defaults(void **state)
{
	struct plan plan;

	assert_int_equal(parse("", &plan, NULL), 0);
	assert_int_equal(plan.action, PLAN_CAPTURE);
	assert_int_equal(plan.pid, 0);
	assert_null(plan.binary);
	assert_null(plan.comm);
	assert_int_equal(plan.iterations, 1);
	assert_true(plan.interval == 0);
	assert_int_equal(plan.lines, 0);
	assert_int_equal(plan.format, PLAN_FORMAT_PMP);
	assert_false(plan.kernel);
	assert_int_equal(plan.n_files, 0);
	options__free(&plan);
}

static void test_values(void **state)
{
	static const char *const lines[] = {
		"-p 12 -i 3 -s 0.5 -l 4 -t a,b -k f -o g -v --kernel --format folded",
		"-p=12 -i=3 -s=0.5 -l=4 -t=a,b -k=f -o=g -v --kernel --format=folded",
		"--pid 12 --iterations 3 --interval .5 --lines 4 --tids a,b --save-samples f "
		"--output g "
		"--verbose --kernel --format folded",
		"--pid=12 --iterations=3 --interval=5e-1 --lines=4 --tids=a,b --save-samples=f "
		"--output=g --verbose --kernel --format=folded --mode=threads",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct plan plan;

		assert_int_equal(parse(lines[i], &plan, NULL), 0);
		assert_int_equal(plan.pid, 12);
		assert_int_equal(plan.iterations, 3);
		assert_true(plan.interval == 0.5);
		assert_int_equal(plan.lines, 4);
		assert_string_equal(plan.tids, "a,b");
		assert_string_equal(plan.save_samples, "f");
		assert_string_equal(plan.output, "g");
		assert_int_equal(plan.format, PLAN_FORMAT_FOLDED);
		assert_true(plan.verbose && plan.kernel);
		options__free(&plan);
	}
}

static void test_files(void **state)
{
	struct plan plan;

	assert_int_equal(parse("a -l 3 - -- -b --x", &plan, NULL), 0);
	assert_int_equal(plan.n_files, 4);
	assert_string_equal(plan.files[0], "a");
	assert_string_equal(plan.files[1], "-");
	assert_string_equal(plan.files[2], "-b");
	assert_string_equal(plan.files[3], "--x");
	assert_int_equal(plan.lines, 3);
	options__free(&plan);
}

/* The files' options come first, so that the command line wins. */
static void test_config(void **state)
{
	static const char own[] = "lines=3\nb postgres\npid=\ntids\n--\ntrace\n", all[] = "host=x\nlines 9\n";
	char *argv[] = {"-l", "5"};
	struct config *config = config__new();
	struct error e = ERROR_INIT;
	struct plan plan;

	assert_int_equal(config__parse(config, "all.conf", true, all, sizeof(all) - 1), 0);
	assert_int_equal(config__parse(config, "own.conf", false, own, sizeof(own) - 1), 0);
	assert_int_equal(options__parse(0, argv, config, &plan, &e), 0);
	assert_int_equal(plan.lines, 3);
	assert_string_equal(plan.binary, "postgres");
	assert_int_equal(plan.n_files, 0);
	assert_int_equal(plan.pid, 0);
	assert_null(plan.tids);
	options__free(&plan);
	assert_int_equal(options__parse(2, argv, config, &plan, &e), 0);
	assert_int_equal(plan.lines, 5);
	options__free(&plan);
	assert_int_equal(config__parse(config, "own.conf", false, all, sizeof(all) - 1), 0);
	assert_int_equal(options__parse(0, argv, config, &plan, &e), -EINVAL);
	assert_string_equal(e.text, "own.conf:1: there is no option 'host'");
	error__clear(&e);
	config__free(config);
}

static void test_tracers(void **state)
{
	struct plan plan;

	assert_int_equal(parse("", &plan, NULL), 0);
	assert_int_equal(plan.tracer, PLAN_TRACER_BPF);
	assert_int_equal(plan.dialect, PLAN_DIALECT_AUTO);
	options__free(&plan);
	assert_int_equal(parse("-d eu", &plan, NULL), 0);
	assert_int_equal(plan.tracer, PLAN_TRACER_EU);
	assert_int_equal(plan.dialect, PLAN_DIALECT_EU);
	options__free(&plan);
	assert_int_equal(parse("-d gdb --tracer bpf --timeout 2.5 --readnever", &plan, NULL), 0);
	assert_int_equal(plan.tracer, PLAN_TRACER_BPF);
	assert_int_equal(plan.dialect, PLAN_DIALECT_GDB);
	assert_true(plan.timeout == 2.5 && plan.readnever);
	options__free(&plan);
}

static void test_last_wins(void **state)
{
	struct plan plan;

	assert_int_equal(parse("-l 4 --lines 5", &plan, NULL), 0);
	assert_int_equal(plan.lines, 5);
	options__free(&plan);
}

static void test_errors(void **state)
{
	static const struct {
		const char *line;
		const char *option; /* must be named */
		const char *value;
	} cases[] = {
		{"-p 0", "--pid", "'0'"},
		{"-p -1", "--pid", "'-1'"},
		{"-p 12x", "--pid", "'12x'"},
		{"-p 99999999999999999999", "--pid", "'99999999999999999999'"},
		{"-p", "--pid", "value"},
		{"--pid=", "--pid", "''"},
		{"-i 0", "--iterations", "'0'"},
		{"-s -0.1", "--interval", "'-0.1'"},
		{"-s nan", "--interval", "'nan'"},
		{"-s inf", "--interval", "'inf'"},
		{"-s 1s", "--interval", "'1s'"},
		{"-l -1", "--lines", "'-1'"},
		{"-l 1.5", "--lines", "'1.5'"},
		{"-l4", "-l4", "no option"},
		{"-b /usr/sbin/mysqld", "--binary", "'/usr/sbin/mysqld'"},
		{"--comm=", "--comm", "''"},
		{"--format svg", "--format", "'svg'"},
		{"--mode=cpu", "--mode", "'cpu'"},
		{"--max-frames 0", "--max-frames", "'0'"},
		{"--max-wait 0", "--max-wait", "'0'"},
		{"--kernel=yes", "--kernel", "no value"},
		{"--pids 3", "--pids", "no option"},
		{"--comm a_name_of_20_bytes_", "--comm", "'a_name_of_20_bytes_'"},
		{"--comm a -p 1", "--comm", "--pid"},
		{"--comm a -b b", "--comm", "--binary"},
		{"-o a -k a", "--output", "'a'"},
		{"--tracer=lldb", "--tracer", "'lldb'"},
		{"-d lldb", "--dumper", "'lldb'"},
		{"--timeout -1", "--timeout", "'-1'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error e = ERROR_INIT;
		struct plan plan = {.lines = 77};

		assert_int_equal(parse(cases[i].line, &plan, &e), -EINVAL);
		assert_int_equal(plan.lines, 77);
		assert_non_null(e.text);
		assert_non_null(strstr(e.text, cases[i].option));
		assert_non_null(strstr(e.text, cases[i].value));
		error__clear(&e);
	}
}

/* Every line of the help fits a terminal, and every option stands in it. */
static void test_help(void **state)
{
	struct strbuf help = STRBUF_INIT;
	static const char *const names[] = {
		"--pid",	  "--binary", "--comm",	  "--iterations", "--interval",
		"--kernel",	  "--lines",  "--tids",	  "--format",	  "--output",
		"--save-samples", "--check",  "--version"};

	assert_int_equal(options__help(&help), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(strstr(help.data, names[i]));
	for (const char *line = help.data; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 100);
	strbuf__free(&help);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),  cmocka_unit_test(test_values),
		cmocka_unit_test(test_last_wins), cmocka_unit_test(test_files),
		cmocka_unit_test(test_config),	  cmocka_unit_test(test_tracers),
		cmocka_unit_test(test_errors),	  cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
