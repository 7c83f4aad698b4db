// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/object_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/object_impl.h"

struct name {
	UT_hash_handle hh;
	char text[];
};

struct object_cache {
	struct object *files;  /* by id */
	struct object *images; /* by build id */
	struct name *names;
};

struct object_cache *object_cache__new(void)
{
	return calloc(1, sizeof(struct object_cache));
}

static void let_go(struct object **table)
{
	struct object *obj, *next;

	HASH_ITER (hh, *table, obj, next) {
		HASH_DEL(*table, obj);
		obj->cache = NULL;
	}
}

void object_cache__free(struct object_cache *c)
{
	struct name *name, *next;

	if (!c)
		return;
	let_go(&c->files);
	let_go(&c->images);
	HASH_ITER (hh, c->names, name, next) {
		HASH_DEL(c->names, name);
		free(name);
	}
	free(c);
}

size_t object_cache__count(const struct object_cache *c)
{
	return HASH_COUNT(c->files) + HASH_COUNT(c->images);
}

static struct object *object_new(struct elf_file *file, const char *path)
{
	struct object *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return NULL;
	obj->path = strdup(path);
	if (!obj->path) {
		free(obj);
		return NULL;
	}
	obj->refs = 1;
	obj->root = -1;
	obj->file = file;
	return obj;
}

struct object *object_cache__open(struct object_cache *c, int fd, const struct object_file_id *id,
				  const char *path)
{
	struct elf_file *file;
	struct object *obj = NULL;

	HASH_FIND(hh, c->files, id, sizeof(*id), obj);
	if (obj) {
		close(fd);
		return object__ref(obj);
	}
	file = elf_file__from_fd(fd);
	if (!file)
		return NULL;
	obj = object_new(file, path);
	if (!obj) {
		elf_file__free(file);
		errno = ENOMEM;
		return NULL;
	}
	obj->id = *id;
	HASH_ADD(hh, c->files, id, sizeof(obj->id), obj);
	/* without memory for the table it is not found again, but good for this process */
	obj->cache = obj->hh.tbl ? c : NULL;
	return obj;
}

struct object *object_cache__from_image(struct object_cache *c, struct elf_image *image,
					const char *path)
{
	struct elf_file *file = elf_file__from_memory(image->bytes, image->len);
	struct object *obj = NULL;
	const uint8_t *build_id = NULL;
	size_t len = 0;
	int err = file ? ENOMEM : errno;

	if (!file)
		goto fail;
	build_id = elf_file__build_id(file, &len);
	if (build_id)
		HASH_FIND(hh, c->images, build_id, len, obj);
	if (obj && elf_image__same(&obj->image, image)) {
		elf_file__free(file);
		elf_image__free(image);
		return object__ref(obj);
	}
	/* one of them lies about its build id: the first keeps it, this one is private */
	if (obj)
		build_id = NULL;
	obj = object_new(file, path);
	if (!obj)
		goto fail;
	obj->image = *image;
	if (build_id) {
		HASH_ADD_KEYPTR(hh, c->images, build_id, len, obj);
		obj->cache = obj->hh.tbl ? c : NULL;
	}
	return obj;
fail:
	elf_file__free(file);
	elf_image__free(image);
	errno = err;
	return NULL;
}

void object_cache__remove(struct object_cache *c, struct object *obj)
{
	if (obj->image.bytes)
		HASH_DEL(c->images, obj);
	else
		HASH_DEL(c->files, obj);
	obj->cache = NULL;
}

const char *object_cache__intern(struct object_cache *c, const char *str)
{
	size_t len = strlen(str);
	struct name *name = NULL;

	HASH_FIND(hh, c->names, str, len, name);
	if (name)
		return name->text;
	name = malloc(sizeof(*name) + len + 1);
	if (!name)
		return NULL;
	memcpy(name->text, str, len + 1);
	HASH_ADD_KEYPTR(hh, c->names, name->text, len, name);
	if (!name->hh.tbl) {
		free(name);
		return NULL;
	}
	return name->text;
}
