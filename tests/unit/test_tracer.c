// SPDX-License-Identifier: GPL-2.0-or-later
/* The tracers are scripts, put first in PATH. `test_tracer attach PID` attaches and dies of it. */
#include "capture/child.h"
#include "capture/eu_join.h"
#include "capture/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/pmp-tracer.XXXXXX";
static char self[4096];
static pid_t target;
static struct tracer_result result;
static struct strbuf text;
static struct error e;

static void put_file(const char *name, const char *body)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", body);
	fclose(f);
	chmod(path, 0755);
}

static int keep(void *arg, const char *bytes, size_t len)
{
	return strbuf__append(&text, bytes, len);
}

/* The program called `name` is `script`; with its result in the variables above. */
static int trace(enum tracer_kind kind, const char *name, const char *script, double timeout,
		 bool readnever)
{
	const struct tracer_options options = {
		.kind = kind,
		.timeout = timeout,
		.readnever = readnever,
	};
	struct tracer *t;
	int err;

	put_file(name, script);
	strbuf__reset(&text);
	error__clear(&e);
	t = tracer__new(&options, &e);
	assert_non_null(t);
	err = tracer__run(t, target, keep, NULL, &e, &result);
	tracer__free(t);
	return err;
}

/* `@` in `expected` stands for the target's number. */
static void assert_error(const char *expected)
{
	const char *at = strchr(expected, '@');
	char full[512];

	if (at)
		snprintf(full, sizeof(full), "%.*s%d%s", (int)(at - expected), expected,
			 (int)target, at + 1);
	assert_non_null(e.text);
	assert_string_equal(e.text, at ? full : expected);
}

/* The target's state: waits up to thirty seconds for it to be `wanted`. */
static char state_of(char wanted)
{
	char path[64], state = '?';

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)target);
	for (int i = 0; i < 3000 && state != wanted; i++) {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
		if (state != wanted)
			usleep(10000);
	}
	return state;
}

static int start_target(void **state)
{
	target = fork();
	assert_true(target >= 0);
	if (!target) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_int_equal(state_of('S'), 'S');
	return 0;
}

static int end_target(void **state)
{
	kill(target, SIGKILL);
	while (waitpid(target, NULL, 0) < 0 && errno == EINTR)
		;
	error__clear(&e);
	strbuf__free(&text);
	return 0;
}

static void test_arguments(void **state)
{
	static const char show[] = "printf '#0 '; for a; do printf '[%s]' \"$a\"; done";
	char expected[256];

	assert_int_equal(trace(TRACER_GDB, "gdb", show, 0, false), 0);
	snprintf(expected, sizeof(expected),
		 "#0 [-ex][set pagination 0][-ex][thread apply all bt][-batch][-p][%d]",
		 (int)target);
	assert_string_equal(text.data, expected);
	assert_int_equal(result.status, 0);
	assert_int_equal(result.signal, 0);
	assert_false(result.continued);
	assert_null(e.text);
	assert_int_equal(trace(TRACER_GDB, "gdb", show, 0, true), 0);
	snprintf(
		expected, sizeof(expected),
		"#0 [--readnever][-ex][set pagination 0][-ex][thread apply all bt][-batch][-p][%d]",
		(int)target);
	assert_string_equal(text.data, expected);
	assert_int_equal(trace(TRACER_EU, "eu-stack", show, 0, true), 0);
	snprintf(expected, sizeof(expected), "#0 [-s][-m][-p][%d]", (int)target);
	assert_string_equal(text.data, expected);
	assert_int_equal(trace(TRACER_PTEU, "pt-eustack-resolver", show, 0, true), 0);
	snprintf(expected, sizeof(expected), "#0 [%d]", (int)target);
	assert_string_equal(text.data, expected);
	/* of what is no frame, and of no text, comes an error */
	assert_int_equal(trace(TRACER_PTEU, "pt-eustack-resolver", "echo ' #0'", 0, false),
			 -ENODATA);
}

static void test_readnever_unknown(void **state)
{
	char expected[256];

	assert_int_equal(
		trace(TRACER_GDB, "gdb",
		      "[ \"$*\" != '-nx --quiet --batch --readnever' ] || exit 1; echo '#0'", 0,
		      true),
		-EOPNOTSUPP);
	snprintf(expected, sizeof(expected), "%s/gdb does not support --readnever", dir);
	assert_error(expected);
	assert_int_equal(text.len, 0);
}

