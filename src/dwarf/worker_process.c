// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/worker_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/fd_socket.h"
#include "base/strbuf.h"

#define NOBODY 65534

/* Memory: so much, and some for each byte of a file, which may be compressed. */
#define BASE_MEMORY	(192ull << 20)
#define MEMORY_PER_BYTE 6

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
	/* one who may not change his user has no other's rights to lose */
	if (geteuid() == 0) {
		if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			_exit(1);
	}
	if (caps__drop_all())
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

/* Not every file system says how much is on the disk (0 blocks). */
uint64_t worker_process__size_of(int fd)
{
	uint64_t size, allocated;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0)
		return 0;
	size = (uint64_t)st.st_size;
	allocated = (uint64_t)st.st_blocks * 512;
	return allocated && allocated < size ? allocated : size;
}

struct served {
	struct debug_info **files;
	size_t n;
	uint64_t bytes;
};

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
	s->bytes += worker_process__size_of(fds[0]) + worker_process__size_of(fds[1]);
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

void worker_process__run(int socket, bool keep_privileges, pid_t parent)
{
	struct served s = {.files = NULL};
	struct request request;
	int fds[FD_SOCKET_MAX];

	confine(socket, keep_privileges, parent);
	while (!fd_socket__receive(0, &request, sizeof(request), fds)) {
		if (fds[0] >= 0)
			serve_file(&s, request.number, fds);
		if (answer(request.number < s.n ? s.files[request.number] : NULL, &request))
			break;
	}
	_exit(0);
}
