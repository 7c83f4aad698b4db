// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/find.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* A child of this command; `named` tells when it has it. */
static pid_t start_child(const char *comm)
{
	int pipe_fds[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, comm);
		if (write(pipe_fds[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], &c, 1), 1);
	close(pipe_fds[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool among(pid_t pid, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

static void test_exact_names(void **state)
{
	pid_t child = start_child("pmp_find_me");
	pid_t other = start_child("pmp_find_me_too");
	static const struct {
		const char *name;
		bool child, other;
	} cases[] = {
		{"pmp_find_me", true, false}, {"pmp_find_me_too", false, true},
		{"pmp_find", false, false},   {"pmp_find_me_too_long", false, false},
		{"", false, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t *pids = NULL;
		size_t n = 0;

		assert_int_equal(find__comm(cases[i].name, &pids, &n), 0);
		assert_int_equal(among(child, pids, n), cases[i].child);
		assert_int_equal(among(other, pids, n), cases[i].other);
		free(pids);
	}
	end_child(child);
	end_child(other);
}

static void test_by_executable(void **state)
{
	pid_t child = start_child("renamed"), *pids = NULL;
	size_t n = 0;

	assert_int_equal(find__binary("test_find", &pids, &n), 0);
	assert_true(among(child, pids, n));
	assert_false(among(getpid(), pids, n)); /* never itself */
	free(pids);
	assert_int_equal(find__comm("test_find", &pids, &n), 0);
	assert_false(among(child, pids, n));
	free(pids);
	end_child(child);
}

static void test_hostile_command(void **state)
{
	/* the stat file holds the command in parentheses: it must not shift the fields */
	pid_t child = start_child(") Z 1 (x\n");
	struct error e = ERROR_INIT;
	uint64_t ticks = 0, own = 0;

	assert_int_equal(find__check(child, &e), 0);
	assert_int_equal(find__start_time(child, &ticks), 0);
	assert_int_equal(find__start_time(getpid(), &own), 0);
	assert_true(ticks >= own);
	end_child(child);
}

static void test_check(void **state)
{
	struct error e = ERROR_INIT;
	pid_t zombie;
	siginfo_t info;

	assert_int_equal(find__check(getpid(), &e), 0);
	assert_int_equal(find__check(INT32_MAX, &e), -ESRCH);
	assert_non_null(strstr(e.text, "2147483647"));
	if (getpid() != 2 && access("/proc/2/exe", F_OK) != 0 && find__live_thread(2) == 2) {
		assert_int_equal(find__check(2, &e), -EINVAL);
		assert_non_null(strstr(e.text, "kernel thread"));
	}
	zombie = fork();
	if (zombie == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(find__check(zombie, &e), -ESRCH);
	assert_non_null(strstr(e.text, "zombie"));
	waitpid(zombie, NULL, 0);
	error__clear(&e);
}

static void test_describe(void **state)
{
	struct strbuf text = STRBUF_INIT;
	char start[32];

	assert_int_equal(find__describe(getpid(), &text), 0);
	snprintf(start, sizeof(start), "PID %d ", (int)getpid());
	assert_int_equal(strncmp(text.data, start, strlen(start)), 0);
	assert_non_null(strstr(text.data, ", since "));
	assert_non_null(strstr(text.data, "test_find"));
	strbuf__reset(&text);
	assert_int_not_equal(find__describe(INT32_MAX, &text), 0);
	strbuf__free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_names),	cmocka_unit_test(test_by_executable),
		cmocka_unit_test(test_hostile_command), cmocka_unit_test(test_check),
		cmocka_unit_test(test_describe),
	};

	return cmocka_run_group_tests_name("find", tests, NULL, NULL);
}
