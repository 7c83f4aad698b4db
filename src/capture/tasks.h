/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks: the BPF programs that read the threads of a process, loaded and ready to run.
 * Records are borrowed: valid until the callback returns.
 */
#ifndef PMP_TASKS_H
#define PMP_TASKS_H

#include "base/error.h"
#include "bpf/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tasks;

struct tasks_options {
	bool kernel_stacks;
	bool plain; /* do not try the sleepable iterator */
};

/* One thread as the kernel handed it over. */
struct task_record {
	const struct pmp_task *task;
	const uint64_t *kernel; /* task->n_kernel addresses */
	const uint8_t *stack;	/* task->stack_len bytes from task->regs[rsp] & ~7 on */
};

/* A value other than 0 ends the run and is handed on. */
typedef int (*task_fn)(const struct task_record *record, void *arg);

/* Load the programs. NULL with errno and `e` set: EPERM (which capability is missing), ENOENT
 * (kernel without BTF), EOPNOTSUPP (kernel below the floor), ... */
struct tasks *tasks__new(const struct tasks_options *options, struct error *e);
void tasks__free(struct tasks *t);

/* Whether records carry stack memory and are exact by themselves (kernel 5.18 and later). */
bool tasks__sleepable(const struct tasks *t);

struct tasks_pass {
	bool only_wanted; /* only threads that were marked */
	bool with_memory; /* else the records carry no stack */
	/*
	 * Walk all tasks of the machine and pick the process' own. Without it the kernel walks the
	 * process alone, which is quicker; but that walk ends early, without a word, at a thread
	 * that exits just then.
	 */
	bool walk_all;
};

/*
 * Call `fn` for each thread of `pid`. May block while a thread of the target holds its memory
 * lock. Returns 0, -errno, or what fn returned.
 */
int tasks__each(struct tasks *t, pid_t pid, const struct tasks_pass *pass, task_fn fn, void *arg);

/* Mark a thread, by its kernel_tid, for tasks__each() and the sampler, or take the mark back.
 * -E2BIG: too many are marked; it will have to wait. */
int tasks__want(struct tasks *t, uint32_t kernel_tid);
void tasks__unwant(struct tasks *t, uint32_t kernel_tid);

/* Sample the wanted threads of the process that tasks__each() last ran on, while they run: on
 * every CPU, each `period_ns` of its time. A thread that was sampled is no longer wanted. */
int tasks__start_sampling(struct tasks *t, uint64_t period_ns, struct error *e);
void tasks__stop_sampling(struct tasks *t);

/* Call `fn` for each sample taken since the last call. */
int tasks__drain_samples(struct tasks *t, task_fn fn, void *arg);

/* Samples that found no room so far; their threads were sampled again at the next tick. */
uint64_t tasks__samples_dropped(const struct tasks *t);

#endif
