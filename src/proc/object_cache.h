/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_cache: the objects of all processes. Processes that map the same file share its object,
 * and with it one open file, one set of unwind tables and one set of symbols.
 *
 * The cache holds no reference: an object that nobody else holds any more is freed. It owns the
 * names that places have (struct code_place), which therefore outlive the process. Free it after
 * every struct objects that borrows it; an object somebody still holds then stays usable.
 *
 * A file is known by device, inode, size and time of modification. What was taken from a process'
 * memory (the vdso; files that cannot be opened) is shared if it has a build id and its bytes are
 * the same: what a process has in its memory under the build id of another is no one else's.
 */
#ifndef PMP_OBJECT_CACHE_H
#define PMP_OBJECT_CACHE_H

#include <stddef.h>

struct object_cache;

/* NULL with errno ENOMEM. */
struct object_cache *object_cache__new(void);
void object_cache__free(struct object_cache *c);

/* How many objects are shared, or could be: for tests and messages. */
size_t object_cache__count(const struct object_cache *c);

#endif
