// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/strbuf.h"
#include "capture/child.h"

#include <dirent.h>
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

/* seconds: for programs that run for 100 or without end, on a machine that is busy */
#define SOON 20

static int keep(void *arg, const char *bytes, size_t len)
{
	return strbuf__append(arg, bytes, len);
}

static int count(void *arg, const char *bytes, size_t len)
{
	*(size_t *)arg += len;
	return 0;
}

static int refuse(void *arg, const char *bytes, size_t len)
{
	return 7;
}

/* `script` is run by sh; `seconds`: how long it took. */
static int run_sh(const char *script, double timeout, child_text_fn text, void *arg,
		  struct child_end *end, double *seconds)
{
	char copy[1024], *argv[] = {"sh", "-c", copy, NULL};
	const struct child_options options = {
		.path = "/bin/sh",
		.argv = argv,
		.timeout = timeout,
		.drop_stderr = true,
	};
	struct timespec before, after;
	int err;

	snprintf(copy, sizeof(copy), "%s", script);
	clock_gettime(CLOCK_MONOTONIC, &before);
	err = child__run(&options, text, arg, end);
	clock_gettime(CLOCK_MONOTONIC, &after);
	if (seconds)
		*seconds = (double)(after.tv_sec - before.tv_sec) +
			   (double)(after.tv_nsec - before.tv_nsec) / 1e9;
	/* no zombie, whatever became of it */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return err;
}

/* Whether the process whose number the program printed is no more, or is about to be no more. */
static int is_gone(const char *number)
{
	char path[64], state = 'X';
	FILE *f;

	for (int i = 0; i < SOON * 100; i++) {
		snprintf(path, sizeof(path), "/proc/%d/stat", atoi(number));
		f = fopen(path, "re");
		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 'X';
		if (f)
			fclose(f);
		if (state == 'X' || state == 'Z')
			return 1;
		usleep(10000);
	}
	return 0;
}

static void test_output_and_status(void **state)
{
	struct strbuf out = STRBUF_INIT;
	struct child_end end;

	/* standard input is empty, standard error dropped */
	assert_int_equal(run_sh("cat; echo one; echo two; echo bad >&2", 0, keep, &out, &end, NULL),
			 0);
	assert_string_equal(out.data, "one\ntwo\n");
	assert_int_equal(end.status, 0);
	assert_int_equal(end.killed_by, 0);
	assert_int_equal(end.interrupted, 0);
	strbuf__reset(&out);
	assert_int_equal(run_sh("printf x; exit 3", 5, keep, &out, &end, NULL), 0);
	assert_string_equal(out.data, "x");
	assert_int_equal(end.status, 3);
	assert_int_equal(run_sh("kill -9 $$", 0, keep, &out, &end, NULL), 0);
	assert_int_equal(end.status, -1);
	assert_int_equal(end.killed_by, SIGKILL);
	strbuf__free(&out);
}

static void test_cannot_start(void **state)
{
	char *argv[] = {"x", NULL};
	struct child_options options = {.path = "/nonexistent/x", .argv = argv};
	struct child_end end;

	assert_int_equal(child__run(&options, refuse, NULL, &end), -ENOENT);
	assert_false(end.started);
	options.path = "/proc/self/maps";
	assert_int_equal(child__run(&options, refuse, NULL, &end), -EACCES);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_timeout(void **state)
{
	struct strbuf out = STRBUF_INIT;
	struct child_end end;
	double seconds;

	/* what it has started is ended with it */
	assert_int_equal(run_sh("sleep 100 & echo $!; wait", 2, keep, &out, &end, &seconds),
			 -ETIMEDOUT);
	assert_true(seconds >= 2 && seconds < SOON);
	assert_int_equal(end.killed_by, SIGTERM);
	assert_true(is_gone(out.data));
	/* one that does not want to end */
	assert_int_equal(
		run_sh("trap '' TERM; while :; do sleep 0.1; done", 2, keep, &out, &end, &seconds),
		-ETIMEDOUT);
	assert_true(seconds >= 3 && seconds < SOON);
	assert_int_equal(end.killed_by, SIGKILL);
	/* one that is stopped */
	assert_int_equal(run_sh("kill -STOP $$", 2, keep, &out, &end, &seconds), -ETIMEDOUT);
	assert_true(seconds < SOON);
	strbuf__free(&out);
}

static void test_leftovers(void **state)
{
	struct strbuf out = STRBUF_INIT;
	struct child_end end;
	double seconds;

	/* they hold the pipe open, in the group or out of it, and are not waited for */
	assert_int_equal(run_sh("sleep 100 & echo $!", 0, keep, &out, &end, &seconds), 0);
	assert_true(seconds < SOON);
	assert_true(is_gone(out.data));
	strbuf__reset(&out);
	/* what is substituted has ended once both are done with its pipe, and nothing else is */
	assert_int_equal(run_sh("exec 3>&1; x=$(setsid sh -c 'echo $$ >&3; exec sleep 100 >&3' &)",
				0, keep, &out, &end, &seconds),
			 0);
	assert_true(seconds < SOON);
	assert_true(out.len > 1);
	kill(atoi(out.data), SIGKILL);
	strbuf__free(&out);
}

static void test_flood(void **state)
{
	struct rusage before, after;
	struct child_end end;
	size_t n = 0;
	double seconds;

	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(run_sh("head -c 100000000 /dev/zero", 0, count, &n, &end, NULL), 0);
	assert_int_equal(n, 100000000);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 8 * 1024);
	assert_int_equal(run_sh("yes", 0.2, count, &n, &end, &seconds), -ETIMEDOUT);
	assert_true(seconds < SOON);
}

