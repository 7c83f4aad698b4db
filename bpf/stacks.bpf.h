/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stacks: a sample's stacks become ids. A stack is sent to user space when it is first met; after
 * that its id alone is counted. An id is counted only if its stack was sent.
 */
#ifndef PMP_STACKS_BPF_H
#define PMP_STACKS_BPF_H

#include "unwind.bpf.h"

#define KERNEL_SEED 0x6b65726e656cULL

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

/* Ids that user space has the stack (or thread) of. One that finds no room is sent again. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, pmp_u64);
	__type(value, pmp_u8);
} known SEC(".maps");

/* Two, so that user space can empty one while the other is in use. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pmp_count_key);
	__type(value, struct pmp_count);
} counts_a SEC(".maps"), counts_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, pmp_u32);
	__type(value, struct pmp_stats);
} stats SEC(".maps");

/* set by user space while we run */
volatile pmp_u32 use_counts_b;

/* keys put into the counts in use since user space last emptied them */
pmp_u64 new_keys;

const volatile pmp_u32 ring_size = 1 << 20; /* bytes */
const volatile bool tell_threads;	    /* threads are told apart */
const volatile bool tell_samples;	    /* each sample is sent, none is counted */
const volatile bool with_kernel = true;

static __always_inline struct pmp_stats *this_stats(void)
{
	pmp_u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

/* User space is not woken for each record: when there is much to read, or now and then by itself.
 */
static __always_inline pmp_u64 wake_flags(void)
{
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > ring_size / 4)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/* Returns 0, or -1 if it could be neither known nor sent. */
static __always_inline int tell(pmp_u64 id, void *record, pmp_u32 size)
{
	pmp_u8 one = 1;

	if (bpf_map_lookup_elem(&known, &id))
		return 0;
	if (bpf_ringbuf_output(&events, record, size, wake_flags()))
		return -1;
	bpf_map_update_elem(&known, &id, &one, BPF_ANY);
	return 0;
}

static __always_inline pmp_u64 finish_hash(pmp_u64 hash, pmp_u32 status, pmp_u32 n)
{
	hash = mix(mix(hash, status), n);
	return hash ?: 1;
}

/* The stack in w->event and w->frames, as unwound. Returns 0 or -1. */
static __always_inline int tell_user_stack(struct walk *w, pmp_u64 time, pmp_u64 *ret_id)
{
	pmp_u32 n = w->event.n;

	if (n > PMP_USER_FRAMES)
		n = PMP_USER_FRAMES;
	w->event.id = finish_hash(w->hash, w->event.status, n);
	w->event.event.type = PMP_EVENT_USER_STACK;
	w->event.event.time = time;
	*ret_id = w->event.id;
	return tell(w->event.id, &w->event, sizeof(w->event) + n * 8);
}

/*
 * Hash `n` addresses of the walk's kernel stack, or of its user stack. Not static: so the verifier
 * goes through the loop once, and not again on each way that leads here.
 */
__noinline pmp_u64 hash_kernel_stack(pmp_u32 n)
{
	struct walk *w = this_walk();
	pmp_u64 hash = KERNEL_SEED;

	if (!w)
		return 0;
	for (pmp_u32 i = 0; i < PMP_KERNEL_FRAMES; i++) {
		if (i >= n)
			break;
		hash = mix(hash, w->kernel[i]);
	}
	return hash;
}

__noinline pmp_u64 hash_user_stack(pmp_u64 hash, pmp_u32 n)
{
	struct walk *w = this_walk();

	if (!w)
		return 0;
	for (pmp_u32 i = 0; i < PMP_KERNEL_FRAMES; i++) {
		if (i >= n)
			break;
		hash = mix(hash, w->frames[i]);
	}
	return hash;
}

/* The kernel's own unwinder; *ret_id stays 0 where there is no kernel frame. */
static __always_inline int tell_kernel_stack(struct walk *w, void *ctx, pmp_u64 time,
					     pmp_u64 *ret_id)
{
	long len = bpf_get_stack(ctx, w->kernel, sizeof(w->kernel), 0);
	pmp_u64 hash;
	pmp_u32 n;

	w->kernel_event.n = 0;
	if (len <= 0)
		return 0;
	n = (pmp_u32)len / 8;
	if (n > PMP_KERNEL_FRAMES)
		n = PMP_KERNEL_FRAMES;
	hash = hash_kernel_stack(n);
	w->kernel_event.n = n;
	w->kernel_event.status = n == PMP_KERNEL_FRAMES;
	w->kernel_event.event.type = PMP_EVENT_KERNEL_STACK;
	w->kernel_event.event.time = time;
	w->kernel_event.id = finish_hash(hash, 0, n);
	*ret_id = w->kernel_event.id;
	return tell(w->kernel_event.id, &w->kernel_event, sizeof(w->kernel_event) + n * 8);
}

/* The kernel's walk by frame pointers, where there is no bpf_loop or it is asked for. */
static __always_inline void walk_by_kernel(struct walk *w, void *ctx)
{
	long len = bpf_get_stack(ctx, w->frames, PMP_KERNEL_FRAMES * 8, BPF_F_USER_STACK);
	pmp_u32 n = len > 0 ? (pmp_u32)len / 8 : 0;

	w->event.status = PMP_STATUS_FRAME_POINTERS;
	/* the kernel does not say whether there were more */
	if (n >= PMP_KERNEL_FRAMES) {
		n = PMP_KERNEL_FRAMES;
		w->event.status = PMP_STATUS_TRUNCATED;
	}
	if (n > max_frames) {
		n = max_frames;
		w->event.status = PMP_STATUS_TRUNCATED;
	}
	w->hash = hash_user_stack(w->hash, n);
	w->frames[0] |= PMP_FRAME_EXACT;
	w->event.n = n;
}

static __always_inline void put_user_regs(struct walk *w, const struct pt_regs *r)
{
	w->regs[0] = r->ax;
	w->regs[1] = r->dx;
	w->regs[2] = r->cx;
	w->regs[3] = r->bx;
	w->regs[4] = r->si;
	w->regs[5] = r->di;
	w->regs[6] = r->bp;
	w->regs[7] = r->sp;
	w->regs[8] = r->r8;
	w->regs[9] = r->r9;
	w->regs[10] = r->r10;
	w->regs[11] = r->r11;
	w->regs[12] = r->r12;
	w->regs[13] = r->r13;
	w->regs[14] = r->r14;
	w->regs[15] = r->r15;
	w->pc = r->ip;
}

static __always_inline void count_in(void *map, const struct pmp_count_key *key, pmp_u64 ns,
				     struct pmp_stats *st)
{
	struct pmp_count *c = bpf_map_lookup_elem(map, key), first = {.n = 1, .ns = ns};

	if (!c) {
		if (bpf_map_update_elem(map, key, &first, BPF_NOEXIST) == 0) {
			__sync_fetch_and_add(&new_keys, 1);
			return;
		}
		c = bpf_map_lookup_elem(map, key); /* another CPU was quicker */
	}
	if (!c) {
		st->uncounted++;
		return;
	}
	__sync_fetch_and_add(&c->n, 1);
	if (ns) /* 0 is made an instruction that kernels before 5.12 do not know */
		__sync_fetch_and_add(&c->ns, ns);
}

static __always_inline void count(const struct pmp_count_key *key, pmp_u64 ns, struct pmp_stats *st)
{
	if (use_counts_b)
		count_in(&counts_b, key, ns, st);
	else
		count_in(&counts_a, key, ns, st);
}

#endif
