// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_socket.h"
#include "dwarf/worker_impl.h"

/*
 * Time, of a CPU: on a busy machine the worker may have to wait for one, which is not its fault.
 * Each answer has a little for free; what is over that is taken from what the file's size allows
 * it, and then counts as lost: so much of it for one file, and so much for all together.
 */
#define FREE_MS	     20
#define BYTES_PER_MS (50u << 10)
#define LIMIT_MS     2000
#define MAX_LOST_MS  2500
#define PATIENCE     10 /* times more, if it has not had that much of a CPU by then: the rest */

struct file {
	int fd, alt_fd;
	bool known; /* to the process that runs now */
	bool given_up;
	int64_t allowed_ms, lost_ms;
};

struct worker {
	bool keep_privileges, hopeless;
	pid_t pid; /* 0: none runs */
	int socket;
	struct file *files;
	size_t n, capacity;
	unsigned int given_up;
	int64_t lost_ms;
	/* the answer that is waited for */
	int64_t until, allowed_ms, used_before_ms;
	int patience;
	/* the last answer */
	struct debug_frame frames[MAX_FRAMES];
	uint64_t addrs[MAX_FRAMES];
	char *heard; /* MAX_ANSWER bytes */
	size_t n_heard;
	int64_t waits; /* ms that a recv() may take, so far */
};

static void end(struct worker *w)
{
	if (w->socket >= 0)
		close(w->socket);
	w->socket = -1;
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	w->pid = 0;
	for (size_t i = 0; i < w->n; i++)
		w->files[i].known = false;
}

void worker__free(struct worker *w)
{
	if (!w)
		return;
	end(w);
	for (size_t i = 0; i < w->n; i++) {
		close(w->files[i].fd);
		if (w->files[i].alt_fd >= 0)
			close(w->files[i].alt_fd);
	}
	free(w->files);
	free(w->heard);
	free(w);
}

int worker__add(struct worker *w, int fd, int alt_fd)
{
	if (w->n == w->capacity) {
		size_t capacity = w->capacity ? w->capacity * 2 : 16;
		struct file *files = reallocarray(w->files, capacity, sizeof(*files));

		if (!files) {
			close(fd);
			if (alt_fd >= 0)
				close(alt_fd);
			return -ENOMEM;
		}
		w->files = files;
		w->capacity = capacity;
	}
	w->files[w->n] = (struct file){
		.fd = fd,
		.alt_fd = alt_fd,
		.allowed_ms = (int64_t)((worker_process__size_of(fd) +
					 worker_process__size_of(alt_fd)) /
					BYTES_PER_MS),
	};
	return (int)w->n++;
}

static int start(struct worker *w)
{
	int sockets[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	w->pid = fork();
	if (w->pid == 0) {
		worker_process__run(sockets[1], w->keep_privileges, parent);
	}
	close(sockets[1]);
	if (w->pid < 0) {
		w->pid = 0;
		close(sockets[0]);
		return -errno;
	}
	w->socket = sockets[0];
	w->waits = 0;
	return 0;
}

struct worker *worker__new(bool keep_privileges)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->keep_privileges = keep_privileges;
	w->socket = -1;
	start(w); /* else at the first need */
	return w;
}

static int ask(struct worker *w, const struct request *request, const struct file *file)
{
	const int fds[FD_SOCKET_MAX] = {file->fd, file->alt_fd};
	size_t n = file->known ? 0 : file->alt_fd >= 0 ? 2 : 1;

	return fd_socket__send(w->socket, request, sizeof(*request), fds, n);
}

/* A system call only where it is another time than the last, which is why it is rounded up. */
static int wait_at_most(struct worker *w, int64_t ms)
{
	struct timeval limit;

	ms = (ms + 99) / 100 * 100;
	if (ms == w->waits)
		return 0;
	w->waits = ms;
	limit = (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	return setsockopt(w->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

/* The CPU time that the process has had, -1: it is gone. */
static int64_t used_ms(const struct worker *w)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(w->pid, &clock) || clock_gettime(clock, &used))
		return -1;
	return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* Whether it wants a CPU, and is not waiting for anything else. */
static bool is_runnable(const struct worker *w)
{
	char path[64], line[256];
	const char *after;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)w->pid);
	f = fopen(path, "re");
	after = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (f)
		fclose(f);
	return after && after[1] && after[2] == 'R';
}

/* Its time is up; but it may not have had it. */
static bool wait_on(struct worker *w)
{
	int64_t used = used_ms(w), left = w->allowed_ms - (used - w->used_before_ms);

	if (!w->patience || used < 0 || left <= 0 || !is_runnable(w))
		return false;
	w->patience--;
	w->until = clock__ms() + left;
	return true;
}

/* What has come, which may be nothing yet. Returns 0, -EIO or -ETIMEDOUT. */
static int hear(struct worker *w)
{
	int64_t left = w->until - clock__ms();
	/* it is we who may have waited for a CPU: what has come by now has come in time */
	bool last = left <= 0 && !wait_on(w);
	ssize_t n;

	if (left > 0 && wait_at_most(w, left))
		return -EIO;
	n = recv(w->socket, w->heard + w->n_heard, MAX_ANSWER - w->n_heard,
		 left > 0 ? 0 : MSG_DONTWAIT);
	if (n < 0 && last && errno == EAGAIN)
		return -ETIMEDOUT;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0)
		return -EIO;
	w->n_heard += (size_t)n;
	return 0;
}