static void test_callback_ends_it(void **state)
{
	struct child_end end;
	double seconds;

	assert_int_equal(run_sh("echo; sleep 100", 0, refuse, NULL, &end, &seconds), 7);
	assert_true(seconds < SOON);
}

static int count_fds(int inherited_only)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		int flags = fcntl(atoi(entry->d_name), F_GETFD);

		if (entry->d_name[0] != '.' && (!inherited_only || !(flags & FD_CLOEXEC)))
			n++;
	}
	closedir(dir);
	return n;
}

static void test_fds(void **state)
{
	struct strbuf out = STRBUF_INIT;
	struct child_end end;
	int before = count_fds(0), lines = 0;

	assert_int_equal(run_sh("exec ls /proc/self/fd", 0, keep, &out, &end, NULL), 0);
	for (size_t i = 0; i < out.len; i++)
		lines += out.data[i] == '\n';
	assert_int_equal(lines, count_fds(1) + 1); /* and that of ls */
	assert_int_equal(count_fds(0), before);
	strbuf__free(&out);
}

static void test_signals_of_ours(void **state)
{
	struct strbuf out = STRBUF_INIT;
	struct child_end end;
	sigset_t mask;

	/* the program has them as usual, however they are with us */
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(
		run_sh("exec grep -E '^Sig(Blk|Ign)' /proc/self/status", 0, keep, &out, &end, NULL),
		0);
	assert_int_equal(end.status, 0);
	assert_non_null(strstr(out.data, "SigBlk:\t0000000000000000\n"));
	assert_true((strtoull(strstr(out.data, "SigIgn:") + 7, NULL, 16) & (1 << (SIGPIPE - 1))) ==
		    0);
	assert_true(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
	assert_true(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	assert_false(sigismember(&mask, SIGINT));
	assert_false(sigismember(&mask, SIGCHLD));
	strbuf__free(&out);
}

static int tell_fd;

static int keep_and_tell(void *arg, const char *bytes, size_t len)
{
	return write(tell_fd, "", 1) == 1 ? keep(arg, bytes, len) : -errno;
}

/* A process that runs a program without end is sent the signal. Returns how it ended. */
static int interrupt(int sig, int ignored)
{
	struct child_end end;
	int status, fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	tell_fd = fds[1];
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct strbuf out = STRBUF_INIT;
		int err;

		signal(sig, ignored ? SIG_IGN : SIG_DFL);
		err = run_sh("echo $$; exec sleep 100", ignored ? 2 : 20, keep_and_tell, &out, &end,
			     NULL);
		if (!is_gone(out.data))
			_exit(1);
		if (end.interrupted != sig)
			_exit(err == -ETIMEDOUT ? 2 : 3);
		if (err != -EINTR)
			_exit(4);
		child__die_by(end.interrupted);
	}
	/* once the program runs */
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
	kill(pid, sig);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_interrupted(void **state)
{
	int status;

	status = interrupt(SIGINT, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	status = interrupt(SIGTERM, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	status = interrupt(SIGHUP, 1);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}

/* Killed at once, we take the program with us. */
static void test_dies_with_us(void **state)
{
	char number[16] = "";
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char script[64];
		struct child_end end;

		snprintf(script, sizeof(script), "echo $$ >/proc/%d/fd/%d; exec sleep 100",
			 (int)getpid(), fds[1]);
		run_sh(script, 0, refuse, NULL, &end, NULL);
		_exit(0);
	}
	assert_true(read(fds[0], number, sizeof(number) - 1) > 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(is_gone(number));
	close(fds[0]);
	close(fds[1]);
}

static void test_find(void **state)
{
	char dir[] = "/tmp/pmp-child.XXXXXX", file[64], folder[64], env[256], *path = NULL, *old;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/pmp-prog", dir);
	snprintf(folder, sizeof(folder), "%s/sh", dir);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mkdir(folder, 0755), 0);
	old = strdup(getenv("PATH"));
	snprintf(env, sizeof(env), "/nonexistent::%s:/usr/bin", dir);
	setenv("PATH", env, 1);
	assert_int_equal(child__find("pmp-prog", &path), -ENOENT); /* not executable */
	assert_int_equal(child__find("sh", &path), 0);		   /* not the folder */
	assert_string_equal(path, "/usr/bin/sh");
	free(path);
	chmod(file, 0755);
	assert_int_equal(child__find("pmp-prog", &path), 0);
	assert_string_equal(path, file);
	free(path);
	setenv("PATH", old, 1);
	free(old);
	unlink(file);
	rmdir(folder);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output_and_status),
		cmocka_unit_test(test_cannot_start),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_leftovers),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_callback_ends_it),
		cmocka_unit_test(test_fds),
		cmocka_unit_test(test_signals_of_ours),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_dies_with_us),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
