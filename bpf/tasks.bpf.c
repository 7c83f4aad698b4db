// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tasks: reads every thread of one process: registers, kernel stack, stack memory.
 *
 * A thread that sleeps is read by an iterator, from outside. It is read whole between two looks
 * at its switch count: if that did not move and the thread was on no CPU, it did not run in
 * between, and what was read is its stack at one instant. A thread that runs cannot be read from
 * outside; a timer interrupt on its CPU reads it, which is exact by itself.
 */
#include "kernel_compat.bpf.h"
#include "abi.h"

char LICENSE[] SEC("license") = "GPL";

/* set by user space between runs */
pmp_u32 only_wanted; /* the iterator passes over threads that `wanted` does not hold */
pmp_u32 with_kernel; /* take kernel stacks */
pmp_u32 with_memory; /* copy stack memory (the sleepable iterator only) */
pmp_u32 filter_tgid; /* the process to take, in the reader's pid namespace */

/* set by the iterator, read by the sampler; user space clears them for another process */
pmp_u32 target_tgid;  /* in the initial pid namespace */
pmp_u32 reader_level; /* depth of the reader's pid namespace */

pmp_u64 samples_dropped; /* ring buffer full; the thread is tried again at the next tick */

/* Threads not read well yet, by kernel_tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, pmp_u32);
	__type(value, pmp_u32);
} wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} samples SEC(".maps");

/* An iterator runs on one CPU at a time, and only we read it: one scratch is enough. */
struct scratch {
	struct pmp_task task;
	pmp_u64 kernel[PMP_KERNEL_FRAMES];
	pmp_u8 stack[PMP_TASK_PAGES * PMP_PAGE];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, pmp_u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline void put_regs(struct pmp_task *t, const struct pt_regs *r)
{
	t->regs[0] = r->ax;
	t->regs[1] = r->dx;
	t->regs[2] = r->cx;
	t->regs[3] = r->bx;
	t->regs[4] = r->si;
	t->regs[5] = r->di;
	t->regs[6] = r->bp;
	t->regs[7] = r->sp;
	t->regs[8] = r->r8;
	t->regs[9] = r->r9;
	t->regs[10] = r->r10;
	t->regs[11] = r->r11;
	t->regs[12] = r->r12;
	t->regs[13] = r->r13;
	t->regs[14] = r->r14;
	t->regs[15] = r->r15;
	t->regs[16] = r->ip;
	t->cs = r->cs & 0xffff;
}

static __always_inline pmp_u64 switch_count(struct task_struct *task)
{
	return BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

static __always_inline pmp_u32 on_cpu(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->on_cpu))
		return 0; /* one CPU: it is ours */
	/* a byte in newer kernels: this macro reads as much as the field has */
	return BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu);
}

static __always_inline void put_task(struct pmp_task *t, struct task_struct *task)
{
	unsigned int flags = BPF_CORE_READ(task, flags);

	t->kernel_tid = BPF_CORE_READ(task, pid);
	t->tid = task_ns_pid(task, reader_level);
	t->flags = 0;
	t->state = task_state(task);
	t->runtime = BPF_CORE_READ(task, se.sum_exec_runtime);
	t->start_time = BPF_CORE_READ(task, start_time);
	t->thread_pointer = BPF_CORE_READ(task, thread.fsbase);
	t->n_kernel = 0;
	t->stack_len = 0;
	t->reserved = 0;
	BPF_CORE_READ_INTO(&t->comm, task, comm);
	if (flags & PF_EXITING)
		t->flags |= PMP_TASK_EXITING;
	if ((flags & PF_KTHREAD) || !BPF_CORE_READ(task, mm))
		t->flags |= PMP_TASK_NO_MEMORY;
}

