// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * timed: runs a command and appends `WALL_MS PEAK_KIB STATUS` to a file:
 *
 *	timed FILE COMMAND [ARGUMENT...]
 *
 * The peak is the largest resident set of the command or of a child that it waited for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char *argv[])
{
	double began = now_ms();
	struct rusage usage;
	int status;
	pid_t pid;
	FILE *out;

	if (argc < 3) {
		fprintf(stderr, "usage: timed FILE COMMAND [ARGUMENT...]\n");
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
		perror("timed");
		return 2;
	}
	out = fopen(argv[1], "ae");
	if (!out) {
		perror(argv[1]);
		return 2;
	}
	fprintf(out, "%.1f %ld %d\n", now_ms() - began, usage.ru_maxrss,
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return fclose(out) ? 2 : 0;
}
