// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/samples_file.h"

#include "write/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct samples_file {
	const char *path;
	int fd;
	bool regular;
	off_t at, earlier; /* what is read so far of what it held before */
};

struct samples_file *samples_file__open(const char *path, struct error *e)
{
	struct samples_file *f = calloc(1, sizeof(*f));
	struct stat st = {0};
	int fd, err = 0;

	if (!f)
		return NULL;
	f->path = path;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		fd = output__open_special(path);
	} else {
		fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		fd = fd < 0 ? -errno : fd;
	}
	f->fd = fd < 0 ? -1 : fd;
	if (fd < 0)
		err = -fd;
	else if (fstat(fd, &st))
		err = errno;
	if (err) {
		error__set(e, err, "cannot write %s: %s", path, strerror(err));
		samples_file__close(f);
		errno = err;
		return NULL;
	}
	f->regular = S_ISREG(st.st_mode);
	f->earlier = f->regular ? st.st_size : 0;
	return f;
}

void samples_file__close(struct samples_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

ssize_t samples_file__read(struct samples_file *f, char *buffer, size_t size)
{
	ssize_t n;

	if ((off_t)size > f->earlier - f->at)
		size = (size_t)(f->earlier - f->at);
	if (!size)
		return 0;
	do
		n = pread(f->fd, buffer, size, f->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	f->at += n;
	return n;
}

int samples_file__append(struct samples_file *f, const struct strbuf *text, struct error *e)
{
	struct stat st;
	int err;

	if (fstat(f->fd, &st))
		return error__set(e, errno, "cannot write %s: %s", f->path, strerror(errno));
	err = output__write_all(f->fd, text->data, text->len);
	if (!err)
		return 0;
	if (f->regular && ftruncate(f->fd, st.st_size))
		return error__set(e, -err, "cannot write %s: %s; its last samples are cut off",
				  f->path, strerror(-err));
	return error__set(e, -err, "cannot write %s: %s", f->path, strerror(-err));
}
