// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/linkmap.h"
#include "proc/object_cache.h"
#include "proc/object_impl.h"
#include "proc/root.h"

#define PAGE_SIZE 4096ull

/* One mapping and what was found out about it. */
struct place {
	struct mapping map;
	bool resolved;
	int err;
	struct object *object; /* held; NULL: err */
	uint64_t bias;
	const char *from; /* the cache's */
};

/* A reference to an object that the process maps, or has mapped. */
struct held {
	struct object *object;
	const char *from; /* the same for all of its mappings; NULL: not looked for yet */
};

struct objects {
	pid_t pid;
	struct object_cache *cache;
	struct place *places; /* executable and file mappings, ascending */
	size_t n;
	char *paths;
	struct held *held;
	size_t n_held;
	bool started;
	struct linkmap_start start;
	struct linkmap *linkmap; /* NULL: to be read (again) */
};

struct objects *objects__new(pid_t pid, struct object_cache *cache)
{
	struct objects *o = calloc(1, sizeof(*o));

	if (o) {
		o->pid = pid;
		o->cache = cache;
	}
	return o;
}

void objects__free(struct objects *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->n_held; i++)
		object__unref(o->held[i].object);
	free(o->held);
	linkmap__free(o->linkmap);
	free(o->places);
	free(o->paths);
	free(o);
}

/* Takes over the reference to `obj`. */
static struct held *hold(struct objects *o, struct object *obj)
{
	struct held *grown;

	for (size_t i = 0; i < o->n_held; i++) {
		if (o->held[i].object == obj) {
			object__unref(obj);
			return &o->held[i];
		}
	}
	grown = reallocarray(o->held, o->n_held + 1, sizeof(*grown));
	if (!grown) {
		object__unref(obj);
		return NULL;
	}
	o->held = grown;
	o->held[o->n_held] = (struct held){.object = obj};
	return &o->held[o->n_held++];
}

