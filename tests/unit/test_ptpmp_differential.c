// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random traces through the packaged pt-pmp (Debian's 3.2.1) and through us, byte for byte.
 *
 * 3.2.1 is not our reference, 3.5.7 is. What they disagree about is not generated:
 * - a frame without an address leaves the file as the frame before it left it in 3.2.1, and sets
 *   it in 3.5.7: an input either has an address in all frames, or no file that starts with '/';
 * - `TID` lines start a stack only in 3.5.7;
 * - frames before the first `Thread` line are a stack of their own only in 3.2.1, and an input
 *   without anything prints one empty line there: every input starts with a `Thread` line;
 * - frames beyond --lines still set the carried file in 3.2.1: there is no limit here.
 */
#include "tests/unit/pipeline.h"

#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BATCHES	      12
#define TRACES	      400 /* in a batch */

#define PICK(list) ((list)[(size_t)rand_r(seed) % ARRAY_SIZE(list)])

/* What a program prints on its standard output; false if it cannot be run or fails. */
static bool run(char *const *argv, struct strbuf *out)
{
	char *const env[] = {"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", NULL};
	posix_spawn_file_actions_t actions;
	char buf[1 << 14];
	ssize_t n;
	int fds[2], status, err;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	posix_spawn_file_actions_addclose(&actions, fds[1]);
	/* gawk warns about an escape in pt-pmp */
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(&pid, argv[0], &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	while (!err && (n = read(fds[0], buf, sizeof(buf))) > 0)
		strbuf__append(out, buf, (size_t)n);
	close(fds[0]);
	return !err && waitpid(pid, &status, 0) == pid && status == 0;
}

static void add_name(struct strbuf *out, unsigned int *seed)
{
	static const char *const names[] = {
		"read",
		"operator new",
		"operator bool",
		"A<b>::operator()",
		"f<a>",
		"?\?",
		"",
		"std::vector<int, std::allocator<int> >::push_back(int const&)",
		"is_const_item",
		"pthread_cond_wait@@GLIBC_2.3.2",
		"void f<int>(int)",
		"x.constprop.0",
		"memcpy(void*, void const*)",
		"<signal handler called>",
		"<lambda()>::operator()",
		"(anonymous namespace)::f",
		"{lambda(int)#1}::operator()",
		"operator<< <char>(int)",
	};
	static const char *const pieces[] = {
		"<",	   ">",	   "::",	"(",	    ")",    " ",    "void",   "const",
		"a",	   "b::c", "operator<", "->",	    "<<",   "?\?",  "@@",     "std::",
		"~",	   "&",	   "*",		", ",	    " in ", " at ", " from ", "0x1",
		".",	   "\t",   ":",		">::",	    "<b>",  "><",   "#",      " void ",
		" const ", "\"",   "\r",	"\xc3\xa9", "\xff", "\x01",
	};

	if (rand_r(seed) % 5 < 2) {
		strbuf__append_str(out, PICK(names));
		return;
	}
	for (int n = rand_r(seed) % 14; n >= 0; n--)
		strbuf__append_str(out, PICK(pieces));
}

static void add_frame(struct strbuf *out, int number, bool bare, unsigned int *seed)
{
	static const char *const addresses[] = {"0x00007f2763f18bcf", "0x0000000000000000", "f0x5",
						"0x1"};
	static const char *const arguments[] = {" ()",
						"",
						" (x=1)",
						"(int)",
						" (f= {void (void)} 0x7)",
						" (s=0x5 \"at x from y in z\")"};
	static const char *const places[] = {" at ./x.c:3", " at ../x.c:3", " from x.so", "", "\r"};
	static const char *const paths[] = {" from /lib/x/libc.so.6", " at /a/b/c.cc:99", " (/x)",
					    " \"/q\"", " /"};

	strbuf__printf(out, "#%d  ", number);
	if (!bare || rand_r(seed) % 2)
		strbuf__printf(out, "%s%s", PICK(addresses), rand_r(seed) % 8 ? " in " : " ");
	add_name(out, seed);
	strbuf__append_str(out, PICK(arguments));
	if (bare || rand_r(seed) % 2)
		strbuf__append_str(out, PICK(places));
	else
		strbuf__append_str(out, PICK(paths));
	strbuf__append_char(out, '\n');
}

/* `bare`: some frames have no address, and no file starts with '/'. */
static void make_traces(struct strbuf *out, bool bare, unsigned int *seed)
{
	static const char *const headers[] = {
		"Thread %d (Thread 0x7f01 (LWP 7)):\n",
		"Thread %d (LWP 7):\n",
		"Threads%d\n",
		"Thread %d (Thread 0x7f01 (LWP 7) \"con\"):\n",
	};
	static const char *const others[] = {" #0 0x1 in x\n", "TS 1.2 x\n", "\n",
					     "[New Thread 1]\n", "warning: x\n"};

	for (int i = 0; i < TRACES; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		strbuf__printf(out, PICK(headers), i);
#pragma GCC diagnostic pop
		for (int j = 0, n = rand_r(seed) % 4; j < n; j++)
			add_frame(out, j, bare, seed);
		if (rand_r(seed) % 10 == 0)
			strbuf__append_str(out, PICK(others));
	}
}

/* The first line that differs, for whoever has to find out why. */
static void compare(const struct strbuf *want, const struct strbuf *got, unsigned int seed)
{
	size_t i = 0, start;

	if (want->len == got->len && memcmp(want->data, got->data, want->len) == 0)
		return;
	while (i < want->len && i < got->len && want->data[i] == got->data[i])
		i++;
	for (start = i; start && want->data[start - 1] != '\n';)
		start--;
	fail_msg("seed %u: pt-pmp prints\n%.*s\nand we\n%.*s", seed,
		 (int)strcspn(want->data + start, "\n"), want->data + start,
		 (int)strcspn(got->data + start, "\n"), got->data + start);
}

static void check_batch(const char *ptpmp, unsigned int number)
{
	struct pipeline p = {.dialect = SHORTEN_GDB, .chunk = 1000, .write = write_pmp__report};
	struct strbuf text = STRBUF_INIT, want = STRBUF_INIT, got = STRBUF_INIT;
	char path[] = P_tmpdir "/ptpmp-differential-XXXXXX";
	unsigned int seed = 20211 + number;
	int fd = mkstemp(path);
	bool ran;

	assert_true(fd >= 0);
	make_traces(&text, number % 2, &seed);
	assert_int_equal(write(fd, text.data, text.len), text.len);
	close(fd);
	ran = run((char *[]){(char *)ptpmp, path, NULL}, &want);
	unlink(path);
	assert_true(ran);
	assert_int_equal(pipeline_run(&p, text.data, text.len, &got), 0);
	compare(&want, &got, 20211 + number);
	strbuf__free(&text);
	strbuf__free(&want);
	strbuf__free(&got);
}

static void test_as_the_packaged_one(void **state)
{
	static const char ptpmp[] = "/usr/bin/pt-pmp";
	struct strbuf version = STRBUF_INIT;
	bool known;

	known = run((char *[]){(char *)ptpmp, "--version", NULL}, &version) &&
		strncmp(version.data, "pt-pmp 3.2.", 11) == 0;
	strbuf__free(&version);
	if (!known) {
		print_message("# SKIP: NOT TESTED against pt-pmp: 3.2 is not installed\n");
		skip();
	}
	for (unsigned int i = 0; i < BATCHES; i++)
		check_batch(ptpmp, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_packaged_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
