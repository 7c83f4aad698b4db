/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps: the mappings of one process, as /proc/PID/maps has them (proc(5)).
 * Mappings and their paths are owned by the struct maps.
 */
#ifndef PMP_MAPS_H
#define PMP_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mapping {
	uint64_t start, end; /* [start, end) in the target */
	uint64_t offset;     /* of `start` in the file, in bytes */
	uint64_t inode;	     /* 0: no file */
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable;
	bool deleted;	  /* the path carried " (deleted)", which is cut from it */
	const char *path; /* unescaped; "" where there is none; "[vdso]" and the like */
};

struct maps;

/* Parse the text of a maps file. NULL with errno ENOMEM or EINVAL. Lines that make no sense are
 * skipped; overlapping or unsorted mappings are an EINVAL. */
struct maps *maps__parse(const char *text, size_t len);

/* Read /proc/PID/maps. NULL with errno (ESRCH, EACCES, ENOMEM, ...). May block while a thread of
 * the target holds its memory lock for writing: call it where waiting is bounded. */
struct maps *maps__read(pid_t pid);

void maps__free(struct maps *m);

/* The mapping that holds `addr`, or NULL. */
const struct mapping *maps__find(const struct maps *m, uint64_t addr);

/* All mappings in ascending order. */
const struct mapping *maps__all(const struct maps *m, size_t *ret_n);

#endif
