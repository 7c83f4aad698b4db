// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/object.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "proc/object_impl.h"

#define MAX_EH_FRAME (128u << 20)

struct object *object__ref(struct object *obj)
{
	if (obj)
		obj->refs++;
	return obj;
}

void object__unref(struct object *obj)
{
	if (!obj || --obj->refs)
		return;
	if (obj->cache)
		object_cache__remove(obj->cache, obj);
	for (size_t i = 0; i < OBJECT_N_SLOTS; i++)
		object__set_slot(obj, (enum object_slot)i, NULL, NULL);
	elf_file__free(obj->file);
	elf_image__free(&obj->image);
	free(obj->eh_frame_bytes);
	free(obj->hdr_bytes);
	if (obj->root >= 0)
		close(obj->root);
	free(obj->path);
	free(obj);
}

static int read_eh_frame(struct object *obj)
{
	struct elf_range eh_frame, hdr;
	int err = elf_file__eh_frame(obj->file, &eh_frame, &hdr);

	if (err)
		return err;
	err = elf_file__read_alloc(obj->file, eh_frame.offset, eh_frame.len, MAX_EH_FRAME,
				   &obj->eh_frame_bytes);
	if (!err && hdr.len)
		err = elf_file__read_alloc(obj->file, hdr.offset, hdr.len, MAX_EH_FRAME,
					   &obj->hdr_bytes);
	if (err) {
		free(obj->eh_frame_bytes);
		obj->eh_frame_bytes = NULL;
		return -ENOENT;
	}
	obj->eh_frame = (struct object_eh_frame){
		.eh_frame = obj->eh_frame_bytes,
		.eh_frame_len = eh_frame.len,
		.eh_frame_addr = eh_frame.addr,
		.hdr = obj->hdr_bytes,
		.hdr_len = hdr.len,
		.hdr_addr = hdr.addr,
	};
	return 0;
}

int object__eh_frame(struct object *obj, struct object_eh_frame *ret_bytes)
{
	if (!obj->eh_frame_done)
		obj->eh_frame_err = read_eh_frame(obj);
	obj->eh_frame_done = true;
	if (!obj->eh_frame_err)
		*ret_bytes = obj->eh_frame;
	return obj->eh_frame_err;
}

Elf *object__elf(struct object *obj)
{
	return elf_file__libelf(obj->file);
}

struct elf_file *object__file(struct object *obj)
{
	return obj->file;
}

const uint8_t *object__build_id(const struct object *obj, size_t *ret_len)
{
	return elf_file__build_id(obj->file, ret_len);
}

const char *object__path(const struct object *obj)
{
	return obj->path;
}

int object__root(const struct object *obj)
{
	return obj->root;
}

void object__set_slot(struct object *obj, enum object_slot slot, void *data,
		      void (*free_fn)(void *))
{
	if (obj->slots[slot].data && obj->slots[slot].free_fn)
		obj->slots[slot].free_fn(obj->slots[slot].data);
	obj->slots[slot].data = data;
	obj->slots[slot].free_fn = free_fn;
}

void *object__slot(const struct object *obj, enum object_slot slot)
{
	return obj->slots[slot].data;
}