/* It has read what may have told it to lie. */
static int take(struct worker *w, const struct answer *answer)
{
	const char *frames = w->heard + sizeof(*answer);
	const char *text = frames + answer->n * sizeof(struct answer_frame);

	if (answer->text_len && text[answer->text_len - 1] != '\0')
		return -EIO;
	for (uint32_t i = 0; i < answer->n; i++) {
		struct answer_frame f;

		memcpy(&f, frames + i * sizeof(f), sizeof(f));
		if ((f.name != NO_TEXT && f.name >= answer->text_len) ||
		    (f.file != NO_TEXT && f.file >= answer->text_len) || f.line < 0)
			return -EIO;
		w->frames[i] = (struct debug_frame){
			.name = f.name == NO_TEXT ? NULL : text + f.name,
			.mangled = f.flags & MANGLED,
			.file = f.file == NO_TEXT ? NULL : text + f.file,
			.line = f.line,
			.no_address = f.flags & NO_ADDRESS,
		};
		w->addrs[i] = f.addr;
	}
	return 0;
}

static int hear_answer(struct worker *w, size_t *ret_n)
{
	struct answer answer = {0};
	size_t len = sizeof(answer);
	int err = 0;

	if (!w->heard)
		w->heard = malloc(MAX_ANSWER);
	if (!w->heard)
		return -ENOMEM;
	w->n_heard = 0;
	while (!err && w->n_heard < len) {
		err = hear(w);
		if (err || w->n_heard < sizeof(answer) || len > sizeof(answer))
			continue;
		memcpy(&answer, w->heard, sizeof(answer));
		if (answer.n == UNUSABLE)
			return -EINVAL;
		if (answer.n > MAX_FRAMES || answer.text_len > MAX_TEXT)
			return -EIO;
		len += answer.n * sizeof(struct answer_frame) + answer.text_len;
	}
	if (!err && w->n_heard > len) /* nobody asked for more */
		err = -EIO;
	if (!err)
		err = take(w, &answer);
	if (!err)
		*ret_n = answer.n;
	return err;
}

static void give_up(struct worker *w, struct file *file)
{
	if (!file->given_up)
		w->given_up++;
	file->given_up = true;
}

/* How long the next answer about it may take. */
static int64_t time_left(const struct worker *w, const struct file *file)
{
	int64_t own = LIMIT_MS - file->lost_ms, all = MAX_LOST_MS - w->lost_ms;

	return (own < all ? own : all) + file->allowed_ms + FREE_MS;
}

static void charge(struct worker *w, struct file *file, int64_t took_ms)
{
	int64_t over = took_ms > FREE_MS ? took_ms - FREE_MS : 0;
	int64_t allowed = over < file->allowed_ms ? over : file->allowed_ms;

	file->allowed_ms -= allowed;
	file->lost_ms += over - allowed;
	w->lost_ms += over - allowed;
	if (file->lost_ms >= LIMIT_MS)
		give_up(w, file);
	if (w->lost_ms >= MAX_LOST_MS)
		w->hopeless = true;
}

/* Ask, and wait for the answer. Returns how many frames it has. */
static int consult(struct worker *w, const struct request *request)
{
	struct file *file = &w->files[request->number];
	int64_t before = clock__ms(), used, took;
	size_t n = 0;
	int err = 0;

	if (!w->hopeless && !file->given_up && !w->pid && start(w))
		w->hopeless = true;
	if (w->hopeless)
		give_up(w, file);
	if (file->given_up)
		return 0;
	w->used_before_ms = used_ms(w);
	w->allowed_ms = time_left(w, file);
	w->until = before + w->allowed_ms;
	w->patience = PATIENCE;
	err = ask(w, request, file);
	file->known = true;
	if (!err)
		err = hear_answer(w, &n);
	if (err == -ENOMEM)
		return err;
	used = used_ms(w);
	if (err == -ETIMEDOUT) /* it has used that up, if with waiting for something else */
		took = w->allowed_ms;
	else
		took = used < 0 ? clock__ms() - before : used - w->used_before_ms;
	charge(w, file, took);
	if (!err)
		return (int)n;
	give_up(w, file);
	if (err != -EINVAL) /* it has fallen, or may be anywhere */
		end(w);
	return 0;
}

int worker__find(struct worker *w, int number, uint64_t addr, bool exact,
		 const struct debug_frame **ret_frames)
{
	const struct request request = {
		.number = (uint32_t)number,
		.flags = exact ? EXACT : 0,
		.addr = addr,
	};

	*ret_frames = w->frames;
	return consult(w, &request);
}

int worker__tail_calls(struct worker *w, int number, uint64_t return_addr, uint64_t callee_addr,
		       uint64_t ret_addrs[TAIL_CALLS_MAX])
{
	const struct request request = {
		.number = (uint32_t)number,
		.flags = TAIL_CALLS,
		.addr = return_addr,
		.callee = callee_addr,
	};
	int n = consult(w, &request);

	if (n > TAIL_CALLS_MAX)
		n = 0;
	for (int i = 0; i < n; i++)
		ret_addrs[i] = w->addrs[i];
	return n;
}

unsigned int worker__given_up(const struct worker *w)
{
	return w->given_up;
}
