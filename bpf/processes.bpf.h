/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * processes: which processes are sampled, and news of them for user space. Pids are those of the
 * reader's pid namespace; a process that has none there is not sampled.
 */
#ifndef PMP_PROCESSES_BPF_H
#define PMP_PROCESSES_BPF_H

#include "stacks.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, pmp_u32);
	__type(value, struct pmp_process);
} processes SEC(".maps");

const volatile bool take_all;		     /* every process */
const volatile char take_comm[PMP_COMM_LEN]; /* processes of this name, if not "" */

/* where user space itself is, found out by learn_reader */
pmp_u32 reader_depth;
pmp_u64 reader_ns;

/* Run once, by user space for itself. */
SEC("raw_tp")
int learn_reader(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid upid;

	reader_depth = BPF_CORE_READ(pid, level);
	bpf_probe_read_kernel(&upid, bpf_core_type_size(struct upid),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      reader_depth * bpf_core_type_size(struct upid));
	reader_ns = (pmp_u64)upid.ns;
	return 0;
}

/* 0: it cannot be seen from there. */
static __always_inline pmp_u32 pid_for_reader(struct task_struct *task)
{
	struct pmp_pid_number {
		pmp_u64 word[2];
	} number;
	struct pid *pid;
	void *at;

	if (!reader_depth)
		return BPF_CORE_READ(task, pid);
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid || reader_depth > BPF_CORE_READ(pid, level))
		return 0;
	at = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	     reader_depth * bpf_core_type_size(struct upid);
	if (bpf_probe_read_kernel(&number.word[0], 8,
				  at + bpf_core_field_offset(struct upid, ns)) ||
	    number.word[0] != reader_ns)
		return 0;
	number.word[1] = 0;
	bpf_probe_read_kernel(&number.word[1], 4, at + bpf_core_field_offset(struct upid, nr));
	return (pmp_u32)number.word[1];
}

static __always_inline pmp_u32 process_for_reader(struct task_struct *task)
{
	if (!reader_depth)
		return BPF_CORE_READ(task, tgid);
	return pid_for_reader(BPF_CORE_READ(task, group_leader));
}

/* Returns 0, or -1: it found no room. */
static __always_inline int tell_news(pmp_u32 type, pmp_u32 pid, pmp_u32 other, pmp_u32 generation)
{
	struct pmp_event event = {
		.type = type,
		.pid = pid,
		.other_pid = other,
		.generation = generation,
		.time = bpf_ktime_get_ns(),
	};
	struct pmp_stats *st;

	if (!bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_FORCE_WAKEUP))
		return 0;
	st = this_stats();
	if (st)
		st->asks_lost++;
	return -1;
}

static __always_inline void ask(struct pmp_process *p, pmp_u32 pid)
{
	if (p->asked)
		return;
	p->asked = 1;
	if (tell_news(PMP_EVENT_LOOK, pid, 0, p->generation))
		p->asked = 0; /* the next sample asks again */
}

static __always_inline bool has_wanted_name(struct task_struct *task)
{
	char comm[PMP_COMM_LEN] = {};

	if (!take_comm[0])
		return false;
	BPF_CORE_READ_INTO(&comm, task, group_leader, comm);
	for (int i = 0; i < PMP_COMM_LEN; i++) {
		if (comm[i] != take_comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

/* The process of `task` if it is to be sampled, else NULL. */
static __always_inline struct pmp_process *wanted_process(struct task_struct *task,
							  pmp_u32 *ret_pid)
{
	pmp_u32 pid = process_for_reader(task);
	struct pmp_process *p, unknown = {};
	pmp_u32 nobody = PMP_NOBODY;

	if (!pid)
		return NULL;
	*ret_pid = pid;
	p = bpf_map_lookup_elem(&processes, &pid);
	if (p)
		return p;
	if (!take_all && !has_wanted_name(task))
		return NULL;
	if (!(BPF_CORE_READ(task, flags) & PF_EXITING)) {
		bpf_map_update_elem(&processes, &pid, &unknown, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&processes, &pid);
		if (p)
			return p;
	}
	return bpf_map_lookup_elem(&processes, &nobody);
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	pmp_u32 pid = process_for_reader(task);
	struct pmp_process *p = bpf_map_lookup_elem(&processes, &pid);

	if (!p)
		return 0;
	p->n_mappings = 0;
	p->generation = 0;
	p->asked = 1;
	if (tell_news(PMP_EVENT_EXEC, pid, 0, 0))
		p->asked = 0;
	return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	pmp_u32 parent_pid, pid;
	struct pmp_process *p, copy;

	if (!take_all && !take_comm[0])
		return 0;
	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0; /* a thread */
	parent_pid = process_for_reader(parent);
	p = bpf_map_lookup_elem(&processes, &parent_pid);
	if (!p)
		return 0;
	copy = *p;
	copy.asked = 0;
	pid = process_for_reader(child);
	if (!pid)
		return 0;
	bpf_map_update_elem(&processes, &pid, &copy, BPF_ANY);
	/* user space would not know that the child has these mappings, too */
	if (tell_news(PMP_EVENT_FORK, pid, parent_pid, copy.generation))
		bpf_map_delete_elem(&processes, &pid);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	pmp_u32 pid;

	if (BPF_CORE_READ(task, signal, live.counter))
		return 0; /* other threads go on */
	pid = process_for_reader(task);
	if (!bpf_map_lookup_elem(&processes, &pid))
		return 0;
	bpf_map_delete_elem(&processes, &pid);
	tell_news(PMP_EVENT_EXIT, pid, 0, 0);
	return 0;
}

#endif
