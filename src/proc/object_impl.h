/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object_impl: what object.c and objects.c share; for no one else. */
#ifndef PMP_OBJECT_IMPL_H
#define PMP_OBJECT_IMPL_H

#include "proc/elf_image.h"
#include "proc/object.h"
#include "proc/object_file.h"

struct object {
	struct object *next;
	struct object_file_id id;
	int err; /* not 0: why it cannot be used */
	bool vdso;
	uint64_t inode; /* of the mapping, where map_files could not tell which file it is */
	char *path;
	char *from;
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

void object__free(struct object *obj);

#endif
