/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object_impl: what object.c, objects.c and object_cache.c share; for no one else. */
#ifndef PMP_OBJECT_IMPL_H
#define PMP_OBJECT_IMPL_H

#include "proc/elf_image.h"
#include "proc/object.h"
#include "proc/object_cache.h"
#include "proc/object_file.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct object {
	size_t refs;
	struct object_cache *cache; /* in which it can be found; NULL: it is private */
	UT_hash_handle hh;
	struct object_file_id id; /* all 0 if it was taken from memory */
	char *path;
	int root; /* that `path` is in, where it is not ours; or -1 */
	struct elf_file *file;
	struct elf_image image; /* what `file` reads, if it was taken from memory */
	bool eh_frame_done;
	int eh_frame_err;
	void *eh_frame_bytes, *hdr_bytes;
	struct object_eh_frame eh_frame;
	struct {
		void *data;
		void (*free_fn)(void *data);
	} slots[OBJECT_N_SLOTS];
};

/* Both return the object with a reference of the caller's: the one that is known, or a new one.
 * NULL with errno. */

/* `fd`, a regular file, is taken over, also on failure. `path` is for messages and debug files. */
struct object *object_cache__open(struct object_cache *c, int fd, const struct object_file_id *id,
				  const char *path);

/* `image` is taken over, also on failure. */
struct object *object_cache__from_image(struct object_cache *c, struct elf_image *image,
					const char *path);

/* Called as the last reference goes. */
void object_cache__remove(struct object_cache *c, struct object *obj);

/* The same string, owned by the cache; NULL: no memory. */
const char *object_cache__intern(struct object_cache *c, const char *str);

#endif
