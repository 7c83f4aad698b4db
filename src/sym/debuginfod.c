// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/fd_socket.h"
#include "base/strbuf.h"

#if __has_include(<elfutils/debuginfod.h>)
#include <elfutils/debuginfod.h>
#define SUPPORTED true
#else
#define SUPPORTED false
#endif

#define LIBRARY	  "libdebuginfod.so.1"
#define MAX_ID	  64 /* bytes */
#define DEFAULT_S 60 /* a file */

struct debuginfod {
	const char *urls;
	int limit_ms;
	int err; /* it was given up for this */
};

bool debuginfod__supported(void)
{
	return SUPPORTED;
}

static int limit_ms(void)
{
	const char *text = getenv("DEBUGINFOD_MAXTIME");
	long s = text ? strtol(text, NULL, 10) : 0;

	return (s > 0 && s < 24 * 3600 ? (int)s : DEFAULT_S) * 1000;
}

struct debuginfod *debuginfod__new(const char *urls)
{
	struct debuginfod *d;

	if (!urls)
		urls = getenv("DEBUGINFOD_URLS");
	if (!urls || !urls[strspn(urls, " ")]) {
		errno = ENOENT;
		return NULL;
	}
	if (!SUPPORTED) {
		errno = ENOSYS;
		return NULL;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->urls = urls;
	d->limit_ms = limit_ms();
	return d;
}

void debuginfod__free(struct debuginfod *d)
{
	free(d);
}

const char *debuginfod__problem(const struct debuginfod *d)
{
	switch (d ? d->err : 0) {
	case 0:
		return NULL;
	case ENOSYS:
		return "its client, " LIBRARY ", cannot be loaded";
	case ETIMEDOUT:
	case ETIME:
		return "it took too long (see DEBUGINFOD_MAXTIME)";
	case EPIPE:
		return "its client was ended";
	default:
		return strerror(d->err);
	}
}

#if SUPPORTED

/* The child's side. */

/* The client's functions; a program that is linked with them would load 30 libraries at each
 * start. */
struct client {
	__typeof__(&debuginfod_begin) begin;
	__typeof__(&debuginfod_find_debuginfo) find;
	__typeof__(&debuginfod_set_progressfn) set_progress;
};

static bool load(struct client *c)
{
	void *library = dlopen(LIBRARY, RTLD_NOW);

	if (!library)
		return false;
	*(void **)&c->begin = dlsym(library, "debuginfod_begin");
	*(void **)&c->find = dlsym(library, "debuginfod_find_debuginfo");
	*(void **)&c->set_progress = dlsym(library, "debuginfod_set_progressfn");
	return c->begin && c->find && c->set_progress;
}

static const char *fetched; /* what the terminal is told of */

static int show_progress(debuginfod_client *client, long done, long all)
{
	struct strbuf line = STRBUF_INIT;

	(void)client;
	strbuf__append_str(&line, "\rbpf-pmp: debuginfod: ");
	strbuf__append_untrusted(&line, fetched, strlen(fetched), ' ');
	if (all > 0)
		strbuf__printf(&line, ", %ld of %ld KiB", done >> 10, all >> 10);
	strbuf__append_str(&line, "\033[K");
	if (!line.failed && write(STDERR_FILENO, line.data, line.len) < 0)
		errno = 0; /* nobody looks */
	strbuf__free(&line);
	return 0;
}

static void confine(int socket, pid_t parent)
{
	if (dup2(socket, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
	    syscall(SYS_close_range, 3u, ~0u, 0u) || caps__drop_all() ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_DFL); /* who will not wait gets the names that there are */
	signal(SIGTERM, SIG_DFL);
}

struct found {
	int32_t err; /* 0: the file comes along; or a negative errno */
};

__attribute__((noreturn)) static void fetch(const char *urls, const uint8_t *build_id, size_t len,
					    const char *what)
{
	struct found found = {.err = -ENOSYS};
	struct client c;
	debuginfod_client *client = NULL;
	bool terminal = isatty(STDERR_FILENO);
	int fd = -1;

	if (!setenv("DEBUGINFOD_URLS", urls, 1) && load(&c))
		client = c.begin();
	if (client) {
		fetched = what;
		if (terminal)
			c.set_progress(client, show_progress);
		fd = c.find(client, build_id, (int)len, NULL);
		found.err = fd < 0 ? fd : 0;
	}
	if (terminal && write(STDERR_FILENO, "\r\033[K", 4) < 0)
		errno = 0;
	fd_socket__send(STDIN_FILENO, &found, sizeof(found), &fd, fd >= 0);
	_exit(0);
}

/* The parent's side. */

/* The file that the child sends, or why it sent none. */
static int wait_for(int socket, int64_t until)
{
	struct pollfd answer = {.fd = socket, .events = POLLIN};
	struct found found;
	int fds[FD_SOCKET_MAX];
	int64_t left;
	int err;

	do {
		left = until - clock__ms();
		if (left <= 0)
			return -ETIMEDOUT;
	} while (poll(&answer, 1, (int)left) <= 0);
	err = fd_socket__receive(socket, &found, sizeof(found), fds);
	if (!err && fds[0] < 0)
		err = found.err < 0 ? found.err : -EPIPE;
	return err ? err : fds[0];
}

int debuginfod__find(struct debuginfod *d, const uint8_t *build_id, size_t len, const char *what)
{
	pid_t parent = getpid(), pid;
	int sockets[2], fd;

	if (d->err || !len || len > MAX_ID)
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return -ENOENT;
	pid = fork();
	if (pid == 0) {
		confine(sockets[1], parent);
		fetch(d->urls, build_id, len, what);
	}
	close(sockets[1]);
	fd = pid < 0 ? -errno : wait_for(sockets[0], clock__ms() + d->limit_ms);
	close(sockets[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (fd >= 0)
		return fd;
	/* a server that cannot be reached will not be for the next file */
	if (fd != -ENOENT)
		d->err = -fd;
	return -ENOENT;
}

#else

int debuginfod__find(struct debuginfod *d, const uint8_t *build_id, size_t len, const char *what)
{
	(void)d, (void)build_id, (void)len, (void)what;
	return -ENOENT;
}

#endif
