// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK	      (64 * 1024)
#define TERM_SECONDS  1.0 /* from SIGTERM to SIGKILL */
#define KILL_SECONDS  5.0 /* from SIGKILL on: a wait in the kernel may not be killable */
#define NEVER_SECONDS 1e9

static const int ending_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
#define N_ENDING (sizeof(ending_signals) / sizeof(ending_signals[0]))

enum phase { RUNNING, ASKED, KILLED };

struct run {
	const struct child_options *options;
	child_text_fn text;
	void *arg;
	struct child_end *end;
	char *buffer;
	pid_t pid;
	int out;     /* our end of its standard output, -1 after its end */
	int signals; /* signalfd(2): SIGCHLD and what ends us */
	enum phase phase;
	double until; /* when the phase is over; now() */
	bool ended;   /* there is a zombie to wait for */
	int err;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int child__find(const char *name, char **ret_path)
{
	const char *dir = getenv("PATH");
	size_t len;

	for (dir = dir ? dir : "/bin:/usr/bin";; dir += len + 1) {
		struct stat st;
		char *path;

		len = strcspn(dir, ":");
		/* an empty folder is the current one */
		if (asprintf(&path, "%.*s%s%s", (int)len, dir, len ? "/" : "./", name) < 0)
			return -ENOMEM;
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0) {
			*ret_path = path;
			return 0;
		}
		free(path);
		if (!dir[len])
			return -ENOENT;
	}
}

