// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/linkmap.h"
#include "proc/object_impl.h"

#define PAGE_SIZE 4096ull

/* One mapping and what was found out about it. */
struct place {
	struct mapping map;
	bool resolved;
	int err;
	struct object *object;
	uint64_t bias;
};

struct objects {
	pid_t pid;
	struct place *places; /* executable and file mappings, ascending */
	size_t n;
	char *paths;
	struct object *list;
	bool started;
	struct linkmap_start start;
	struct linkmap *linkmap; /* NULL: to be read (again) */
};

struct objects *objects__new(pid_t pid)
{
	struct objects *o = calloc(1, sizeof(*o));

	if (o)
		o->pid = pid;
	return o;
}

void objects__free(struct objects *o)
{
	if (!o)
		return;
	while (o->list) {
		struct object *obj = o->list;

		o->list = obj->next;
		object__free(obj);
	}
	linkmap__free(o->linkmap);
	free(o->places);
	free(o->paths);
	free(o);
}

static bool same_place(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->offset == b->offset && a->inode == b->inode &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       a->executable == b->executable && !strcmp(a->path, b->path);
}

int objects__set_maps(struct objects *o, const struct maps *maps)
{
	const struct mapping *all;
	struct place *places;
	size_t n_all, n = 0, len = 0, old = 0;
	char *paths, *at;

	all = maps__all(maps, &n_all);
	for (size_t i = 0; i < n_all; i++)
		len += strlen(all[i].path) + 1;
	places = calloc(n_all + 1, sizeof(*places));
	paths = malloc(len + 1);
	if (!places || !paths) {
		free(places);
		free(paths);
		return -ENOMEM;
	}
	at = paths;
	for (size_t i = 0; i < n_all; i++) {
		struct place *p = &places[n];

		if (!all[i].executable && !all[i].inode)
			continue;
		p->map = all[i];
		p->map.path = at;
		at = stpcpy(at, all[i].path) + 1;
		while (old < o->n && o->places[old].map.start < p->map.start)
			old++;
		if (old < o->n && same_place(&o->places[old].map, &p->map)) {
			p->resolved = o->places[old].resolved;
			p->err = o->places[old].err;
			p->object = o->places[old].object;
			p->bias = o->places[old].bias;
		}
		n++;
	}
	free(o->places);
	free(o->paths);
	o->places = places;
	o->paths = paths;
	o->n = n;
	/* an exec changes all of it */
	linkmap__free(o->linkmap);
	o->linkmap = NULL;
	o->started = false;
	return 0;
}

void objects__set_thread(struct objects *o, pid_t tid)
{
	o->pid = tid;
}

static struct place *find_place(const struct objects *o, uint64_t addr)
{
	size_t low = 0, high = o->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (addr >= o->places[mid].map.end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < o->n && addr >= o->places[low].map.start ? &o->places[low] : NULL;
}

static bool same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode && a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor;
}

/* Whether `p`, loaded with `bias`, accounts for the mapping. */
static bool accounts_for(const Elf64_Phdr *p, uint64_t bias, const struct mapping *m)
{
	uint64_t vaddr = p->p_vaddr & ~(PAGE_SIZE - 1), offset = p->p_offset & ~(PAGE_SIZE - 1);
	uint64_t in = m->start - bias - vaddr;

	return p->p_type == PT_LOAD && m->start - bias >= vaddr && in < p->p_memsz + PAGE_SIZE &&
	       m->offset >= offset && m->offset - offset == in;
}

/*
 * The bias of one mapping. A page that holds the end of one segment and the start of the next is
 * mapped for both, so that the offset alone may fit two: the right one also explains the most
 * other mappings of the file.
 */
