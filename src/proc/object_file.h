/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_file: opens the file behind a mapping. Only regular files are ever opened for reading:
 * opening a device or a FIFO can have effects or wait.
 */
#ifndef PMP_OBJECT_FILE_H
#define PMP_OBJECT_FILE_H

#include "proc/elf_file.h"
#include "proc/maps.h"

/* What tells one file from another: a key without padding. */
struct object_file_id {
	uint64_t dev, inode, size;
	int64_t mtime_s, mtime_ns;
};

bool object_file__same(const struct object_file_id *a, const struct object_file_id *b);

/* Open `path` (below `dir_fd`, or as it stands for AT_FDCWD) for reading if it is a regular file.
 * Returns a file descriptor, -EINVAL if it is something else, or -errno. */
int object_file__open_regular(int dir_fd, const char *path, struct object_file_id *ret_id);

/* The same of `path_fd`, an O_PATH descriptor: having one has no effect on the file. Takes it. */
int object_file__reopen_regular(int path_fd, struct object_file_id *ret_id);

/* By way of /proc/PID/map_files. -ESTALE: another file is mapped there by now. */
int object_file__open_mapped(pid_t pid, const struct mapping *m, struct object_file_id *ret_id);

/* Whether the file is on an overlay: written to since it was mapped, it is a copy there, and what
 * is mapped stays the file below, which has no name of its own. */
bool object_file__may_be_copy(int fd);

/* By the path as the process sees it, below its root. */
int object_file__open_path(pid_t pid, const char *path, struct object_file_id *ret_id);

/* What /proc/PID/exe is. Returns 0 or -errno. */
int object_file__exe(pid_t pid, struct object_file_id *ret_id);

/* False also where one of them has no build id. */
bool object_file__same_build_id(const struct elf_file *a, const struct elf_file *b);

#endif
