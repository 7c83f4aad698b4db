// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int root__open(pid_t pid)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool same_mounts(pid_t pid)
{
	struct stat ours, theirs;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/ns/mnt", (int)pid);
	return !stat("/proc/self/ns/mnt", &ours) && !stat(name, &theirs) &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

int root__open_other(pid_t pid)
{
	int fd = root__open(pid);
	struct stat ours, theirs;

	if (fd < 0)
		return -1;
	if (!stat("/", &ours) && !fstat(fd, &theirs) &&
	    (ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev || !same_mounts(pid)))
		return fd;
	close(fd);
	return -1;
}

int root__open_file(int root, const char *path, struct object_file_id *ret_id)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	if (path[0] != '/')
		return -ENOENT;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : object_file__reopen_regular(fd, ret_id);
}