static int find_bias(const struct objects *o, const struct place *place, uint64_t *ret_bias)
{
	const struct mapping *m = &place->map;
	const Elf64_Phdr *segments;
	size_t n, best = 0;

	segments = elf_file__segments(place->object->file, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Phdr *p = &segments[i];
		uint64_t bias = m->start - m->offset - (p->p_vaddr - p->p_offset);
		size_t score = 1;

		if (p->p_type != PT_LOAD || !accounts_for(p, bias, m))
			continue;
		for (const struct place *q = o->places; q < o->places + o->n; q++) {
			bool fits = false;

			for (size_t j = 0; same_file(&q->map, m) && j < n && !fits; j++)
				fits = accounts_for(&segments[j], bias, &q->map);
			score += fits ? 2 : 0;
		}
		score += !!(p->p_flags & PF_X) == m->executable;
		if (score > best) {
			best = score;
			*ret_bias = bias;
		}
	}
	return best ? 0 : -EINVAL;
}

static bool is_main(struct objects *o, const struct place *place)
{
	const struct place *entry;
	struct object_file_id exe;

	if (o->start.entry) {
		entry = find_place(o, o->start.entry);
		if (entry && (entry == place || same_file(&entry->map, &place->map)))
			return true;
		if (entry && entry->map.inode)
			return false;
	}
	return !object_file__exe(o->pid, &exe) && object_file__same(&exe, &place->object->id);
}

/* At the first mapping of the object that is asked for: names are the same for all of them. */
static int find_from(struct objects *o, const struct place *place)
{
	struct object *obj = place->object;
	const struct linkmap_entry *entries;
	const char *from = obj->path;
	size_t n;

	if (!o->started && linkmap__start(o->pid, &o->start))
		o->start = (struct linkmap_start){0};
	o->started = true;
	if (obj->vdso || is_main(o, place)) {
		from = "";
		goto out;
	}
	if (!o->linkmap) {
		o->linkmap = linkmap__read(memory__read, &o->pid, &o->start);
		if (!o->linkmap)
			return -ENOMEM;
	}
	entries = linkmap__entries(o->linkmap, &n);
	for (size_t i = 0; i < n; i++) {
		const struct place *p = find_place(o, entries[i].dynamic);

		if (p && *entries[i].name && same_file(&p->map, &place->map)) {
			from = entries[i].name;
			break;
		}
	}
out:
	obj->from = strdup(from);
	return obj->from ? 0 : -ENOMEM;
}

static struct object *object_new(struct objects *o, const char *path)
{
	struct object *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return NULL;
	obj->path = strdup(path);
	if (!obj->path) {
		free(obj);
		return NULL;
	}
	obj->next = o->list;
	o->list = obj;
	return obj;
}

static int from_image(struct object *obj)
{
	obj->file = elf_file__from_memory(obj->image.bytes, obj->image.len);
	return obj->file ? 0 : -errno;
}

static int find_vdso(struct objects *o, struct place *place)
{
	const struct mapping *m = &place->map;
	struct object *obj;

	for (obj = o->list; obj; obj = obj->next) {
		if (obj->vdso && obj->id.start == m->start) {
			place->object = obj;
			return obj->err;
		}
	}
	obj = object_new(o, m->path);
	if (!obj)
		return -ENOMEM;
	place->object = obj;
	obj->vdso = true;
	obj->id.start = m->start;
	obj->err = elf_image__read(memory__read, &o->pid, m->start, m->end - m->start, &obj->image);
	if (!obj->err)
		obj->err = from_image(obj);
	return obj->err;
}

/* Where the start of the file is mapped for this mapping's load of it. */
static const struct mapping *find_base(const struct objects *o, const struct place *place)
{
	for (const struct place *p = place; p >= o->places; p--) {
		if (same_file(&p->map, &place->map) && p->map.offset == 0)
			return &p->map;
	}
	return NULL;
}

