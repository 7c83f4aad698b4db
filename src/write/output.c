// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool stdout_closed;

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
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static int put_stdout(const struct strbuf *text, struct error *e)
{
	int err = stdout_closed ? -EBADF : output__write_all(STDOUT_FILENO, text->data, text->len);

	if (err)
		return error__set(e, -err, "cannot write to standard output: %s", strerror(-err));
	return 0;
}

/* A file without a name in the folder of `path`, and that folder. Returns it, or -errno. */
static int open_unnamed(const char *path, int *ret_dir)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int fd, folder, err;

	if (!dir)
		return -ENOMEM;
	folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = errno;
	free(dir);
	if (folder < 0)
		return -err;
	fd = openat(folder, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
	if (fd < 0) {
		err = errno;
		close(folder);
		return -err;
	}
	*ret_dir = folder;
	return fd;
}

/* Give the file its name, in place of what has it. */
static int name_file(int fd, int dir, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char self[32], temporary[64];
	int err = 0;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	/* link(2) cannot replace a file, rename(2) can, and needs a name to start from */
	snprintf(temporary, sizeof(temporary), ".bpf-pmp.%d", (int)getpid());
	if (linkat(AT_FDCWD, self, dir, temporary, AT_SYMLINK_FOLLOW))
		return -errno;
	if (renameat(dir, temporary, dir, name)) {
		err = -errno;
		unlinkat(dir, temporary, 0);
	}
	return err;
}

/* For what is no regular file (a terminal, a pipe), and file systems without O_TMPFILE. */
static int put_in_place(const char *path, const struct strbuf *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), err;

	if (fd < 0)
		return -errno;
	err = output__write_all(fd, text->data, text->len);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static int put_file(const char *path, const struct strbuf *text)
{
	struct stat st;
	int fd, dir = -1, err;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return put_in_place(path, text);
	fd = open_unnamed(path, &dir);
	if (fd == -EOPNOTSUPP || fd == -EISDIR)
		return put_in_place(path, text);
	if (fd < 0)
		return fd;
	err = output__write_all(fd, text->data, text->len);
	if (!err && fsync(fd))
		err = -errno;
	if (!err)
		err = name_file(fd, dir, path);
	close(fd);
	close(dir);
	return err;
}

int output__put(const char *path, const struct strbuf *text, struct error *e)
{
	int err;

	if (!path)
		return put_stdout(text, e);
	err = put_file(path, text);
	if (err)
		return error__set(e, -err, "cannot write %s: %s", path, strerror(-err));
	return 0;
}
