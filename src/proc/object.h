/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object: the ELF objects mapped by a process (program, libraries, vdso), found and opened once.
 * An object is shared by the processes that map it (object_cache.h) and lives while anybody holds
 * a reference: a struct objects holds one of each object that it has found, until
 * objects__forget_old() or objects__free(); who needs an object for longer takes his own. Nothing
 * in an object's bytes is trusted.
 *
 * An object is looked for in this order: /proc/PID/map_files/RANGE (right for deleted and replaced
 * files too); /proc/PID/root/PATH if its build id equals the one in the target's memory; the
 * target's own memory. A file that is not regular is never read.
 */
#ifndef PMP_OBJECT_H
#define PMP_OBJECT_H

#include "proc/elf_file.h"
#include "proc/maps.h"

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct object;
struct objects;
struct object_cache;

/* What is mapped in one range of a process. */
struct code_place {
	uint64_t start, end;
	/* NULL: `err` says why; in anonymous memory that is JIT code. Borrowed from the struct
	 * objects. */
	struct object *object;
	uint64_t bias; /* address in the target minus address in the object */
	/* What gdb prints after " from " in this process: the link map's name, else the mapping's
	 * path; "" for the main program and the vdso. Owned by the cache. NULL without an object.
	 */
	const char *from;
	bool anonymous; /* no file is mapped there, nor is it the vdso */
	int err;	/* 0, or as objects__find() returns it */
};

struct object_eh_frame { /* see unwind/eh_frame.h; the bytes live as long as the object */
	const uint8_t *eh_frame;
	size_t eh_frame_len;
	uint64_t eh_frame_addr;
	const uint8_t *hdr;
	size_t hdr_len;
	uint64_t hdr_addr;
};

/* NULL with errno. The process' exe and link map are read at the first need. The cache is
 * borrowed. */
struct objects *objects__new(pid_t pid, struct object_cache *cache);
void objects__free(struct objects *o);

/* Read by way of this thread of the process: its leader may have left before the others did, and
 * has no memory then. */
void objects__set_thread(struct objects *o, pid_t tid);

/* Take note of new mappings (a dlopen between two iterations). Objects already found stay. */
int objects__set_maps(struct objects *o, const struct maps *maps);

/* Let go of the objects that no mapping is known to be of any more. */
void objects__forget_old(struct objects *o);

/*
 * The object whose mapping holds `addr`, and its bias: address in the target minus address in
 * the object (start - offset - (p_vaddr - p_offset) of the matching PT_LOAD).
 * Returns 0; -ENOENT: no executable or file mapping there; -EINVAL etc.: there is a mapping, but
 * its object cannot be read (remembered: it is not tried again).
 */
int objects__find(struct objects *o, uint64_t addr, struct object **ret_object, uint64_t *ret_bias);

/* The same with all that is known of the place. */
int objects__resolve(struct objects *o, uint64_t addr, struct code_place *ret_place);

/*
 * Each executable mapping of the process, in ascending order, its object found first. `place` is
 * valid until `fn` returns, which must not change the mappings. Ends with what `fn` returns if
 * that is not 0. Returns that, or 0.
 */
int objects__each_code(struct objects *o, int (*fn)(const struct code_place *place, void *arg),
		       void *arg);

/* Whether addr lies in an executable mapping at all (JIT code included). */
bool objects__executable(const struct objects *o, uint64_t addr);

/* Returns `obj`. Both take NULL. With the last reference the object goes, and its file, tables and
 * slots. */
struct object *object__ref(struct object *obj);
void object__unref(struct object *obj);

/* The libelf handle (read by pread, never mmap: a file that is cut while we read must not kill
 * us). Owned by the object. */
Elf *object__elf(struct object *obj);

/* The same file through bounds-checked access; owned by the object. */
struct elf_file *object__file(struct object *obj);

/* Returns 0, or -ENOENT where the object has none. */
int object__eh_frame(struct object *obj, struct object_eh_frame *ret_bytes);

/* Build id, NULL and 0 where there is none. Returns the bytes. */
const uint8_t *object__build_id(const struct object *obj, size_t *ret_len);

/* Path as mapped by the process that was the first to map it, for messages and for looking up
 * debug files; untrusted bytes. */
const char *object__path(const struct object *obj);

/* The root folder (O_PATH) that the path is in; -1: ours. Owned by the object. */
int object__root(const struct object *obj);

/* Any pointer that belongs to the object, freed by `free_fn` with it (one slot per user). */
enum object_slot { OBJECT_SLOT_UNWIND, OBJECT_SLOT_SYMBOLS, OBJECT_SLOT_TABLE, OBJECT_N_SLOTS };
void object__set_slot(struct object *obj, enum object_slot slot, void *data,
		      void (*free_fn)(void *));
void *object__slot(const struct object *obj, enum object_slot slot);

#endif