/* map_files cannot be had: what is in memory tells whether the file by that path is the one. */
static int find_without_map_files(struct objects *o, struct place *place)
{
	const struct mapping *base = find_base(o, place);
	struct elf_image image = {0};
	struct elf_file *memory = NULL;
	struct object_file_id id = {.start = base ? base->start : 0};
	struct object *obj;
	int fd, err;

	if (!base)
		return -ENOENT;
	for (obj = o->list; obj; obj = obj->next) {
		if (!obj->vdso && obj->id.start == base->start && obj->inode == base->inode &&
		    !strcmp(obj->path, base->path)) {
			place->object = obj;
			return obj->err;
		}
	}
	err = elf_image__read(memory__read, &o->pid, base->start, 0, &image);
	if (err)
		return err;
	obj = object_new(o, place->map.path);
	if (!obj) {
		elf_image__free(&image);
		return -ENOMEM;
	}
	place->object = obj;
	obj->image = image;
	obj->id = id;
	obj->inode = base->inode;
	obj->err = from_image(obj);
	if (obj->err)
		return obj->err;
	fd = object_file__open_path(o->pid, place->map.path, &id);
	if (fd >= 0) {
		memory = obj->file;
		obj->file = elf_file__from_fd(fd);
		if (obj->file && object_file__same_build_id(obj->file, memory)) {
			elf_file__free(memory);
			elf_image__free(&obj->image);
			obj->id = id;
			obj->id.start = base->start;
		} else {
			elf_file__free(obj->file);
			obj->file = memory;
		}
	}
	return 0;
}

static int find_file(struct objects *o, struct place *place)
{
	struct object_file_id id;
	struct object *obj;
	int fd;

	fd = object_file__open_mapped(o->pid, &place->map, &id);
	/* the mapping may have been split or joined since: try the file's others */
	for (struct place *p = o->places; fd == -ENOENT && p < o->places + o->n; p++) {
		if (p != place && same_file(&p->map, &place->map))
			fd = object_file__open_mapped(o->pid, &p->map, &id);
	}
	if (fd == -EINVAL || fd == -EMFILE || fd == -ENFILE)
		return fd; /* not a regular file; or it is we who cannot open one more */
	if (fd < 0)
		return find_without_map_files(o, place);
	for (obj = o->list; obj; obj = obj->next) {
		if (!obj->vdso && object_file__same(&obj->id, &id)) {
			close(fd);
			place->object = obj;
			return obj->err;
		}
	}
	obj = object_new(o, place->map.path);
	if (!obj) {
		close(fd);
		return -ENOMEM;
	}
	place->object = obj;
	obj->id = id;
	obj->file = elf_file__from_fd(fd);
	if (!obj->file)
		obj->err = -errno;
	return obj->err;
}

/* Code copied to huge pages: no file is mapped there, but the segment's place is known. */
static int find_remapped(struct objects *o, struct place *place)
{
	for (struct place *p = place; p > o->places;) {
		const Elf64_Phdr *segments;
		struct object *obj;
		uint64_t bias, in;
		size_t n;

		p--;
		if (!p->map.inode)
			continue;
		if (objects__find(o, p->map.start, &obj, &bias))
			break;
		segments = elf_file__segments(obj->file, &n);
		for (size_t i = 0; i < n; i++) {
			in = place->map.start - bias - segments[i].p_vaddr;
			if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X) &&
			    in < segments[i].p_memsz) {
				place->object = obj;
				place->bias = bias;
				return 0;
			}
		}
		break;
	}
	return -ENOEXEC;
}

static int resolve(struct objects *o, struct place *place)
{
	const struct mapping *m = &place->map;
	bool vdso = !m->inode && !strcmp(m->path, "[vdso]");
	int err;

	if (!m->inode && !vdso)
		return find_remapped(o, place);
	err = vdso ? find_vdso(o, place) : find_file(o, place);
	if (err)
		return err;
	err = find_bias(o, place, &place->bias);
	if (err)
		return err;
	return place->object->from ? 0 : find_from(o, place);
}

int objects__find(struct objects *o, uint64_t addr, struct object **ret_object, uint64_t *ret_bias)
{
	struct place *place = find_place(o, addr);

	if (!place)
		return -ENOENT;
	if (!place->resolved) {
		place->err = resolve(o, place);
		place->resolved = true;
	}
	if (place->err)
		return place->err == -ENOENT ? -EINVAL : place->err;
	*ret_object = place->object;
	*ret_bias = place->bias;
	return 0;
}

bool objects__executable(const struct objects *o, uint64_t addr)
{
	const struct place *place = find_place(o, addr);

	return place && place->map.executable;
}
