/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * root: the root folder of a process, which in a container is another than ours, and files below
 * it. Nothing down there leads out of it again: not "..", nor a symbolic link (openat2,
 * RESOLVE_IN_ROOT).
 */
#ifndef PMP_ROOT_H
#define PMP_ROOT_H

#include "proc/object_file.h"

#include <sys/types.h>

/* A descriptor (O_PATH) for the caller to close, or -errno. */
int root__open(pid_t pid);

/* The same, but -1 where the process' root and mounts are our own, or it is gone. */
int root__open_other(pid_t pid);

/* The regular file at the absolute `path` in there, for reading. Returns a descriptor, or as
 * object_file__open_regular(); -ENOENT also for a path that is not absolute. */
int root__open_file(int root, const char *path, struct object_file_id *ret_id);

#endif
