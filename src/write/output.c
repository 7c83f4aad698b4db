// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool stdout_closed;

struct output {
	char *path; /* NULL: standard output; of a regular file without symbolic links */
	int fd;
	int dir;	    /* the folder of a regular file that is made anew; else -1 */
	char *temporary;    /* its name there until it is whole; NULL: it has none */
	bool replaces;	    /* there is a file of that name: */
	struct stat before; /* as it was */
};

int output__prepare(struct error *e)
{
	stdout_closed = fcntl(STDOUT_FILENO, F_GETFD) < 0;
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return error__set(e, EBADF, "cannot open /dev/null: %s", strerror(errno));
	}
	return 0;
}

int output__write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		struct pollfd writable = {.fd = fd, .events = POLLOUT};
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EAGAIN)
			poll(&writable, 1, -1);
		else if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			continue;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int output__open_special(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFL, O_APPEND); /* blocking again */
	return fd;
}

/* The folder of `path`, opened, and the name within it. */
static int open_folder(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int fd;

	if (!dir)
		return -ENOMEM;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	free(dir);
	*ret_name = slash ? slash + 1 : path;
	return fd;
}

static char *temporary_name(void)
{
	unsigned int random = 0;
	char *name;

	if (getentropy(&random, sizeof(random)) ||
	    asprintf(&name, ".bpf-pmp.%d.%08x", (int)getpid(), random) < 0)
		return NULL;
	return name;
}

/* A file without a name, which nothing can leave behind; with one where there are none such. */
static int open_new(struct output *o)
{
	const char *name;

	o->dir = open_folder(o->path, &name);
	if (o->dir < 0)
		return o->dir;
	if (!*name)
		return -EISDIR;
	o->fd = openat(o->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	if (o->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR)
		return -errno;
	o->temporary = temporary_name();
	if (!o->temporary)
		return -ENOMEM;
	o->fd = openat(o->dir, o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return o->fd < 0 ? -errno : 0;
}

static int open_path(struct output *o, const char *path)
{
	struct stat out;
	bool there = stat(path, &o->before) == 0;

	if (!there && errno != ENOENT)
		return -errno;
	/* a link that leads nowhere is left alone */
	if (!there && readlink(path, &(char){0}, 1) >= 0)
		return -ENOENT;
	o->replaces = there && S_ISREG(o->before.st_mode);
	o->path = o->replaces ? realpath(path, NULL) : strdup(path);
	if (!o->path)
		return -errno;
	if (!there)
		return open_new(o);
	if (S_ISDIR(o->before.st_mode))
		return -EISDIR;
	/* /dev/stdout, in any of its names: the file that is open already, not a new one */
	if (!stdout_closed && fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == o->before.st_dev &&
	    out.st_ino == o->before.st_ino) {
		o->fd = dup(STDOUT_FILENO);
		return o->fd < 0 ? -errno : 0;
	}
	if (!o->replaces) {
		o->fd = output__open_special(o->path);
		return o->fd < 0 ? o->fd : 0;
	}
	return access(o->path, W_OK) ? -errno : open_new(o);
}

struct output *output__open(const char *path, struct error *e)
{
	struct output *o = calloc(1, sizeof(*o));
	int err = o ? 0 : -ENOMEM;

	if (o) {
		o->dir = -1;
		o->fd = STDOUT_FILENO;
		if (path) {
			o->fd = -1;
			err = open_path(o, path);
		}
	}
	if (!err)
		return o;
	error__set(e, -err, "cannot write %s: %s", path ? path : "to standard output",
		   strerror(-err));
	output__close(o);
	errno = -err;
	return NULL;
}

/* Give the new file its name, in place of what has it. */
static int name_file(struct output *o)
{
	const char *slash = strrchr(o->path, '/'), *name = slash ? slash + 1 : o->path;
	char self[32];
	int err = 0;

	if (o->replaces) {
		/* who may not give a file away keeps it */
		if (fchown(o->fd, o->before.st_uid, o->before.st_gid))
			errno = 0;
		if (fchmod(o->fd, o->before.st_mode & 07777))
			return -errno;
	}
	if (!o->temporary) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
		if (linkat(AT_FDCWD, self, o->dir, name, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
		/* link(2) cannot replace a file; rename(2) can, and needs a name to start from */
		o->temporary = temporary_name();
		if (!o->temporary)
			return -ENOMEM;
		if (linkat(AT_FDCWD, self, o->dir, o->temporary, AT_SYMLINK_FOLLOW))
			err = -errno;
	}
	if (!err && renameat(o->dir, o->temporary, o->dir, name))
		err = -errno;
	if (!err) {
		free(o->temporary);
		o->temporary = NULL;
	}
	return err;
}

static int cannot_write(const struct output *o, int err, struct error *e)
{
	return error__set(e, -err, "cannot write %s: %s", o->path ? o->path : "to standard output",
			  strerror(-err));
}

int output__append(struct output *o, const struct strbuf *text, struct error *e)
{
	int err;

	if (!o->path && stdout_closed)
		err = -EBADF;
	else
		err = output__write_all(o->fd, text->data, text->len);
	return err ? cannot_write(o, err, e) : 0;
}

int output__finish(struct output *o, struct error *e)
{
	int err = 0;

	if (o->dir >= 0 && fsync(o->fd))
		err = -errno;
	if (!err && o->dir >= 0)
		err = name_file(o);
	return err ? cannot_write(o, err, e) : 0;
}

int output__put(struct output *o, const struct strbuf *text, struct error *e)
{
	int err = output__append(o, text, e);

	return err ? err : output__finish(o, e);
}

void output__close(struct output *o)
{
	if (!o)
		return;
	if (o->temporary)
		unlinkat(o->dir, o->temporary, 0);
	if (o->path && o->fd >= 0)
		close(o->fd);
	if (o->dir >= 0)
		close(o->dir);
	free(o->temporary);
	free(o->path);
	free(o);
}
