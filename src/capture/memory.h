/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory: the words of a target that the unwinder asks for: from the copy that came with a
 * thread's record where that holds them, else from the process itself (process_vm_readv(2)).
 */
#ifndef PMP_MEMORY_H
#define PMP_MEMORY_H

#include "proc/maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory;

/* NULL with errno ENOMEM. */
struct memory *memory__new(pid_t pid);
void memory__free(struct memory *m);

/* The process' mappings, borrowed until they are set again; NULL: none are known. */
void memory__set_maps(struct memory *m, const struct maps *maps);

/* Start with a new thread, whose memory from `base` (a multiple of 8) on is in `copy`, which is
 * borrowed. */
void memory__start(struct memory *m, uint64_t base, const uint8_t *copy, size_t len);

/* Returns 0, or -EFAULT, -EPERM, ... Reading the process itself takes its memory lock. */
int memory__read_word(struct memory *m, uint64_t addr, uint64_t *ret_word);

/* Whether, since the start, a word that the target may write was read from the process itself:
 * what was read is then exact only if the thread has not run since its copy was made. */
bool memory__read_live(const struct memory *m);

#endif
