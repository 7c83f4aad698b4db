// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd_socket.h"
#include "base/strbuf.h"

#define NOBODY 65534

/*
 * Time, of a CPU: on a busy machine the worker may have to wait for one, which is not its fault.
 * Each answer has a little for free; what is over that is taken from what the file's size allows
 * it, and then counts as lost: so much of it for one file, and so much for all together.
 */
#define FREE_MS	     20
#define BYTES_PER_MS (50u << 10)
#define LIMIT_MS     2000
#define MAX_LOST_MS  2500
#define PATIENCE     4 /* times longer, if it has not had that much of a CPU by then */

/* Memory: so much, and some for each byte of a file, which may be compressed. */
#define BASE_MEMORY	(192ull << 20)
#define MEMORY_PER_BYTE 6

#define MAX_TEXT (1u << 20)

struct request {
	uint32_t number; /* its file comes with the first request for it */
	uint32_t flags;
	uint64_t addr; /* with TAIL_CALLS the return address */
	uint64_t callee;
};

#define EXACT	   1u
#define TAIL_CALLS 2u /* the answer's frames have addresses alone */

struct answer {
	uint32_t n; /* frames, then the text; UNUSABLE: there is nothing to be had of this file */
	uint32_t text_len;
};

#define UNUSABLE UINT32_MAX

struct answer_frame {
	uint64_t addr;
	uint32_t name, file; /* in the text; NO_TEXT: there is none */
	int32_t line;
	uint32_t flags;
};

#define NO_TEXT	   UINT32_MAX
#define MANGLED	   1u
#define NO_ADDRESS 2u

#define MAX_FRAMES (DEBUG_INFO_MAX_INLINED + 1)
#define MAX_ANSWER (sizeof(struct answer) + MAX_FRAMES * sizeof(struct answer_frame) + MAX_TEXT + 1)

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

/* The worker's side. */

