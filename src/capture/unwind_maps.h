/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_maps: the arrays that the samplers search in the kernel: rows and rules of objects'
 * unwind tables, mappings of processes. An object's table is put there once, whoever maps it, and
 * taken out with the object.
 */
#ifndef PMP_UNWIND_MAPS_H
#define PMP_UNWIND_MAPS_H

#include "bpf/abi.h"
#include "proc/object.h"

#include <stddef.h>
#include <stdint.h>

struct unwind_maps;

/* `wanted`: whether there are to be tables at all; without, code is only known by its place.
 * `spare`: rows to leave room for, for what is loaded during the run. NULL with errno ENOMEM. */
struct unwind_maps *unwind_maps__new(bool wanted, size_t spare);

/* Every object that has a table must be gone before. */
void unwind_maps__free(struct unwind_maps *m);

/* Make the object's table, if it is not made yet. An object that cannot have one has none. Returns
 * 0 or -ENOMEM. */
int unwind_maps__prepare(struct unwind_maps *m, struct object *object);

struct unwind_maps_room {
	size_t rows, rules, mappings; /* entries */
};

/* What there should be room for, given what was prepared. Whole pages. */
struct unwind_maps_room unwind_maps__room(const struct unwind_maps *m);

/* The arrays, of that room, are there: put into them what was prepared. Returns 0 or -errno. */
int unwind_maps__load(struct unwind_maps *m, const struct unwind_maps_room *room, int rows_fd,
		      int rules_fd, int mappings_fd);

/* What a mapping says of its object: base, check, rows. The object's table is put into the arrays
 * if it was not; where there is no more room the code is without. `bias`: see proc/object.h. */
void unwind_maps__describe(struct unwind_maps *m, struct object *object, uint64_t bias,
			   struct pmp_mapping *ret_mapping);

/* Put `n` mappings (over 0) in a row. Returns 0 or -ENOSPC. */
int unwind_maps__put_mappings(struct unwind_maps *m, const struct pmp_mapping *mappings, size_t n,
			      uint32_t *ret_first);
void unwind_maps__drop_mappings(struct unwind_maps *m, uint32_t first, size_t n);

/* Objects whose table found no room. */
size_t unwind_maps__left_out(const struct unwind_maps *m);

#endif