static void test_missing(void **state)
{
	static const char *const texts[] = {
		[TRACER_GDB] = "gdb was not found in PATH; install gdb, or use --tracer=bpf",
		[TRACER_EU] =
			"eu-stack was not found in PATH; install elfutils, or use --tracer=bpf",
		[TRACER_PTEU] = "pt-eustack-resolver was not found in PATH; install "
				"percona-toolkit 3.5.7 or later, or use --tracer=bpf",
	};
	char *old = strdup(getenv("PATH")), path[64];
	struct tracer_options options;

	setenv("PATH", "/nonexistent", 1);
	for (int kind = TRACER_GDB; kind <= TRACER_PTEU; kind++) {
		options = (struct tracer_options){.kind = (enum tracer_kind)kind};
		errno = 0;
		assert_null(tracer__new(&options, &e));
		assert_int_equal(errno, ENOENT);
		assert_string_equal(e.text, texts[kind]);
	}
	/* the resolver needs eu-stack */
	snprintf(path, sizeof(path), "%s/pt-eustack-resolver", dir);
	put_file("pt-eustack-resolver", "");
	snprintf(path, sizeof(path), "%s/eu-stack", dir);
	unlink(path);
	setenv("PATH", dir, 1);
	assert_null(tracer__new(&options, &e));
	assert_string_equal(e.text, texts[TRACER_EU]);
	setenv("PATH", old, 1);
	free(old);
}

static void test_fails(void **state)
{
	assert_int_equal(trace(TRACER_EU, "eu-stack", "exit 2", 0, false), -ENODATA);
	assert_error("eu-stack printed no stack of process @ (exit status 2)");
	assert_int_equal(result.status, 2);
	assert_int_equal(trace(TRACER_GDB, "gdb", "echo nothing", 0, false), -ENODATA);
	assert_error("gdb printed no stack of process @");
	/* stock takes what there is, whatever the status */
	assert_int_equal(
		trace(TRACER_EU, "eu-stack", "echo TID 1:; echo '#0  0x1 - a'; exit 1", 0, false),
		0);
	assert_string_equal(text.data, "TID 1:\n#0  0x1 ?"
				       "?() - a\n");
	assert_int_equal(result.status, 1);
	assert_int_equal(trace(TRACER_GDB, "gdb", "echo '#0'; kill -SEGV $$", 0, false), -EIO);
	assert_error("gdb was killed by signal 11 (Segmentation fault)");
	put_file("gdb", "");
	assert_int_equal(state_of('S'), 'S');
}

static void test_not_a_program(void **state)
{
	const struct tracer_options options = {.kind = TRACER_GDB};
	char path[128], expected[256];
	struct tracer *t;

	put_file("gdb", "");
	snprintf(path, sizeof(path), "%s/gdb", dir);
	assert_int_equal(truncate(path, 0), 0);
	t = tracer__new(&options, &e);
	assert_non_null(t);
	assert_int_equal(tracer__run(t, target, keep, NULL, &e, &result), -ENOEXEC);
	snprintf(expected, sizeof(expected), "cannot run %s: Exec format error", path);
	assert_error(expected);
	tracer__free(t);
}

static void test_hangs(void **state)
{
	assert_int_equal(trace(TRACER_GDB, "gdb", "echo '#0'; sleep 100", 2, false), -ETIMEDOUT);
	assert_error("gdb was ended: it took longer than 2 s (see --timeout)");
	assert_string_equal(text.data, "#0\n");
	assert_int_equal(result.status, -1);
	/* the target stopped: by something that is no part of it any more */
	assert_int_equal(
		trace(TRACER_GDB, "gdb", "for p; do :; done; kill -STOP $p; sleep 100", 2, false),
		-ETIMEDOUT);
	assert_true(result.continued);
	assert_non_null(strstr(e.text, "(see --timeout); gdb left process "));
	assert_non_null(strstr(e.text, " stopped: it was continued (SIGCONT)"));
	assert_int_equal(state_of('S'), 'S');
}

