// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/release.h"

#include "proc/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PASS_MS	    10 /* between two looks at the target */
#define MAX_PASSES  300
#define CALM_PASSES 5 /* in a row with nothing to undo, after a program that did not end well */

/* ours was killed: a program that is just starting has yet to find out, its own may go on */
#define CALM_PASSES_KEEPER 30
#define MAX_PASSES_KEEPER  6000

#define SIGSTOP_BIT (1ull << (SIGSTOP - 1)) /* what attaching by ptrace(2) sends */

/* One thread's status file; see proc_pid_status(5). */
static void look_at_thread(int pid, const char *tid, struct stops *s)
{
	unsigned long long pending;
	char path[64], line[256];
	int tracer;
	char state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", pid, tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "State: %c", &state) == 1)
			s->stopped |= state == 'T';
		else if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			s->traced |= tracer != 0;
		else if (sscanf(line, "SigPnd: %llx", &pending) == 1 ||
			 sscanf(line, "ShdPnd: %llx", &pending) == 1)
			s->pending |= (pending & SIGSTOP_BIT) != 0;
	}
	if (f)
		fclose(f);
}

static struct stops look(pid_t pid)
{
	struct stops s = {.there = false};
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		s.there = true;
		look_at_thread((int)pid, entry->d_name, &s);
	}
	if (dir)
		closedir(dir);
	return s;
}

/*
 * The program has ended. Where it has left the target stopped, or with a SIGSTOP of its attaching
 * that nobody has taken yet, SIGCONT undoes both. `calm`: so many looks in a row must find nothing
 * to undo; `max`: and then it is given up.
 */
static void undo_stop(const struct release *r, unsigned int calm, unsigned int max,
		      bool *ret_continued, bool *ret_still)
{
	const struct timespec pause = {.tv_nsec = PASS_MS * 1000000};
	const struct stops *before = &r->before;
	unsigned int found = 0;

	*ret_continued = *ret_still = false;
	if (!before->there || before->stopped || before->pending)
		return;
	for (unsigned int i = 0; i < max; i++) {
		struct stops s = look(r->pid);
		uint64_t ticks;

		*ret_still = false;
		if (!s.there || find__start_time(r->pid, &ticks) || ticks != r->start_ticks)
			return;
		if (s.traced && !before->traced) {
			found = 0; /* by what is dying just now */
		} else if (s.stopped || s.pending) {
			found = 0;
			*ret_still = true;
			if (kill(r->pid, SIGCONT) == 0)
				*ret_continued = true;
		} else if (++found == calm) {
			return;
		}
		nanosleep(&pause, NULL);
	}
}

/* The keeper's life: never returns. Its pipe ends when we do, and the program is killed then. When
 * all is well it is killed before. */
static void keep(const struct release *r, int pipe_end)
{
	bool continued, still;
	sigset_t all;
	char byte;
	ssize_t n;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	setsid();
	/* nobody is to wait for the end of a pipe for its sake */
	if (dup2(pipe_end, STDIN_FILENO) < 0)
		_exit(1);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	do
		n = read(STDIN_FILENO, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		undo_stop(r, CALM_PASSES_KEEPER, MAX_PASSES_KEEPER, &continued, &still);
	_exit(0);
}

void release__begin(struct release *r, pid_t pid)
{
	int fds[2];

	*r = (struct release){.pid = pid, .keeper = -1, .pipe_end = -1};
	r->before = look(pid);
	if (find__start_time(pid, &r->start_ticks))
		r->before.there = false;
	if (pipe2(fds, O_CLOEXEC))
		return;
	r->keeper = fork();
	if (!r->keeper) {
		close(fds[1]);
		keep(r, fds[0]);
	}
	close(fds[0]);
	if (r->keeper > 0)
		r->pipe_end = fds[1];
	else
		close(fds[1]);
}

void release__end(struct release *r, bool well, bool *ret_continued, bool *ret_still)
{
	undo_stop(r, well ? 1 : CALM_PASSES, MAX_PASSES, ret_continued, ret_still);
	if (r->keeper <= 0)
		return;
	kill(r->keeper, SIGKILL);
	close(r->pipe_end);
	while (waitpid(r->keeper, NULL, 0) < 0 && errno == EINTR)
		;
}
