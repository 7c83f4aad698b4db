/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object: the ELF objects mapped by a process (program, libraries, vdso), found and opened once.
 * A struct objects owns its objects; a struct object is borrowed from it and stays valid until
 * objects__free(). Nothing in an object's bytes is trusted.
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

struct object_eh_frame { /* see unwind/eh_frame.h; the bytes live as long as the object */
	const uint8_t *eh_frame;
	size_t eh_frame_len;
	uint64_t eh_frame_addr;
	const uint8_t *hdr;
	size_t hdr_len;
	uint64_t hdr_addr;
};

/* NULL with errno. The process' exe and link map are read at the first need. */
struct objects *objects__new(pid_t pid);
void objects__free(struct objects *o);

/* Read by way of this thread of the process: its leader may have left before the others did, and
 * has no memory then. */
void objects__set_thread(struct objects *o, pid_t tid);

/* Take note of new mappings (a dlopen between two iterations). Objects already found stay. */
int objects__set_maps(struct objects *o, const struct maps *maps);

/*
 * The object whose mapping holds `addr`, and its bias: address in the target minus address in
 * the object (start - offset - (p_vaddr - p_offset) of the matching PT_LOAD).
 * Returns 0; -ENOENT: no executable or file mapping there; -EINVAL etc.: there is a mapping, but
 * its object cannot be read (remembered: it is not tried again).
 */
int objects__find(struct objects *o, uint64_t addr, struct object **ret_object, uint64_t *ret_bias);

/* Whether addr lies in an executable mapping at all (JIT code included). */
bool objects__executable(const struct objects *o, uint64_t addr);

/* The libelf handle (read by pread, never mmap: a file that is cut while we read must not kill
 * us). Owned by the object. */
Elf *object__elf(struct object *obj);

/* The same file through bounds-checked access; owned by the object. */
struct elf_file *object__file(struct object *obj);

/* Returns 0, or -ENOENT where the object has none. */
int object__eh_frame(struct object *obj, struct object_eh_frame *ret_bytes);

/* What gdb prints after " from ": the link map's name, else the mapping's path; "" for the main
 * program and the vdso. */
const char *object__from(const struct object *obj);

/* Build id, NULL and 0 where there is none. Returns the bytes. */
const uint8_t *object__build_id(const struct object *obj, size_t *ret_len);

/* Path as mapped, for messages and for looking up debug files; untrusted bytes. */
const char *object__path(const struct object *obj);

/* Any pointer that belongs to the object, freed by `free_fn` with it (one slot per user). */
enum object_slot { OBJECT_SLOT_UNWIND, OBJECT_SLOT_SYMBOLS, OBJECT_N_SLOTS };
void object__set_slot(struct object *obj, enum object_slot slot, void *data,
		      void (*free_fn)(void *));
void *object__slot(const struct object *obj, enum object_slot slot);

#endif