static void test_leaves_it_stopped(void **state)
{
	assert_int_equal(trace(TRACER_GDB, "gdb",
			       "for p; do :; done; echo '#0'; kill -STOP $p; kill -KILL $$", 0,
			       false),
			 -EIO);
	assert_error("gdb was killed by signal 9 (Killed); gdb left process @ stopped: it was "
		     "continued (SIGCONT)");
	assert_true(result.continued);
	assert_int_equal(state_of('S'), 'S');
	/* all seems well */
	assert_int_equal(
		trace(TRACER_GDB, "gdb", "for p; do :; done; echo '#0'; kill -STOP $p", 0, false),
		0);
	assert_error("gdb left process @ stopped: it was continued (SIGCONT)");
	assert_true(result.continued);
	assert_int_equal(state_of('S'), 'S');
}

static void test_stays_stopped(void **state)
{
	kill(target, SIGSTOP);
	assert_int_equal(state_of('T'), 'T');
	assert_int_equal(trace(TRACER_GDB, "gdb", "kill -KILL $$", 0, false), -EIO);
	assert_error("gdb was killed by signal 9 (Killed)");
	assert_false(result.continued);
	assert_int_equal(state_of('T'), 'T');
}

/* PTRACE_ATTACH sends a SIGSTOP, which outlives the tracer that dies at once. */
static void test_dies_attaching(void **state)
{
	int continued = 0;
	char script[8192];

	snprintf(script, sizeof(script), "for p; do :; done; exec %s attach $p", self);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(trace(TRACER_GDB, "gdb", script, 0, false), -EIO);
		continued += result.continued;
		assert_int_equal(state_of('S'), 'S');
	}
	/* how many is up to the machine */
	print_message("# continued %d of 20 times\n", continued);
}

static void test_flood(void **state)
{
	assert_int_equal(
		trace(TRACER_EU, "eu-stack", "head -c 20000000 /dev/zero | tr '\\0' '#'", 0, false),
		0);
	assert_int_equal(text.len, 20000000);
	assert_int_equal(trace(TRACER_GDB, "gdb", "yes '#'", 0.2, false), -ETIMEDOUT);
}

static void test_interrupted(void **state)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		int err;

		signal(SIGINT, SIG_DFL);
		err = trace(TRACER_GDB, "gdb", "for p; do :; done; kill -STOP $p; sleep 100", 20,
			    false);
		if (err != -EINTR || result.signal != SIGINT || !result.continued)
			_exit(1);
		if (!strstr(e.text, "gdb was ended: interrupted by signal 2 (Interrupt); gdb left"))
			_exit(2);
		child__die_by(result.signal);
	}
	assert_int_equal(state_of('T'), 'T');
	kill(pid, SIGINT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	assert_int_equal(state_of('S'), 'S');
}

/* Killed at once, we leave it to the keeper. */
static void test_killed(void **state)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		trace(TRACER_GDB, "gdb", "for p; do :; done; kill -STOP $p; exec sleep 20", 0,
		      false);
		_exit(0);
	}
	assert_int_equal(state_of('T'), 'T');
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(state_of('S'), 'S');
}

static void test_process_gone(void **state)
{
	pid_t real = target;

	target = fork();
	if (!target)
		_exit(0);
	waitpid(target, NULL, 0);
	assert_int_equal(trace(TRACER_GDB, "gdb", "exit 0", 0, false), -ENODATA);
	assert_error("gdb printed no stack of process @");
	assert_false(result.continued);
	target = real;
}

/* Joined in pieces of `step` bytes. */
static void join(const char *in, size_t len, size_t step, struct strbuf *out)
{
	struct eu_join j = EU_JOIN_INIT;

	strbuf__reset(out);
	for (size_t i = 0; i < len; i += step)
		eu_join__feed(&j, in + i, len - i < step ? len - i : step, out);
	eu_join__finish(&j, out);
	strbuf__append_char(out, '\0');
	out->len--;
}

#define QQ                                                                                         \
	"?"                                                                                        \
	"?()" /* no trigraph */

