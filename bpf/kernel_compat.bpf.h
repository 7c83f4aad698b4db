/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_compat: the few kernel types that our programs read, with CO-RE relocations, so that
 * the build needs neither vmlinux.h nor a kernel with BTF. Offsets are the running kernel's;
 * only the names here must be right. ___suffixes name older shapes of a type.
 */
#ifndef PMP_KERNEL_COMPAT_BPF_H
#define PMP_KERNEL_COMPAT_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

#define TASK_INTERRUPTIBLE 0x01
#define TASK_DEAD	   0x80
#define EXIT_DEAD	   0x10
#define EXIT_ZOMBIE	   0x20

/*
 * Not relocated: this layout is an ABI (it is what ptrace and perf hand out), and a program may
 * read the context of a perf_event only in whole words, while kernels with FRED split cs.
 */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};

struct bpf_perf_event_data {
	struct pt_regs regs;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct sched_entity {
	__u64 sum_exec_runtime;
};

struct thread_struct {
	unsigned long fsbase;
};

struct mm_struct;

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct task_struct {
	unsigned int __state; /* 5.14 and later */
	void *stack;
	unsigned int flags;
	int on_cpu; /* a byte by 7.3 */
	struct sched_entity se;
	struct mm_struct *mm;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	unsigned long nvcsw;
	unsigned long nivcsw;
	__u64 start_time;
	char comm[16];
	struct thread_struct thread;
};

struct task_struct___5_13 {
	volatile long state;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* These helpers are known from 5.11 and 5.15 on; asked of the running kernel, not of our headers.
 */
enum bpf_func_id___pmp {
	BPF_FUNC_get_current_task_btf___pmp = 158,
	BPF_FUNC_task_pt_regs___pmp = 175,
};

/* Kernel stacks of x86-64 are 16 KiB wherever the helpers are missing. */
#define PMP_THREAD_SIZE 16384

static __always_inline struct pt_regs *regs_at_stack_top(const struct task_struct *task)
{
	return (struct pt_regs *)(BPF_CORE_READ(task, stack) + PMP_THREAD_SIZE -
				  sizeof(struct pt_regs));
}

/* The user registers that the kernel saved when the task last entered it. */
static __always_inline struct pt_regs *task_user_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id___pmp, BPF_FUNC_task_pt_regs___pmp))
		return (struct pt_regs *)bpf_task_pt_regs(task);
	return regs_at_stack_top(task);
}

/* The same of the current task. */
static __always_inline struct pt_regs *current_user_regs(void)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id___pmp, BPF_FUNC_task_pt_regs___pmp) &&
	    bpf_core_enum_value_exists(enum bpf_func_id___pmp, BPF_FUNC_get_current_task_btf___pmp))
		return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return regs_at_stack_top((void *)bpf_get_current_task());
}

static __always_inline unsigned int task_state(const struct task_struct *task)
{
	const struct task_struct___5_13 *old = (const void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return (unsigned int)BPF_CORE_READ(old, state);
}

static __always_inline unsigned int task_ns_level(const struct task_struct *task)
{
	return BPF_CORE_READ(task, thread_pid, level);
}

/* The task's number in the pid namespace at `level`; 0 where it has none there. */
static __always_inline unsigned int task_ns_pid(const struct task_struct *task, unsigned int level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int nr = 0;

	if (!pid || level > BPF_CORE_READ(pid, level))
		return 0;
	bpf_probe_read_kernel(&nr, sizeof(nr),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * bpf_core_type_size(struct upid));
	return nr;
}

#endif
