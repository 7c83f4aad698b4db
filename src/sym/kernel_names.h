/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_names: which of the kernel's symbols an address lies in. Asked of a source that knows
 * single ones, where there is one; else, or once it fails, all are read from /proc/kallsyms.
 */
#ifndef PMP_KERNEL_NAMES_H
#define PMP_KERNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_names;

struct kernel_names_source {
	/* The symbol that `addr` lies in, or NULL, valid until the next call. Returns 0, or -errno:
	 * it is not to be asked again. */
	int (*name)(void *arg, uint64_t addr, const char **ret_name);
	/* Where the symbol is, or 0. Returns 0 or -errno. */
	int (*address)(void *arg, const char *name, uint64_t *ret_addr);
	void *arg;
};

/* `source` is copied; NULL: there is none. `path`: NULL for /proc/kallsyms. NULL with errno. Reads
 * nothing yet. */
struct kernel_names *kernel_names__new(const struct kernel_names_source *source, const char *path);
void kernel_names__free(struct kernel_names *k);

/* The symbol that `addr` lies in (of several at its start the first, as the kernel itself has it),
 * or NULL. Valid as long as `k`. */
const char *kernel_names__find(struct kernel_names *k, uint64_t addr);

/* Where the symbol of this name is, or 0. */
uint64_t kernel_names__address(struct kernel_names *k, const char *name);

/* True if names had to come from /proc/kallsyms, and it has no addresses (kptr_restrict, or no
 * privilege). */
bool kernel_names__hidden(const struct kernel_names *k);

#endif
