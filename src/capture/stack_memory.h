/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_memory: the words of a target that the unwinder asks for: from the copy that came with a
 * thread's record where that holds them, else from the process itself (/proc/PID/mem).
 */
#ifndef PMP_STACK_MEMORY_H
#define PMP_STACK_MEMORY_H

#include "proc/maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stack_memory;

/* NULL with errno ENOMEM. */
struct stack_memory *stack_memory__new(void);
void stack_memory__free(struct stack_memory *m);

/* The process, by any thread of it that lives. */
void stack_memory__set_thread(struct stack_memory *m, pid_t tid);

/* The process' mappings, borrowed until they are set again; NULL: none are known. */
void stack_memory__set_maps(struct stack_memory *m, const struct maps *maps);

/* Start with a new thread, whose memory from `base` (a multiple of 8) on is in `copy`, which is
 * borrowed. */
void stack_memory__start(struct stack_memory *m, uint64_t base, const uint8_t *copy, size_t len);

/* Returns 0, or -EFAULT, -EPERM, ... Reading the process itself takes its memory lock. */
int stack_memory__read_word(struct stack_memory *m, uint64_t addr, uint64_t *ret_word);

/* Whether, since the start, a word that the target may write was read from the process itself:
 * what was read is then exact only if the thread has not run since its copy was made. */
bool stack_memory__read_live(const struct stack_memory *m);

#endif