void objects__forget_old(struct objects *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->n_held; i++) {
		bool used = false;

		for (size_t j = 0; j < o->n && !used; j++)
			used = o->places[j].object == o->held[i].object;
		if (used)
			o->held[kept++] = o->held[i];
		else
			object__unref(o->held[i].object);
	}
	o->n_held = kept;
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
			p->resolved = o->places[old].resolved && o->places[old].err != -ESTALE;
			p->err = o->places[old].err;
			p->object = o->places[old].object;
			p->bias = o->places[old].bias;
			p->from = o->places[old].from;
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
static int find_bias(const struct objects *o, const struct mapping *m, const struct object *obj,
		     uint64_t *ret_bias)
{
	const Elf64_Phdr *segments;
	size_t n, best = 0;

	segments = elf_file__segments(obj->file, &n);
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

static bool is_vdso(const struct mapping *m)
{
	return !m->inode && !strcmp(m->path, "[vdso]");
}

static bool is_main(const struct objects *o, const struct mapping *m, const struct object *obj)
{
	const struct place *entry;
	struct object_file_id exe;

	if (o->start.entry) {
		entry = find_place(o, o->start.entry);
		if (entry && (&entry->map == m || same_file(&entry->map, m)))
			return true;
		if (entry && entry->map.inode)
			return false;
	}
	return !object_file__exe(o->pid, &exe) && object_file__same(&exe, &obj->id);
}

/* At the first mapping of the object that is asked for: names are the same for all of them. */
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Whether the dynamic linker's `name` is the mapped file's. The list is read later than the
 * mappings, and by then another library may be where this one was.
 */
static bool names_file(const struct objects *o, const struct mapping *m, const char *name)
{
	struct object_file_id id;
	int fd;

	if (m->deleted || !strcmp(file_name(name), file_name(m->path)))
		return true;
	if (name[0] != '/') /* from a folder that we do not know */
		return false;
	fd = object_file__open_path(o->pid, name, &id);
	if (fd < 0)
		return true;
	close(fd);
	return id.inode == m->inode;
}

static int find_from(struct objects *o, const struct mapping *m, struct held *held)
{
	const struct linkmap_entry *entries;
	const char *from = m->path;
	size_t n;

	if (!o->started && linkmap__start(o->pid, &o->start))
		o->start = (struct linkmap_start){0};
	o->started = true;
	if (is_vdso(m) || is_main(o, m, held->object)) {
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

		if (p && *entries[i].name && same_file(&p->map, m) &&
		    names_file(o, m, entries[i].name)) {
			from = entries[i].name;
			break;
		}
	}
out:
	held->from = object_cache__intern(o->cache, from);
	return held->from ? 0 : -ENOMEM;
}

/* This and what finds objects below return them with a reference. */
static int from_image(struct objects *o, struct elf_image *image, const char *path,
		      struct object **ret_object)
{
	struct object *obj = object_cache__from_image(o->cache, image, path);

	if (!obj)
		return -errno;
	*ret_object = obj;
	return 0;
}

static int find_vdso(struct objects *o, const struct mapping *m, struct object **ret_object)
{
	struct elf_image image;
	int err = elf_image__read(memory__read, &o->pid, m->start, m->end - m->start, &image);

	return err ? err : from_image(o, &image, m->path, ret_object);
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

/* The object of another mapping of the same load. */
static struct object *find_loaded(const struct objects *o, const struct mapping *base)
{
	for (const struct place *p = o->places; p < o->places + o->n; p++) {
		if (p->object && same_file(&p->map, base) && find_base(o, p) == base)
			return p->object;
	}
	return NULL;
}

/* The file by that path, if its build id is the one that the image has. */
static struct object *open_by_path(struct objects *o, const char *path,
				   const struct elf_image *image)
{
	struct elf_file *memory = elf_file__from_memory(image->bytes, image->len);
	struct object_file_id id;
	struct object *obj = NULL;
	int fd = memory ? object_file__open_path(o->pid, path, &id) : -1;

	if (fd >= 0)
		obj = object_cache__open(o->cache, fd, &id, path);
	if (obj && !object_file__same_build_id(obj->file, memory)) {
		object__unref(obj);
		obj = NULL;
	}
	elf_file__free(memory);
	return obj;
}

/* map_files cannot be had: what is in memory tells whether the file by that path is the one. */
static int find_without_map_files(struct objects *o, const struct place *place,
				  struct object **ret_object)
{
	const struct mapping *base = find_base(o, place);
	struct elf_image image;
	struct object *obj;
	int err;

	if (!base)
		return -ENOENT;
	obj = object__ref(find_loaded(o, base));
	if (!obj) {
		err = elf_image__read(memory__read, &o->pid, base->start, 0, &image);
		if (err)
			return err;
		obj = open_by_path(o, place->map.path, &image);
		if (!obj)
			return from_image(o, &image, place->map.path, ret_object);
		elf_image__free(&image);
	}
	*ret_object = obj;
	return 0;
}

/* Whether the file is the one that the process has in its memory, as far as both can be read. */
static bool is_in_memory(struct objects *o, const struct place *place, const struct elf_file *file)
{
	const struct mapping *base = find_base(o, place);
	uint64_t addr, word, mapped;
	const Elf64_Phdr *segments;
	size_t n;

	if (!base || elf_file__fingerprint(file, &addr, &word))
		return true;
	segments = elf_file__segments(file, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Phdr *p = &segments[i];

		/* the first segment, which starts in the file's first page */
		if (p->p_type == PT_LOAD && p->p_offset < PAGE_SIZE) {
			addr += base->start - (p->p_vaddr - p->p_offset);
			return memory__read(&o->pid, addr, &mapped, sizeof(mapped)) ||
			       mapped == word;
		}
	}
	return true;
}

static int find_file(struct objects *o, const struct place *place, struct object **ret_object)
{
	struct object_file_id id;
	struct object *obj;
	bool may_be_copy;
	int fd;

	fd = object_file__open_mapped(o->pid, &place->map, &id);
	/* the mapping may have been split or joined since: try the file's others */
	for (struct place *p = o->places; fd == -ENOENT && p < o->places + o->n; p++) {
		if (p != place && same_file(&p->map, &place->map))
			fd = object_file__open_mapped(o->pid, &p->map, &id);
	}
	if (fd == -ENOENT) /* unmapped since; what is in memory there now is another's */
		return -ESTALE;
	if (fd == -EINVAL || fd == -ESTALE || fd == -EMFILE || fd == -ENFILE)
		return fd; /* not a regular file; or it is we who cannot open one more */
	if (fd < 0)
		return find_without_map_files(o, place, ret_object);
	may_be_copy = object_file__may_be_copy(fd);
	obj = object_cache__open(o->cache, fd, &id, place->map.path);
	if (may_be_copy && (!obj || !is_in_memory(o, place, obj->file))) {
		object__unref(obj);
		return find_without_map_files(o, place, ret_object);
	}
	if (!obj)
		return -errno;
	if (obj->root < 0)
		obj->root = root__open_other(o->pid);
	*ret_object = obj;
	return 0;
}

/* Code copied to huge pages: no file is mapped there, but the segment's place is known. */
static int find_remapped(struct objects *o, struct place *place)
{
	for (struct place *p = place; p > o->places;) {
		const Elf64_Phdr *segments;
		struct code_place code;
		uint64_t in;
		size_t n;

		p--;
		if (!p->map.inode)
			continue;
		if (objects__resolve(o, p->map.start, &code))
			break;
		segments = elf_file__segments(code.object->file, &n);
		for (size_t i = 0; i < n; i++) {
			in = place->map.start - code.bias - segments[i].p_vaddr;
			if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X) &&
			    in < segments[i].p_memsz) {
				place->object = code.object;
				place->bias = code.bias;
				place->from = code.from;
				return 0;
			}
		}
		break;
	}
	return -ENOEXEC;
}

