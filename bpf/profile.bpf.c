// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profile: the samplers. on_cpu runs at each tick of a sampling event on each CPU; off_cpu at each
 * switch from one thread to another. Both make of what they meet a user stack (unwind.bpf.h) and a
 * kernel stack, send these when they are new (stacks.bpf.h), and count.
 *
 * Each comes twice: by .eh_frame, which needs bpf_loop (5.17), and by frame pointers.
 */
#include "processes.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile bool has_prev_state; /* sched_switch has the state as its fourth argument (5.18) */
const volatile pmp_u32 states = 3; /* off-CPU: bit 0 interruptible, 1 uninterruptible, 2 runnable */
const volatile pmp_u64 min_ns, max_ns = ~0ULL;

pmp_u64 begin_ns; /* off-CPU: time before this does not count; 0: not begun */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, pmp_u32);
	__type(value, struct pmp_wait);
} waits SEC(".maps");

/* Which threads are not wanted, by id; only where threads are told apart. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, pmp_u64);
	__type(value, pmp_u8);
} unwanted SEC(".maps");

/* The id of the current thread under its present name. Returns 0; 1: it is not wanted; -1: lost. */
static __always_inline int tell_thread(struct walk *w, struct task_struct *task, pmp_u32 pid,
				       pmp_u64 time, pmp_u64 *ret_id)
{
	struct pmp_thread_event *t = &w->thread;
	pmp_u64 name[PMP_COMM_LEN / 8] = {}, id;

	bpf_get_current_comm(name, sizeof(name));
	__builtin_memcpy(t->comm, name, sizeof(t->comm));
	t->tid = pid_for_reader(task);
	id = finish_hash(mix(mix(t->tid, name[0]), name[1]), 0, 0);
	*ret_id = id;
	if (bpf_map_lookup_elem(&unwanted, &id))
		return 1;
	t->id = id;
	t->event.type = PMP_EVENT_THREAD;
	t->event.pid = pid;
	t->event.time = time;
	return tell(id, t, sizeof(*t));
}

/* The registers of the task in user mode: w->regs, w->pc. False: it has none. */
static __always_inline bool take_saved_regs(struct walk *w)
{
	if (bpf_probe_read_kernel(&w->saved, sizeof(w->saved), current_user_regs()))
		return false;
	put_user_regs(w, &w->saved);
	w->cs = w->saved.cs;
	return true;
}

/* Unwind from w->regs and w->pc, which were set already. Returns 0 or -1. */
static __always_inline int take_user_stack(struct walk *w, void *ctx, struct task_struct *task,
					   struct pmp_process *p, pmp_u32 pid, pmp_u64 time,
					   const bool fp, pmp_u64 *ret_id)
{
	unsigned int flags = BPF_CORE_READ(task, flags);

	if ((flags & PF_KTHREAD) || !BPF_CORE_READ(task, mm))
		return 0;
	/* a thread of the kernel's in a process of the user's (io_uring) */
	if ((w->cs & 3) != 3 || (!w->pc && !w->regs[REG_RSP]))
		return 0;
	w->first_mapping = p->first_mapping;
	w->n_mappings = p->n_mappings;
	w->generation = p->generation;
	w->event.event.pid = pid;
	w->event.event.generation = p->generation;
	w->hash = p->generation ?: (pmp_u64)pid << 32;
	w->event.n = 1;
	w->frames[0] = (w->pc & PMP_FRAME_PC) | PMP_FRAME_EXACT;
	if ((w->cs & 0xffff) != 0x33) {
		w->hash = mix(w->hash, w->pc);
		w->event.status = PMP_STATUS_NOT_64_BIT;
	} else if (!w->n_mappings) {
		/* not by pc: there is no more to say of any of them */
		w->event.n = 0;
		w->event.status = PMP_STATUS_UNKNOWN_PROCESS;
	} else if (fp) {
		walk_by_kernel(w, ctx);
	} else {
		walk_user_stack(w);
	}
	if ((w->event.status & ~PMP_STATUS_UNVERIFIED) >= PMP_STATUS_NO_MAPPING)
		ask(p, pid);
	return tell_user_stack(w, time, ret_id);
}

