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

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Parse a line split at blanks. */
static int parse_as(const char *line, const struct config *config, bool as_pt_pmp,
		    struct plan *plan, struct error *e)
{
	static char copy[512];
	char *argv[32], *save = NULL;
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word && argc < 32;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return options__parse(argc, argv, config, as_pt_pmp, plan, e);
}

static int parse(const char *line, struct plan *plan, struct error *e)
{
	return parse_as(line, NULL, false, plan, e);
}

static void test_defaults(void **state)
{
	struct plan plan;

	assert_int_equal(parse("", &plan, NULL), 0);
	assert_int_equal(plan.action, PLAN_CAPTURE);
	assert_int_equal(plan.n_pids, 0);
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
		assert_int_equal(plan.n_pids, 1);
		assert_int_equal(plan.pids[0], 12);
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
	static const char own[] = "lines=3\nb postgres\npid=\ntids\n--\ntrace\n",
			  all[] = "host=x\nlines 9\n";
	char *argv[] = {"-l", "5"};
	struct config *config = config__new();
	struct error e = ERROR_INIT;
	struct plan plan;

	assert_int_equal(config__parse(config, "all.conf", true, all, sizeof(all) - 1), 0);
	assert_int_equal(config__parse(config, "own.conf", false, own, sizeof(own) - 1), 0);
	assert_int_equal(options__parse(0, argv, config, false, &plan, &e), 0);
	assert_int_equal(plan.lines, 3);
	assert_string_equal(plan.binary, "postgres");
	assert_int_equal(plan.n_files, 0);
	assert_int_equal(plan.n_pids, 0);
	assert_null(plan.tids);
	options__free(&plan);
	assert_int_equal(options__parse(2, argv, config, false, &plan, &e), 0);
	assert_int_equal(plan.lines, 5);
	options__free(&plan);
	assert_int_equal(config__parse(config, "own.conf", false, all, sizeof(all) - 1), 0);
	assert_int_equal(options__parse(0, argv, config, false, &plan, &e), -EINVAL);
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

static void test_sampler_defaults(void **state)
{
	static const char *const lines[] = {"", "--mode=threads", "--mode=cpu", "--mode=offcpu"};
	static const enum plan_mode modes[] = {PLAN_MODE_THREADS, PLAN_MODE_THREADS, PLAN_MODE_CPU,
					       PLAN_MODE_OFFCPU};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct plan plan;

		assert_int_equal(parse(lines[i], &plan, NULL), 0);
		assert_int_equal(plan.mode, modes[i]);
		assert_int_equal(plan.kernel, modes[i] != PLAN_MODE_THREADS);
		assert_false(plan.all);
		assert_null(plan.event);
		assert_int_equal(plan.frequency, 99);
		assert_int_equal(plan.event_count, 0);
		assert_true(plan.duration == 10);
		assert_int_equal(plan.unwind, PLAN_UNWIND_EH_FRAME);
		assert_int_equal(plan.min_us, 0);
		assert_int_equal(plan.max_us, 0);
		assert_int_equal(plan.states,
				 PLAN_STATE_INTERRUPTIBLE | PLAN_STATE_UNINTERRUPTIBLE);
		assert_false(plan.annotate || plan.by_process || plan.percent);
		assert_false(plan.functions || plan.stacks);
		assert_int_equal(plan.top, 0);
		options__free(&plan);
	}
}

static void test_cpu(void **state)
{
	static const char *const lines[] = {
		"--mode=cpu -a -F 997 --event cycles --duration 2.5 --unwind fp --format samples "
		"--stacks --no-kernel",
		"--no-kernel --stacks --format=samples --unwind=fp --duration=2.5 --event=cycles "
		"--frequency=997 --all --mode cpu",
	};
	struct plan plan;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(parse(lines[i], &plan, NULL), 0);
		assert_int_equal(plan.mode, PLAN_MODE_CPU);
		assert_true(plan.all && plan.stacks && plan.target_given && !plan.kernel);
		assert_string_equal(plan.event, "cycles");
		assert_int_equal(plan.frequency, 997);
		assert_true(plan.duration == 2.5);
		assert_int_equal(plan.unwind, PLAN_UNWIND_FP);
		assert_int_equal(plan.format, PLAN_FORMAT_SAMPLES);
		options__free(&plan);
	}
	assert_int_equal(parse("--mode=cpu --count 1000000 --tracer=bpf -d bpf", &plan, NULL), 0);
	assert_int_equal(plan.event_count, 1000000);
	options__free(&plan);
}