static int find_object(struct objects *o, struct place *place)
{
	const struct mapping *m = &place->map;
	struct object *obj = NULL;
	struct held *held;
	uint64_t bias;
	int err;

	if (!m->inode && !is_vdso(m))
		return find_remapped(o, place);
	err = is_vdso(m) ? find_vdso(o, m, &obj) : find_file(o, place, &obj);
	if (err)
		return err;
	held = hold(o, obj);
	if (!held)
		return -ENOMEM;
	err = find_bias(o, m, obj, &bias);
	if (!err && !held->from)
		err = find_from(o, m, held);
	if (err)
		return err;
	place->object = obj;
	place->bias = bias;
	place->from = held->from;
	return 0;
}

/* -ENOENT is for where nothing is mapped. */
static int resolve(struct objects *o, struct place *place)
{
	if (!place->resolved) {
		place->err = find_object(o, place);
		if (place->err == -ENOENT)
			place->err = -EINVAL;
		place->resolved = true;
	}
	return place->err;
}

static struct code_place describe(const struct place *place)
{
	return (struct code_place){
		.start = place->map.start,
		.end = place->map.end,
		.object = place->object,
		.bias = place->bias,
		.from = place->from,
		.anonymous = !place->map.inode && !is_vdso(&place->map),
		.err = place->err,
	};
}

int objects__find(struct objects *o, uint64_t addr, struct object **ret_object, uint64_t *ret_bias)
{
	struct place *place = find_place(o, addr);
	int err = place ? resolve(o, place) : -ENOENT;

	if (err)
		return err;
	*ret_object = place->object;
	*ret_bias = place->bias;
	return 0;
}

int objects__resolve(struct objects *o, uint64_t addr, struct code_place *ret_place)
{
	struct place *place = find_place(o, addr);
	int err = place ? resolve(o, place) : -ENOENT;

	if (!err)
		*ret_place = describe(place);
	return err;
}

int objects__each_code(struct objects *o, int (*fn)(const struct code_place *place, void *arg),
		       void *arg)
{
	int ret = 0;

	for (struct place *p = o->places; p < o->places + o->n && !ret; p++) {
		struct code_place code;

		if (!p->map.executable)
			continue;
		resolve(o, p);
		code = describe(p);
		ret = fn(&code, arg);
	}
	return ret;
}

bool objects__executable(const struct objects *o, uint64_t addr)
{
	const struct place *place = find_place(o, addr);

	return place && place->map.executable;
}