/* One function for both iterators; `sleepable` is a constant in each. */
static __always_inline int read_task(struct bpf_iter__task *ctx, const bool sleepable)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct pt_regs regs;
	struct scratch *s;
	pmp_u32 zero = 0, tid, tgid, size, len = 0;
	pmp_u64 at;
	long n;

	if (!task)
		return 0;
	/* in a walk over all tasks most are not the target's: one number tells, once it is known */
	tgid = BPF_CORE_READ(task, tgid);
	if (target_tgid && tgid != target_tgid)
		return 0;
	reader_level = task_ns_level((struct task_struct *)bpf_get_current_task());
	if (task_ns_pid(BPF_CORE_READ(task, group_leader), reader_level) != filter_tgid)
		return 0;
	target_tgid = tgid;
	tid = BPF_CORE_READ(task, pid);
	if (only_wanted && !bpf_map_lookup_elem(&wanted, &tid))
		return 0;
	s = bpf_map_lookup_elem(&scratches, &zero);
	if (!s)
		return 0;

	put_task(&s->task, task);
	s->task.switches = switch_count(task);
	if (on_cpu(task))
		s->task.flags |= PMP_TASK_ON_CPU;
	if (bpf_probe_read_kernel(&regs, sizeof(regs), task_user_regs(task)))
		s->task.flags |= PMP_TASK_MOVED; /* it is read again */
	else
		put_regs(&s->task, &regs);
	if (with_kernel) {
		n = bpf_get_task_stack(task, s->kernel, sizeof(s->kernel), 0);
		if (n > 0)
			s->task.n_kernel = (pmp_u32)n / 8;
	}
	if (sleepable && with_memory && !(s->task.flags & (PMP_TASK_ON_CPU | PMP_TASK_NO_MEMORY))) {
		/* page by page: the first that is not mapped ends the stack */
		at = s->task.regs[7] & ~7ULL;
		for (int i = 0; i < PMP_TASK_PAGES; i++) {
			pmp_u32 part = PMP_PAGE - (at & (PMP_PAGE - 1));

			if (part > PMP_PAGE || len > sizeof(s->stack) - PMP_PAGE)
				break;
			if (bpf_copy_from_user_task(s->stack + len, part, (void *)at, task, 0))
				break;
			len += part;
			at += part;
		}
		s->task.stack_len = len;
	}
	if (on_cpu(task))
		s->task.flags |= PMP_TASK_ON_CPU;
	if (switch_count(task) != s->task.switches)
		s->task.flags |= PMP_TASK_MOVED;

	/* where the buffer is full the kernel drops all three and calls us again for this task */
	bpf_seq_write(seq, &s->task, sizeof(s->task));
	/* one bound each, zero is fine: of a range, clang makes what older verifiers do not see */
	size = s->task.n_kernel * 8;
	if (size <= sizeof(s->kernel))
		bpf_seq_write(seq, s->kernel, size);
	if (len <= sizeof(s->stack))
		bpf_seq_write(seq, s->stack, len);
	return 0;
}

SEC("iter.s/task")
int read_task_sleepable(struct bpf_iter__task *ctx)
{
	return read_task(ctx, true);
}

/* Before 5.18: no memory; user space reads it and compares the switch counts of two runs. */
SEC("iter/task")
int read_task_plain(struct bpf_iter__task *ctx)
{
	return read_task(ctx, false);
}

SEC("perf_event")
int sample_running(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	pmp_u64 id = bpf_get_current_pid_tgid(), at;
	pmp_u32 tid = (pmp_u32)id, len = 0;
	struct pmp_sample *s;
	struct pt_regs regs;
	long n;

	if (id >> 32 != target_tgid || !bpf_map_lookup_elem(&wanted, &tid))
		return 0;
	s = bpf_ringbuf_reserve(&samples, sizeof(*s), 0);
	if (!s) {
		__sync_fetch_and_add(&samples_dropped, 1);
		return 0;
	}
	put_task(&s->task, task);
	s->task.flags |= PMP_TASK_SAMPLE;
	s->task.switches = switch_count(task);
	if ((ctx->regs.cs & 3) == 3) {
		put_regs(&s->task, &ctx->regs);
	} else if (!bpf_probe_read_kernel(&regs, sizeof(regs), current_user_regs())) {
		put_regs(&s->task, &regs);
		if (with_kernel) {
			n = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
			if (n > 0)
				s->task.n_kernel = (pmp_u32)n / 8;
		}
	} else {
		bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
		return 0;
	}
	/* cannot fault pages in: a page that is not there ends the copy, and user space goes on */
	at = s->task.regs[7] & ~7ULL;
	for (int i = 0; i < PMP_SAMPLE_PAGES; i++) {
		pmp_u32 part = PMP_PAGE - (at & (PMP_PAGE - 1));

		if (part > PMP_PAGE || len > sizeof(s->stack) - PMP_PAGE)
			break;
		if (bpf_probe_read_user(s->stack + len, part, (void *)at))
			break;
		len += part;
		at += part;
	}
	s->task.stack_len = len;
	/* before it is handed over: user space may want the thread again once it has seen this */
	bpf_map_delete_elem(&wanted, &tid);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return 0;
}
