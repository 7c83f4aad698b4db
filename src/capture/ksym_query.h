/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ksym_query: asks the running kernel for a symbol by its address or name, by a BPF program
 * (bpf/ksym_query.bpf.c): some 2 microseconds each, where /proc/kallsyms takes tens of
 * milliseconds. The functions fit struct kernel_names_source.
 */
#ifndef PMP_KSYM_QUERY_H
#define PMP_KSYM_QUERY_H

#include <stdint.h>

struct ksym_query;

/* NULL with errno: the kernel is older than 5.16, or BPF is not permitted. */
struct ksym_query *ksym_query__new(void);
void ksym_query__free(struct ksym_query *q);

/* The symbol that `addr` lies in, valid until the next call; of several at its start the first.
 * *ret_name is NULL if it lies in none. Returns 0, or -errno: the kernel does not say. */
int ksym_query__name(void *query, uint64_t addr, const char **ret_name);

/* Where the symbol is; *ret_addr is 0 if there is none of this name. Returns 0 or -errno. */
int ksym_query__address(void *query, const char *name, uint64_t *ret_addr);

#endif