static void test_offcpu(void **state)
{
	static const struct {
		const char *line;
		unsigned int states;
	} cases[] = {
		{"--state interruptible", 1},
		{"--state=uninterruptible", 2},
		{"--state=runnable", 4},
		{"--state=runnable,interruptible", 5},
		{"--state=all", 7},
		{"--state=runnable,all,runnable", 7},
		{"--state=all --state runnable", 4},
	};
	struct plan plan;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char line[128];

		snprintf(line, sizeof(line), "--mode=offcpu %s", cases[i].line);
		assert_int_equal(parse(line, &plan, NULL), 0);
		assert_int_equal(plan.mode, PLAN_MODE_OFFCPU);
		assert_int_equal(plan.states, cases[i].states);
		options__free(&plan);
	}
	assert_int_equal(
		parse("--mode=offcpu --min-us 10 --max-us=10 --unwind=eh_frame", &plan, NULL), 0);
	assert_int_equal(plan.min_us, 10);
	assert_int_equal(plan.max_us, 10);
	options__free(&plan);
	/* 0 is no limit */
	assert_int_equal(parse("--mode=offcpu --min-us 10 --max-us=0", &plan, NULL), 0);
	options__free(&plan);
}

static void test_pids(void **state)
{
	static const struct {
		const char *line;
		bool as_pt_pmp;
		size_t n;
		pid_t pids[4];
	} cases[] = {
		{"-p 7", false, 1, {7}},
		{"-p 7,3,7", false, 2, {7, 3}},
		{"-p 7 -p 3 --pid=7,4", false, 3, {7, 3, 4}},
		{"-p 2147483647", false, 1, {2147483647}},
		/* pt-pmp takes the last */
		{"-p 7 -p 3", true, 1, {3}},
		{"-p 7,3", true, 2, {7, 3}},
		{"-p 7 -p 3 --mode=offcpu", false, 2, {7, 3}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct plan plan;

		assert_int_equal(parse_as(cases[i].line, NULL, cases[i].as_pt_pmp, &plan, NULL), 0);
		assert_int_equal(plan.n_pids, cases[i].n);
		assert_memory_equal(plan.pids, cases[i].pids, cases[i].n * sizeof(pid_t));
		assert_true(plan.target_given);
		options__free(&plan);
	}
}

static void test_kernel(void **state)
{
	static const struct {
		const char *line;
		bool kernel;
	} cases[] = {
		{"--kernel", true},
		{"--no-kernel", false},
		{"--kernel --no-kernel", false},
		{"--no-kernel --kernel", true},
		{"--no-kernel --mode=cpu", false},
		{"--mode=offcpu --no-kernel --kernel", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct plan plan;

		assert_int_equal(parse(cases[i].line, &plan, NULL), 0);
		assert_int_equal(plan.kernel, cases[i].kernel);
		options__free(&plan);
	}
}

static void test_printing(void **state)
{
	struct plan plan;

	assert_int_equal(parse("--percent --top 5 --annotate --by-process --kernel", &plan, NULL),
			 0);
	assert_true(plan.percent && plan.annotate && plan.by_process && !plan.functions);
	assert_int_equal(plan.top, 5);
	options__free(&plan);
	assert_int_equal(parse("--functions --percent --top=5 --format=pmp file", &plan, NULL), 0);
	assert_true(plan.functions);
	options__free(&plan);
	assert_int_equal(parse("--format=folded --top 3", &plan, NULL), 0);
	options__free(&plan);
	assert_int_equal(
		parse("--mode=cpu -t a -l 3 -b b --max-frames 9 --max-wait 2 -o f -v", &plan, NULL),
		0);
	options__free(&plan);
}

/* A config file is for every day: what does not go with the command line is passed over. */
static void test_config_and_modes(void **state)
{
	static const char own[] = "iterations=5\ninterval=2\npid=8\nfrequency=49\nmin-us=7\n"
				  "tracer=gdb\nsave-samples=f\nformat=folded\n";
	static const char two[] = "mode=cpu\nall\ncount=9\nformat=samples\nstacks\n";
	/* in the file for all tools these are another tool's */
	static const char all[] = "F=/etc/my.cnf\nall\ncount=x\nmode=x\nlines=3\n";
	static const struct {
		const char *config;
		const char *line;
		enum plan_mode mode;
		size_t n_pids;
		unsigned int iterations, frequency;
		uint64_t count, min_us;
	} cases[] = {
		{own, "", PLAN_MODE_THREADS, 1, 5, 99, 0, 0},
		{own, "-p 1 -p 2", PLAN_MODE_THREADS, 2, 5, 99, 0, 0},
		{own, "--mode=cpu", PLAN_MODE_CPU, 1, 1, 49, 0, 0},
		{own, "--mode=cpu --count 3 -a", PLAN_MODE_CPU, 0, 1, 99, 3, 0},
		{own, "--mode=offcpu --comm x", PLAN_MODE_OFFCPU, 0, 1, 99, 0, 7},
		{own, "--functions", PLAN_MODE_THREADS, 1, 5, 99, 0, 0},
		{own, "--percent --mode=cpu", PLAN_MODE_CPU, 1, 1, 49, 0, 0},
		{two, "", PLAN_MODE_CPU, 0, 1, 99, 9, 0},
		{two, "-F 3 -p 1", PLAN_MODE_CPU, 1, 1, 3, 0, 0},
		{two, "--mode=threads", PLAN_MODE_THREADS, 0, 1, 99, 0, 0},
		{two, "--format=folded", PLAN_MODE_CPU, 0, 1, 99, 9, 0},
		{two, "a_file", PLAN_MODE_THREADS, 0, 1, 99, 0, 0},
		{all, "", PLAN_MODE_THREADS, 0, 1, 99, 0, 0},
		{all, "--mode=cpu", PLAN_MODE_CPU, 0, 1, 99, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config *config = config__new();
		struct error e = ERROR_INIT;
		struct plan plan;

		assert_int_equal(config__parse(config, "f", cases[i].config == all, cases[i].config,
					       strlen(cases[i].config)),
				 0);
		if (parse_as(cases[i].line, config, false, &plan, &e))
			fail_msg("%s: %s", cases[i].line, e.text);
		assert_int_equal(plan.mode, cases[i].mode);
		assert_int_equal(plan.n_pids, cases[i].n_pids);
		assert_int_equal(plan.iterations, cases[i].iterations);
		assert_int_equal(plan.frequency, cases[i].frequency);
		assert_int_equal(plan.event_count, cases[i].count);
		assert_int_equal(plan.min_us, cases[i].min_us);
		assert_int_equal(plan.lines, cases[i].config == all ? 3 : 0);
		options__free(&plan);
		config__free(config);
	}
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
		{"--mode=gpu", "--mode", "'gpu'"},
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
		{"-p 1,x", "--pid", "'x'"},
		{"-p 1,", "--pid", "''"},
		{"-p ,1", "--pid", "''"},
		{"-p 1,0", "--pid", "'0'"},
		{"-p 1 -p y", "--pid", "'y'"},
		{"--mode=cpu -F 0", "--frequency", "'0'"},
		{"--mode=cpu -F 100001", "--frequency", "'100001'"},
		{"--mode=cpu -F 9.5", "--frequency", "'9.5'"},
		{"--mode=cpu --count 0", "--count", "'0'"},
		{"--mode=cpu --count 99999999999999999999", "--count", "'9999"},
		{"--mode=cpu --event=", "--event", "''"},
		{"--mode=cpu --duration 0", "--duration", "'0'"},
		{"--mode=cpu --duration -3", "--duration", "'-3'"},
		{"--mode=cpu --unwind=lbr", "--unwind", "'lbr'"},
		{"--mode=offcpu --state=", "--state", "''"},
		{"--mode=offcpu --state=all,", "--state", "'all,'"},
		{"--mode=offcpu --state=run", "--state", "'run'"},
		{"--mode=offcpu --min-us -1", "--min-us", "'-1'"},
		{"--mode=offcpu --max-us x", "--max-us", "'x'"},
		{"--top -1", "--top", "'-1'"},
		{"--top", "--top", "value"},
		{"--percent=5", "--percent", "no value"},
		/* contradictions: with the mode */
		{"-F 9", "--frequency goes with --mode=cpu", ""},
		{"--mode=offcpu -F 9", "--frequency goes with --mode=cpu", ""},
		{"-F 9 file", "--frequency goes with --mode=cpu", ""},
		{"--count 9", "--count goes with --mode=cpu", ""},
		{"--event e", "--event goes with --mode=cpu", ""},
		{"--duration 9", "--duration goes with --mode=cpu and --mode=offcpu", ""},
		{"--unwind fp", "--unwind goes with --mode=cpu and --mode=offcpu", ""},
		{"-a", "--all goes with --mode=cpu and --mode=offcpu", ""},
		{"--min-us 1", "--min-us goes with --mode=offcpu", ""},
		{"--mode=cpu --max-us 1", "--max-us goes with --mode=offcpu", ""},
		{"--mode=cpu --state all", "--state goes with --mode=offcpu", ""},
		{"--mode=cpu -i 2", "--iterations goes with --mode=threads", ""},
		{"--mode=offcpu -s 2", "--interval goes with --mode=threads", ""},
		{"-k f --mode=cpu", "--save-samples goes with --mode=threads", ""},
		{"--mode=cpu --tracer gdb", "--tracer goes with --mode=threads", ""},
		{"--mode=offcpu -d eu", "--dumper goes with --mode=threads", ""},
		{"--mode=cpu --timeout 3", "--timeout goes with --mode=threads", ""},
		{"--mode=cpu --readnever", "--readnever goes with --mode=threads", ""},
		{"--mode=cpu --plain-iterator", "--plain-iterator goes with", ""},
		{"--mode=cpu --input gdb", "--input goes with FILES", ""},
		{"--mode=cpu file", "--mode=cpu", "without FILES"},
		{"--mode=offcpu -- file", "--mode=offcpu", "without FILES"},
		/* with each other */
		{"--mode=cpu -a -p 1", "--all", "without --pid"},
		{"--mode=offcpu -a -b b", "--all", "without --binary"},
		{"--mode=offcpu --comm c -a", "--all", "without --comm"},
		{"--mode=cpu -F 1 --count 2", "--frequency and --count", "exclude"},
		{"--mode=offcpu --min-us 3 --max-us 2", "--min-us", "--max-us"},
		{"--format=samples", "--format=samples goes with --mode=cpu", ""},
		{"--mode=offcpu --format=samples", "--format=samples goes with --mode=cpu", ""},
		{"--mode=cpu --stacks", "--stacks goes with --format=samples", ""},
		{"--stacks", "--stacks goes with --mode=cpu", ""},
		{"--functions --format=folded", "--functions goes with --format=pmp", "folded"},
		{"--mode=cpu --functions --format=samples", "--functions goes", "samples"},
		{"--percent --format=folded", "--percent goes with --format=pmp", "folded"},
		{"--mode=cpu --percent --format=samples", "--percent goes", "samples"},
		{"--mode=cpu --top 3 --format=samples", "--top goes with", "samples"},
		{"--annotate file", "--annotate", "without FILES"},
		{"--by-process file", "--by-process", "without FILES"},
		{"--by-process --tracer=gdb", "--by-process", "--tracer=bpf"},
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
		"--pid",	  "--binary",	 "--comm",	"--iterations", "--interval",
		"--kernel",	  "--lines",	 "--tids",	"--format",	"--output",
		"--save-samples", "--check",	 "--version",	"--mode",	"--all",
		"--event",	  "--frequency", "--count",	"--duration",	"--unwind",
		"--no-kernel",	  "--min-us",	 "--max-us",	"--state",	"--annotate",
		"--by-process",	  "--percent",	 "--functions", "--top",	"--stacks"};

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
		cmocka_unit_test(test_errors),	  cmocka_unit_test(test_sampler_defaults),
		cmocka_unit_test(test_cpu),	  cmocka_unit_test(test_offcpu),
		cmocka_unit_test(test_pids),	  cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_printing),  cmocka_unit_test(test_config_and_modes),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