static void test_join(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"", ""},
		{"PID 1 - process\nTID 1:\n", "PID 1 - process\nTID 1:\n"},
		{"#0  0x00007fb8 pause - /lib/libc.so.6\n    ../pause.c:29:10\n#1  0x5 main - /x\n",
		 "#0  0x00007fb8 pause - /lib/libc.so.6   ../pause.c:29:10\n#1  0x5 main - /x\n"},
		{"#1  0x000055e6f3ff529d - /x\n", "#1  0x000055e6f3ff529d " QQ " - /x\n"},
		{"#1  0x000055e6f3ff529d\n", "#1  0x000055e6f3ff529d\n"},
		/* one line is joined, the next begins afresh */
		{"a\n b\n c\n d\n", "ab\n cd\n"},
		{"a\n b\n c\nd", "ab\n c\nd"},
		{"a\n\n\n b\n", "a\n\nb\n"},
		{" a\n b\n", " ab\n"},
		/* found across the join, once a line, in the middle of words too */
		{"0x1f\n  - y - 0x2 -\n", "0x1f " QQ " - y - 0x2 -\n"},
		{"f0x0x1 -z", "f0x0x1 " QQ " -z"},
		{"0x -", "0x " QQ " -"},
		{"0xg - 00x1- 0x1  - 0xAf -", "0xg - 00x1- 0x1  - 0xAf " QQ " -"},
		{"0x1 0x2 - b", "0x1 0x2 " QQ " - b"},
		{"0x1 ", "0x1 "},
		{"0x1 \n", "0x1 \n"},
		{"0x1\n ", "0x1"},
	};
	struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t step = 1; step < 20; step++) {
			join(cases[i].in, strlen(cases[i].in), step, &out);
			assert_string_equal(out.data, cases[i].out);
		}
	}
	strbuf__free(&out);
}

/* Random text of the bytes that matter, against the scripts themselves. */
static void test_join_as_sed(void **state)
{
	static const char alphabet[] = "\n\n\n    0000xxx--1aFg#";
	static const char sed[] = "sed -e '$!N;s/\\n //g;P;D' %s/in | "
				  "sed -e 's/\\(0x[[:xdigit:]]*\\) -/\\1 ?"
				  "?() -/'";
	static char in[200000], expected[400000];
	struct strbuf out = STRBUF_INIT;
	char command[256], path[64];
	unsigned int seed = 1;
	size_t n;
	FILE *f;

	if (system("sed --version >/dev/null 2>&1"))
		skip();
	for (size_t i = 0; i < sizeof(in); i++) {
		seed = seed * 1103515245 + 12345;
		in[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
	}
	snprintf(path, sizeof(path), "%s/in", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(in, 1, sizeof(in), f), sizeof(in));
	fclose(f);
	snprintf(command, sizeof(command), sed, dir);
	f = popen(command, "re");
	assert_non_null(f);
	n = fread(expected, 1, sizeof(expected), f);
	assert_int_equal(pclose(f), 0);
	join(in, sizeof(in), 4093, &out);
	assert_int_equal(out.len, n);
	assert_memory_equal(out.data, expected, n);
	strbuf__free(&out);
}

static int attach_and_die(pid_t pid)
{
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL))
		return 1;
	kill(getpid(), SIGKILL);
	return 1;
}

static int make_dir(void **state)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0 || !mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s:%s", dir, getenv("PATH"));
	setenv("PATH", path, 1);
	put_file("eu-stack", "");
	return 0;
}

static int remove_dir(void **state)
{
	static const char *const names[] = {"gdb", "eu-stack", "pt-eustack-resolver", "in"};
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

#define WITH_TARGET(test) cmocka_unit_test_setup_teardown(test, start_target, end_target)

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join),	     cmocka_unit_test(test_join_as_sed),
		cmocka_unit_test(test_missing),	     WITH_TARGET(test_arguments),
		WITH_TARGET(test_readnever_unknown), WITH_TARGET(test_fails),
		WITH_TARGET(test_not_a_program),     WITH_TARGET(test_hangs),
		WITH_TARGET(test_leaves_it_stopped), WITH_TARGET(test_stays_stopped),
		WITH_TARGET(test_dies_attaching),    WITH_TARGET(test_flood),
		WITH_TARGET(test_interrupted),	     WITH_TARGET(test_killed),
		WITH_TARGET(test_process_gone),
	};

	if (argc == 3 && !strcmp(argv[1], "attach"))
		return attach_and_die(atoi(argv[2]));
	return cmocka_run_group_tests_name("tracer", tests, make_dir, remove_dir);
}
