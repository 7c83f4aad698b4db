/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ksyms: the kernel's code symbols, modules' and BPF programs' included, from /proc/kallsyms.
 * Names are owned by the struct ksyms.
 */
#ifndef PMP_KSYMS_H
#define PMP_KSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct ksyms;

/* `path`: NULL for /proc/kallsyms. NULL with errno. Lines that make no sense are skipped. */
struct ksyms *ksyms__new(const char *path);
void ksyms__free(struct ksyms *k);

/* The symbol that `addr` lies in (of several at its start the first, as the kernel itself has
 * it), or NULL. */
const char *ksyms__find(const struct ksyms *k, uint64_t addr);

/* Where the symbol of this name is, or 0. Looks through all of them. */
uint64_t ksyms__address(const struct ksyms *k, const char *name);

/* True if the kernel gave no addresses (kptr_restrict, or no privilege). */
bool ksyms__hidden(const struct ksyms *k);

#endif