static int write_all(int fd, const void *bytes, size_t len)
{
	for (const char *at = bytes; len > 0;) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static void give_up_privileges(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* one who may not change his user has no other's rights to lose */
	if (geteuid() == 0) {
		if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			_exit(1);
	}
	if (syscall(SYS_capset, &header, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(1);
}

static void limit(int what, rlim_t soft)
{
	struct rlimit limit;

	if (getrlimit(what, &limit))
		return;
	limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
	setrlimit(what, &limit);
}

/* Nothing of the parent's but the socket, which becomes number 0. */
static void confine(int socket, bool keep_privileges, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (dup2(socket, 0) < 0 || null < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	if (syscall(SYS_close_range, 3u, ~0u, 0u)) {
		for (int fd = 3; fd < 1 << 16; fd++)
			close(fd);
	}
	signal(SIGINT, SIG_IGN); /* what was captured is to be printed with names */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	if (!keep_privileges)
		give_up_privileges();
	/* after the change of user, which clears it */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
}

struct served {
	struct debug_info **files;
	size_t n;
	uint64_t bytes;
};

/* What is on the disk: a hole is large for nothing. Not every file system says (0 blocks). */
static uint64_t size_of(int fd)
{
	uint64_t size, allocated;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0)
		return 0;
	size = (uint64_t)st.st_size;
	allocated = (uint64_t)st.st_blocks * 512;
	return allocated && allocated < size ? allocated : size;
}

static void serve_file(struct served *s, uint32_t number, const int fds[2])
{
	if (number >= s->n) {
		struct debug_info **files = reallocarray(s->files, (size_t)number + 1,
							 sizeof(*files));

		if (!files)
			_exit(1);
		memset(files + s->n, 0, ((size_t)number + 1 - s->n) * sizeof(*files));
		s->files = files;
		s->n = (size_t)number + 1;
	}
	s->bytes += size_of(fds[0]) + size_of(fds[1]);
#ifndef __SANITIZE_ADDRESS__ /* its shadow is larger than any limit */
	limit(RLIMIT_DATA, BASE_MEMORY + s->bytes * MEMORY_PER_BYTE);
#endif
	s->files[number] = debug_info__new(fds[0], fds[1]);
}

static uint32_t put(struct strbuf *text, const char *str)
{
	size_t at = text->len;

	if (!str || text->len > MAX_TEXT / 2 || strlen(str) > MAX_TEXT / 4)
		return NO_TEXT;
	strbuf__append(text, str, strlen(str) + 1);
	return (uint32_t)at;
}

/* In one piece: the parent wakes once. */
static int reply(const struct answer_frame *frames, size_t n, const struct strbuf *text)
{
	struct answer answer = {.n = (uint32_t)n, .text_len = (uint32_t)text->len};
	struct strbuf out = STRBUF_INIT;
	int err;

	strbuf__append(&out, &answer, sizeof(answer));
	strbuf__append(&out, frames, n * sizeof(frames[0]));
	strbuf__append(&out, text->data, text->len);
	err = text->failed || out.failed ? -1 : write_all(0, out.data, out.len);
	strbuf__free(&out);
	return err;
}

static int reply_names(const struct debug_frame *frames, size_t n)
{
	struct answer_frame out[MAX_FRAMES];
	struct strbuf text = STRBUF_INIT;
	int err;

	for (size_t i = 0; i < n; i++) {
		out[i] = (struct answer_frame){
			.name = put(&text, frames[i].name),
			.file = put(&text, frames[i].file),
			.line = frames[i].line,
			.flags = (frames[i].mangled ? MANGLED : 0) |
				 (frames[i].no_address ? NO_ADDRESS : 0),
		};
	}
	err = reply(out, n, &text);
	strbuf__free(&text);
	return err;
}

static int reply_tail_calls(struct debug_info *d, const struct request *request)
{
	const struct strbuf none = STRBUF_INIT;
	uint64_t addrs[TAIL_CALLS_MAX];
	struct answer_frame out[TAIL_CALLS_MAX];
	size_t n = debug_info__tail_calls(d, request->addr, request->callee, addrs);

	for (size_t i = 0; i < n; i++)
		out[i] = (struct answer_frame){.addr = addrs[i], .name = NO_TEXT, .file = NO_TEXT};
	return reply(out, n, &none);
}

static int answer(struct debug_info *d, const struct request *request)
{
	const struct answer unusable = {.n = UNUSABLE};
	const struct debug_frame *frames = NULL;
	size_t n;

	if (!d)
		return write_all(0, &unusable, sizeof(unusable));
	if (request->flags & TAIL_CALLS)
		return reply_tail_calls(d, request);
	n = debug_info__find(d, request->addr, request->flags & EXACT, &frames);
	if (!n && debug_info__damaged(d))
		return write_all(0, &unusable, sizeof(unusable));
	return reply_names(frames, n);
}

__attribute__((noreturn)) static void serve(void)
{
	struct served s = {.files = NULL};
	struct request request;
	int fds[FD_SOCKET_MAX];

	while (!fd_socket__receive(0, &request, sizeof(request), fds)) {
		if (fds[0] >= 0)
			serve_file(&s, request.number, fds);
		if (answer(request.number < s.n ? s.files[request.number] : NULL, &request))
			break;
	}
	_exit(0);
}

/* The parent's side. */

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
		.allowed_ms = (int64_t)((size_of(fd) + size_of(alt_fd)) / BYTES_PER_MS),
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
		confine(sockets[1], w->keep_privileges, parent);
		serve();
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

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
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
	int64_t used = used_ms(w);

	if (!w->patience || used < 0 || used - w->used_before_ms >= w->allowed_ms ||
	    !is_runnable(w))
		return false;
	w->patience--;
	w->until += w->allowed_ms;
	return true;
}

/* At least one byte more, or -EIO or -ETIMEDOUT. */
static int hear(struct worker *w)
{
	int64_t left = w->until - now_ms();
	ssize_t n;

	if (left <= 0)
		return wait_on(w) ? 0 : -ETIMEDOUT;
	if (wait_at_most(w, left))
		return -EIO;
	n = recv(w->socket, w->heard + w->n_heard, MAX_ANSWER - w->n_heard, 0);
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
	int64_t before = now_ms(), used;
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
	charge(w, file,
	       err == -ETIMEDOUT || used < 0 ? now_ms() - before : used - w->used_before_ms);
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
