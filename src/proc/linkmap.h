/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkmap: the dynamic linker's list of loaded objects, read from the target's memory: what gdb
 * takes the names of libraries from. The entries are owned by the struct linkmap.
 */
#ifndef PMP_LINKMAP_H
#define PMP_LINKMAP_H

#include "proc/memory.h"

struct linkmap_entry {
	uint64_t dynamic; /* address of the object's dynamic section in the target (l_ld) */
	const char *name; /* untrusted bytes; "" for the main program */
};

/* What the kernel told the program when it was started (AT_*); 0: not there. */
struct linkmap_start {
	uint64_t phdr, n_phdr, entry;
};

struct linkmap;

/* Read /proc/PID/auxv. Returns 0 or -errno. */
int linkmap__start(pid_t pid, struct linkmap_start *ret_start);

/*
 * All link map namespaces that can be followed; possibly none (a static program, one that has
 * just been started). NULL with errno ENOMEM.
 */
struct linkmap *linkmap__read(memory_read_fn read, void *arg, const struct linkmap_start *start);
void linkmap__free(struct linkmap *l);

const struct linkmap_entry *linkmap__entries(const struct linkmap *l, size_t *ret_n);

#endif