static __always_inline int sample(struct bpf_perf_event_data *ctx, const bool fp)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	pmp_u64 cs = ctx->regs.cs;
	bool user_mode = (cs & 3) == 3;
	struct pmp_stats *st = this_stats();
	struct walk *w = this_walk();
	struct pmp_sample_event *s;
	struct pmp_process *p;
	pmp_u32 pid;
	int lost = 0;

	if (!st || !w)
		return 0;
	st->ticks++;
	if (!(pmp_u32)bpf_get_current_pid_tgid())
		st->idle++;
	p = wanted_process(task, &pid);
	if (!p)
		return 0;
	s = &w->sample;
	__builtin_memset(&s->key, 0, sizeof(s->key));
	s->key.pid = pid;
	s->event.time = bpf_ktime_get_ns();
	if (tell_threads) {
		lost = tell_thread(w, task, pid, s->event.time, &s->key.thread);
		if (lost > 0)
			return 0;
	}
	st->samples++;
	w->event.n = w->kernel_event.n = 0;
	w->cs = 0;
	if (user_mode) {
		put_user_regs(w, &ctx->regs);
		w->cs = cs;
	} else {
		take_saved_regs(w);
	}
	lost |= take_user_stack(w, ctx, task, p, pid, s->event.time, fp, &s->key.user);
	if (!user_mode && with_kernel)
		lost |= tell_kernel_stack(w, ctx, s->event.time, &s->key.kernel);
	if (lost) {
		st->unsent++;
		return 0;
	}
	if (!tell_samples) {
		count(&s->key, 0, st);
		return 0;
	}
	s->event.type = PMP_EVENT_SAMPLE;
	s->event.pid = pid;
	s->tid = pid_for_reader(task);
	s->cpu = bpf_get_smp_processor_id();
	s->n_user = w->event.n;
	s->n_kernel = w->kernel_event.n;
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	if (bpf_ringbuf_output(&events, s, sizeof(*s), wake_flags()))
		st->unsent++;
	return 0;
}

SEC("perf_event")
int on_cpu(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, false);
}

SEC("perf_event")
int on_cpu_fp(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, true);
}

static __always_inline pmp_u64 switch_count(struct task_struct *task)
{
	return BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

/* `task` is about to leave the CPU, in this state (0: it could go on). */
static __always_inline void begin_wait(__u64 *ctx, struct task_struct *task, pmp_u32 state,
				       struct pmp_stats *st, const bool fp)
{
	pmp_u32 tid = BPF_CORE_READ(task, pid), pid;
	struct walk *w = this_walk();
	struct pmp_process *p;
	struct pmp_wait *wait;
	bool counted;
	int lost = 0;

	/* not a wait, if it cannot end; the idle task has no process */
	if (!w || !tid || (state & (TASK_DEAD | EXIT_DEAD | EXIT_ZOMBIE)))
		return;
	p = wanted_process(task, &pid);
	if (!p)
		return;
	counted = states & (!state ? 4 : state & TASK_INTERRUPTIBLE ? 1 : 2);
	if (!counted && state) {
		bpf_map_delete_elem(&waits, &tid);
		return;
	}
	wait = &w->wait;
	__builtin_memset(wait, 0, sizeof(*wait));
	wait->since = bpf_ktime_get_ns();
	wait->switches = switch_count(task);
	wait->key.pid = pid;
	wait->key.runnable = !state;
	if (tell_threads) {
		lost = tell_thread(w, task, pid, wait->since, &wait->key.thread);
		if (lost > 0)
			return;
	}
	/* without its stack, preemption is still summed up */
	if (counted && take_saved_regs(w))
		lost |= take_user_stack(w, ctx, task, p, pid, wait->since, fp, &wait->key.user);
	if (counted && with_kernel)
		lost |= tell_kernel_stack(w, ctx, wait->since, &wait->key.kernel);
	if (lost)
		st->unsent++;
	else if (bpf_map_update_elem(&waits, &tid, wait, BPF_ANY))
		st->waits_full++;
}

/* `task` is about to get the CPU. */
static __always_inline void end_wait(struct task_struct *task, struct pmp_stats *st)
{
	pmp_u32 tid = BPF_CORE_READ(task, pid);
	struct pmp_wait *wait = bpf_map_lookup_elem(&waits, &tid);
	pmp_u64 now, since;

	if (!wait)
		return;
	now = bpf_ktime_get_ns();
	since = wait->since > begin_ns ? wait->since : begin_ns;
	if (begin_ns && now > since) {
		now -= since;
		if (wait->switches != switch_count(task)) {
			st->unbegun++;
		} else {
			if (wait->key.runnable)
				st->preempted_ns += now;
			if ((!wait->key.runnable || (states & 4)) && now >= min_ns &&
			    now <= max_ns) {
				st->samples++;
				count(&wait->key, now, st);
			}
		}
	}
	bpf_map_delete_elem(&waits, &tid);
}

static __always_inline int on_switch(__u64 *ctx, const bool fp)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	struct pmp_stats *st = this_stats();
	pmp_u32 state;

	if (!st)
		return 0;
	if (has_prev_state)
		state = (pmp_u32)ctx[3];
	else
		state = task_state(prev);
	/* a thread that was about to sleep may be preempted: it is runnable then */
	if (ctx[0] & 1)
		state = 0;
	end_wait(next, st);
	begin_wait(ctx, prev, state, st, fp);
	return 0;
}

SEC("tp_btf/sched_switch")
int off_cpu(__u64 *ctx)
{
	return on_switch(ctx, false);
}

SEC("tp_btf/sched_switch")
int off_cpu_fp(__u64 *ctx)
{
	return on_switch(ctx, true);
}