/* Those that are not ignored: a blocked signal would be seen even so. */
static void ending_set(sigset_t *ret_set)
{
	struct sigaction action;

	sigemptyset(ret_set);
	for (size_t i = 0; i < N_ENDING; i++) {
		if (sigaction(ending_signals[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			sigaddset(ret_set, ending_signals[i]);
	}
}

void child__hold(sigset_t *ret_before)
{
	sigset_t set;

	ending_set(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGTTIN);
	sigaddset(&set, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &set, ret_before);
}

int child__release(const sigset_t *before)
{
	const struct timespec at_once = {.tv_sec = 0};
	sigset_t set;
	int sig;

	ending_set(&set);
	do
		sig = sigtimedwait(&set, NULL, &at_once);
	while (sig < 0 && errno == EINTR);
	pthread_sigmask(SIG_SETMASK, before, NULL);
	return sig > 0 ? sig : 0;
}

void child__die_by(int sig)
{
	sigset_t set;

	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	_exit(128 + sig);
}

/* In the child, which shares nothing any more but must take no lock: never returns. */
static void become(const struct child_options *options, pid_t parent, int out, int failed)
{
	sigset_t none;
	int in, err = -1, saved;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may hang, and nobody would be left to see it */
	if (getppid() != parent)
		_exit(127);
	setsid();
	/* away from the numbers that are to be set */
	failed = fcntl(failed, F_DUPFD_CLOEXEC, 3);
	out = fcntl(out, F_DUPFD_CLOEXEC, 3);
	in = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (in >= 0)
		in = fcntl(in, F_DUPFD_CLOEXEC, 3);
	if (options->drop_stderr)
		err = in;
	if (in >= 0 && out >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    (err < 0 || dup2(err, STDERR_FILENO) >= 0))
		execv(options->path, options->argv);
	saved = errno;
	while (write(failed, &saved, sizeof(saved)) < 0 && errno == EINTR)
		;
	_exit(127);
}

/* Start it, and wait for its exec. Returns 0 or -errno. */
static int start(struct run *r)
{
	int out[2] = {-1, -1}, failed[2] = {-1, -1}, err = 0, child_errno = 0;
	pid_t parent = getpid();
	ssize_t n;

	if (pipe2(out, O_CLOEXEC) || pipe2(failed, O_CLOEXEC)) {
		err = -errno;
		goto out;
	}
	r->pid = fork();
	if (r->pid < 0) {
		err = -errno;
		goto out;
	}
	if (!r->pid)
		become(r->options, parent, out[1], failed[1]);
	close_fd(&failed[1]);
	do
		n = read(failed[0], &child_errno, sizeof(child_errno));
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
			;
		err = -child_errno;
		goto out;
	}
	r->out = out[0];
	out[0] = -1;
out:
	close_fd(&out[0]);
	close_fd(&out[1]);
	close_fd(&failed[0]);
	close_fd(&failed[1]);
	return err;
}

/* End it for the reason `err`. */
static void ask_to_end(struct run *r, int err)
{
	if (r->phase != RUNNING)
		return;
	r->err = err;
	r->phase = ASKED;
	r->until = now() + TERM_SECONDS;
	kill(-r->pid, SIGTERM);
	kill(-r->pid, SIGCONT); /* a stopped one would never notice */
}

static void take_signal(struct run *r)
{
	struct signalfd_siginfo info;

	if (read(r->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo != SIGCHLD) {
		if (!r->end->interrupted)
			r->end->interrupted = (int)info.ssi_signo;
		ask_to_end(r, -EINTR);
	}
}

/* Read once, at most `size` bytes, up to CHUNK. What it writes when it has been asked to end is
 * dropped. */
static void take_text(struct run *r, size_t size)
{
	ssize_t n = read(r->out, r->buffer, size);
	int err;

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close_fd(&r->out);
		return;
	}
	err = r->phase == RUNNING ? r->text(r->arg, r->buffer, (size_t)n) : 0;
	if (err)
		ask_to_end(r, err);
}

static bool has_ended(const struct run *r)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == r->pid;
}

/* Until it has ended, or will not even when killed. */
static void follow(struct run *r)
{
	while (!(r->ended = has_ended(r))) {
		struct pollfd fds[2] = {
			{.fd = r->signals, .events = POLLIN},
			{.fd = r->out, .events = POLLIN},
		};
		double left = r->until - now();
		struct timespec ts = {.tv_sec = 0};

		if (left <= 0) {
			if (r->phase == RUNNING) {
				ask_to_end(r, -ETIMEDOUT);
			} else if (r->phase == ASKED) {
				r->phase = KILLED;
				r->until = now() + KILL_SECONDS;
				kill(-r->pid, SIGKILL);
			} else {
				return;
			}
			continue;
		}
		ts.tv_sec = (time_t)left;
		ts.tv_nsec = (long)((left - (double)ts.tv_sec) * 1e9);
		if (ppoll(fds, 2, &ts, NULL) <= 0)
			continue;
		if (fds[0].revents)
			take_signal(r);
		if (fds[1].revents)
			take_text(r, CHUNK);
	}
}

/* What is in the pipe now is all that it wrote: others that hold the pipe are not waited for. */
static void drain(struct run *r)
{
	int left = 0;

	if (r->out < 0 || ioctl(r->out, FIONREAD, &left))
		return;
	for (int part; left > 0 && r->out >= 0 && r->phase == RUNNING; left -= part) {
		part = left < CHUNK ? left : CHUNK;
		take_text(r, (size_t)part);
	}
}

static void reap(struct run *r)
{
	siginfo_t info = {.si_pid = 0};

	/* as long as the zombie is there, no other process group can have its number */
	kill(-r->pid, SIGKILL);
	if (!r->ended)
		return;
	drain(r);
	while (waitid(P_PID, (id_t)r->pid, &info, WEXITED) && errno == EINTR)
		;
	if (info.si_code == CLD_EXITED)
		r->end->status = info.si_status;
	else
		r->end->killed_by = info.si_status;
}

int child__run(const struct child_options *options, child_text_fn text, void *arg,
	       struct child_end *ret_end)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	struct run r = {
		.options = options,
		.text = text,
		.arg = arg,
		.end = ret_end,
		.out = -1,
		.signals = -1,
	};
	struct sigaction sigchld;
	sigset_t before, set;
	int sig, err;

	*ret_end = (struct child_end){.status = -1};
	child__hold(&before);
	/* where it is ignored, nothing is left to wait for */
	sigaction(SIGCHLD, &by_default, &sigchld);
	ending_set(&set);
	sigaddset(&set, SIGCHLD);
	r.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	err = r.signals < 0 ? -errno : 0;
	r.buffer = malloc(CHUNK);
	if (!r.buffer)
		err = -ENOMEM;
	if (!err)
		err = start(&r);
	if (!err) {
		ret_end->started = true;
		r.until = now() + (options->timeout > 0 ? options->timeout : NEVER_SECONDS);
		follow(&r);
		reap(&r);
		err = r.err;
	}
	close_fd(&r.out);
	close_fd(&r.signals);
	free(r.buffer);
	sigaction(SIGCHLD, &sigchld, NULL);
	sig = child__release(&before);
	if (sig && !ret_end->interrupted)
		ret_end->interrupted = sig;
	return err || !ret_end->interrupted ? err : -EINTR;
}
