// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/object_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/root.h"

static struct object_file_id file_id(const struct stat *st)
{
	return (struct object_file_id){
		.dev = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = st->st_mtim.tv_nsec,
	};
}

bool object_file__same(const struct object_file_id *a, const struct object_file_id *b)
{
	return a->inode && a->dev == b->dev && a->inode == b->inode && a->size == b->size &&
	       a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns;
}

int object_file__reopen_regular(int path_fd, struct object_file_id *ret_id)
{
	char name[64];
	struct stat st;
	int fd = -EINVAL;

	if (fstat(path_fd, &st)) {
		fd = -errno;
	} else if (S_ISREG(st.st_mode)) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			fd = -errno;
		else
			*ret_id = file_id(&st);
	}
	close(path_fd);
	return fd;
}

int object_file__open_regular(int dir_fd, const char *path, struct object_file_id *ret_id)
{
	int fd = openat(dir_fd, path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : object_file__reopen_regular(fd, ret_id);
}

/* Whether the opened file has the name that the mapping was listed with, whatever the folder: it
 * may be mapped from another root. */
static bool has_name_of(int fd, const struct mapping *m)
{
	const char *slash = strrchr(m->path, '/'), *wanted = slash ? slash + 1 : m->path;
	size_t len = strlen(wanted);
	char link[64], path[PATH_MAX], *name;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	return !strncmp(name, wanted, len) && (!name[len] || !strcmp(name + len, " (deleted)"));
}

int object_file__open_mapped(pid_t pid, const struct mapping *m, struct object_file_id *ret_id)
{
	struct object_file_id id;
	char name[96];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/map_files/%llx-%llx", (int)pid,
		 (unsigned long long)m->start, (unsigned long long)m->end);
	fd = object_file__open_regular(AT_FDCWD, name, &id);
	if (fd < 0)
		return fd;
	if (!has_name_of(fd, m)) {
		close(fd);
		return -ESTALE;
	}
	*ret_id = id;
	return fd;
}

bool object_file__may_be_copy(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

int object_file__open_path(pid_t pid, const char *path, struct object_file_id *ret_id)
{
	int root = root__open(pid);
	int fd;

	if (root < 0)
		return root;
	fd = root__open_file(root, path, ret_id);
	close(root);
	return fd;
}

int object_file__exe(pid_t pid, struct object_file_id *ret_id)
{
	char name[64];
	struct stat st;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	if (stat(name, &st))
		return -errno;
	*ret_id = file_id(&st);
	return 0;
}

bool object_file__same_build_id(const struct elf_file *a, const struct elf_file *b)
{
	size_t a_len, b_len;
	const uint8_t *a_id = elf_file__build_id(a, &a_len);
	const uint8_t *b_id = elf_file__build_id(b, &b_len);

	return a_id && b_id && a_len == b_len && !memcmp(a_id, b_id, a_len);
}
