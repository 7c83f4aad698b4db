/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind: walks the current task's user stack by the tables that user space made from .eh_frame
 * (src/unwind/table.c). The same steps, guesses and checks as src/unwind/step.c, which is the
 * reference; registers are read from the stack only when a frame asks for them.
 */
#ifndef PMP_UNWIND_BPF_H
#define PMP_UNWIND_BPF_H

#include "kernel_compat.bpf.h"
#include "abi.h"

#define REG_RBX 3
#define REG_RBP 6
#define REG_RSP 7
#define N_WORDS 32 /* PMP_N_REGS rounded up: an index may be masked instead of compared */

#define MAX_FRAME_BYTES (8ULL << 20) /* as in step.c */
#define MAX_ADDRESS	(1ULL << 57)
#define NOWHERE		(2 * MAX_ADDRESS) /* no address that is read is near it */

/* rbx, rbp, r12 to r15: what a function leaves as it found it */
#define CALLEE_SAVED 0xf048u

/* sizes are set by user space, which knows what it will fill in */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, pmp_u32);
	__type(value, struct pmp_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, pmp_u32);
	__type(value, struct pmp_rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, pmp_u32);
	__type(value, struct pmp_mapping);
} mappings SEC(".maps");

/*
 * What was found for an address lately: the same few thousand return addresses come again and
 * again, and a search costs more than a look here.
 */
#define N_RECENT 1024

/* So much of the stack is read at once: a call of the kernel for each word costs more. */
#define N_STACK_WORDS 128
#define STACK_BYTES   (N_STACK_WORDS * 8)
#define SAVED_BYTES   64

struct recent {
	pmp_u64 pc;
	pmp_u32 generation;
	pmp_u32 mapping;
	pmp_u32 rule;
	pmp_u32 reserved;
};

/* One stack under way. */
struct walk {
	/* by DWARF's numbers: the value, or with its bit in in_memory, where the value lies */
	pmp_u64 regs[N_WORDS];
	pmp_u32 in_memory;
	pmp_u32 lost; /* bit n: the value is not known */
	pmp_u64 pc;
	pmp_u64 cs;
	pmp_u32 exact; /* pc was running or interrupted: no call precedes it */
	pmp_u32 guessed;
	pmp_u32 unverified; /* what a mapping holds could not be read */
	pmp_u32 has_code;   /* the pc that is looked up lies in a mapping: */
	pmp_u32 mapping;    /* its number; it holds what it did when the table was made */
	pmp_u32 rule;	    /* number of the rule for that pc; 0: none */
	pmp_u32 first_mapping, n_mappings, generation;
	pmp_u64 hash;
	pmp_u64 stack_at; /* where stack[] was read */
	pmp_u64 stack[N_STACK_WORDS];
	struct pmp_stack_event event;
	pmp_u64 frames[PMP_USER_FRAMES]; /* right behind the event: they are sent together */
	struct pmp_stack_event kernel_event;
	pmp_u64 kernel[PMP_KERNEL_FRAMES];
	struct recent recent[N_RECENT];
	/* what is too large for a stack of 512 bytes that the callbacks share */
	struct pt_regs saved;
	struct pmp_thread_event thread;
	struct pmp_sample_event sample;
	struct pmp_wait wait;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, pmp_u32);
	__type(value, struct walk);
} walks SEC(".maps");

const volatile pmp_u32 max_frames = PMP_USER_FRAMES;

static __always_inline struct walk *this_walk(void)
{
	pmp_u32 zero = 0;

	return bpf_map_lookup_elem(&walks, &zero);
}

static __always_inline pmp_u64 mix(pmp_u64 hash, pmp_u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* The binary searches keep their state on the stack of the function that calls bpf_loop(). */
struct search {
	pmp_u64 key;
	pmp_u32 low, high;
	pmp_u32 found;
	pmp_u32 rule;
};

static long search_mappings(pmp_u32 i, void *arg)
{
	struct search *q = arg;
	struct pmp_mapping *m;
	pmp_u32 middle;

	if (q->low >= q->high)
		return 1;
	middle = q->low + (q->high - q->low) / 2;
	m = bpf_map_lookup_elem(&mappings, &middle);
	if (!m)
		return 1;
	if (m->start <= q->key) {
		q->found = middle;
		q->low = middle + 1;
	} else {
		q->high = middle;
	}
	return 0;
}

static long search_rows(pmp_u32 i, void *arg)
{
	struct search *q = arg;
	struct pmp_row *row;
	pmp_u32 middle;

	if (q->low >= q->high)
		return 1;
	middle = q->low + (q->high - q->low) / 2;
	row = bpf_map_lookup_elem(&rows, &middle);
	if (!row)
		return 1;
	if (row->pc <= q->key) {
		q->rule = row->rule;
		q->low = middle + 1;
	} else {
		q->high = middle;
	}
	return 0;
}

static __noinline pmp_u32 search_rule(const struct pmp_mapping *m, pmp_u64 pc)
{
	struct search q = {.key = pc - m->base};

	if (!m->n_rows || q.key >> 32)
		return 0;
	q.low = m->first_row;
	q.high = m->first_row + m->n_rows;
	bpf_loop(32, search_rows, &q, 0);
	return q.rule;
}

static __always_inline long read_word(pmp_u64 addr, pmp_u64 *ret)
{
	return bpf_probe_read_user(ret, sizeof(*ret), (void *)addr);
}

static __always_inline long read_stack_at(struct walk *w, pmp_u64 addr)
{
	w->stack_at = addr;
	return bpf_probe_read_user(w->stack, sizeof(w->stack), (void *)addr);
}

/*
 * Fill w->stack with what lies around `addr`: the registers saved below it and the frames above it,
 * which are read next; where memory begins or ends there, what is on this side of that. Returns 0,
 * or -1 and it holds nothing.
 */
__noinline int read_stack_around(struct walk *w, pmp_u64 addr)
{
	if (!w)
		return -1;
	if (!read_stack_at(w, addr - SAVED_BYTES) || !read_stack_at(w, addr) ||
	    !read_stack_at(w, addr + 8 - STACK_BYTES))
		return 0;
	w->stack_at = NOWHERE;
	return -1;
}

/* As read_word(), of what is likely to lie near what was read before. */
static __always_inline long read_stack(struct walk *w, pmp_u64 addr, pmp_u64 *ret)
{
	if ((addr & 7) || addr > MAX_ADDRESS ||
	    (addr - w->stack_at >= STACK_BYTES && read_stack_around(w, addr)))
		return read_word(addr, ret);
	*ret = w->stack[(addr - w->stack_at) / 8 & (N_STACK_WORDS - 1)];
	return 0;
}

/* Whether a call instruction ends at the end of these 8 bytes: e8 rel32, or ff /2. */
static __always_inline bool is_call(pmp_u64 w)
{
	if ((w >> 24 & 0xff) == 0xe8)
		return true;
	return (w >> 48 & 0x38ff) == 0x10ff || /* 2 bytes */
	       (w >> 40 & 0x38ff) == 0x10ff || (w >> 32 & 0x38ff) == 0x10ff ||
	       (w >> 16 & 0x38ff) == 0x10ff || (w >> 8 & 0x38ff) == 0x10ff;
}

static __always_inline bool call_before(pmp_u64 pc)
{
	pmp_u64 word;

	return !read_word(pc - 8, &word) && is_call(word);
}

/* What a signal handler returns to: the kernel put its address there. */
static __always_inline bool is_trampoline(pmp_u32 number)
{
	struct pmp_rule *rule = bpf_map_lookup_elem(&rules, &number);

	return rule && (rule->flags & PMP_RULE_SIGNAL_FRAME);
}

/* What a goroutine returns to: Go's runtime put its address there. It follows a nop, the last of
 * these 8 bytes. */
static __always_inline bool is_goexit(pmp_u32 number, pmp_u64 w)
{
	struct pmp_rule *rule = bpf_map_lookup_elem(&rules, &number);

	return rule && rule->ra == PMP_RA_UNDEFINED && w >> 56 == 0x90;
}

/*
 * Look up `pc`: w->mapping and w->rule. Returns 0, or what keeps it from being unwound. Of a return
 * address, which is looked up by the byte before it, the code before it has to be a call: else the
 * unwind information was wrong, as it is in the middle of what the C++ runtime does to get to an
 * exception's handler.
 */
__noinline pmp_u32 find_code(struct walk *w, pmp_u64 pc)
{
	struct search q = {.key = pc, .found = ~0u};
	struct pmp_mapping *m;
	struct recent *r;
	bool is_recent;
	pmp_u64 word;

	if (!w)
		return PMP_STATUS_NO_MAPPING;
	r = &w->recent[(pc ^ pc >> 10) & (N_RECENT - 1)];
	is_recent = r->pc == pc && r->generation == w->generation;
	if (is_recent) {
		q.found = r->mapping;
		if (w->mapping == q.found) {
			w->rule = r->rule;
			return 0;
		}
	} else {
		q.low = w->first_mapping;
		q.high = w->first_mapping + w->n_mappings;
		bpf_loop(20, search_mappings, &q, 0);
	}
	m = bpf_map_lookup_elem(&mappings, &q.found);
	if (!m || pc < m->start || pc >= m->end)
		return PMP_STATUS_NO_MAPPING;
	/* another object may lie there by now: its own bytes say, if they are in memory */
	if (w->mapping != q.found && m->check_addr) {
		if (bpf_probe_read_user(&word, sizeof(word), (void *)m->check_addr))
			w->unverified = PMP_STATUS_UNVERIFIED;
		else if (word != m->check)
			return PMP_STATUS_STALE;
	}
	w->mapping = q.found;
	w->rule = is_recent ? r->rule : search_rule(m, pc);
	if (!is_recent && !w->exact && !is_trampoline(w->rule) && !read_word(pc - 7, &word) &&
	    !is_call(word) && !is_goexit(w->rule, word)) {
		w->guessed = 1;
	} else if (!is_recent) {
		r->pc = pc;
		r->generation = w->generation;
		r->mapping = w->mapping;
		r->rule = w->rule;
	}
	return 0;
}

/* Returns 0, or the status that ends the stack. */
static __noinline pmp_u32 read_reg(struct walk *w, pmp_u32 reg, pmp_u64 *ret)
{
	pmp_u64 value;

	reg &= N_WORDS - 1;
	if (w->lost >> reg & 1)
		return PMP_STATUS_UNSUPPORTED;
	value = w->regs[reg];
	if (w->in_memory >> reg & 1) {
		if (read_stack(w, value, &value))
			return PMP_STATUS_UNREADABLE;
		w->regs[reg] = value;
		w->in_memory &= ~(1u << reg);
	}
	*ret = value;
	return 0;
}

static __always_inline void set_reg(struct walk *w, pmp_u32 reg, pmp_u64 value)
{
	reg &= N_WORDS - 1;
	w->regs[reg] = value;
	w->in_memory &= ~(1u << reg);
	w->lost &= ~(1u << reg);
}

static __always_inline void set_place(struct walk *w, pmp_u32 reg, pmp_u64 addr)
{
	reg &= N_WORDS - 1;
	w->regs[reg] = addr;
	w->in_memory |= 1u << reg;
	w->lost &= ~(1u << reg);
}

static __always_inline void set_saved(struct walk *w, pmp_u32 reg, pmp_u64 base, pmp_s16 offset)
{
	if (offset == PMP_SAVED_LOST)
		w->lost |= 1u << reg;
	else if (offset != PMP_SAVED_SAME)
		set_place(w, reg, base + (pmp_s64)offset);
}

/* The registers as the kernel saved them for a signal handler. */
__noinline pmp_u32 step_signal(struct walk *w, pmp_u64 context)
{
	pmp_u64 pc;

	if (!w)
		return PMP_STATUS_UNREADABLE;
	/* struct sigcontext begins with r8 to r15, then these */
	for (pmp_u32 i = 0; i < 8; i++)
		set_place(w, 8 + i, context + 8 * i);
	set_place(w, 5, context + 64);	/* rdi */
	set_place(w, 4, context + 72);	/* rsi */
	set_place(w, 6, context + 80);	/* rbp */
	set_place(w, 3, context + 88);	/* rbx */
	set_place(w, 1, context + 96);	/* rdx */
	set_place(w, 0, context + 104); /* rax */
	set_place(w, 2, context + 112); /* rcx */
	set_place(w, 7, context + 120); /* rsp */
	if (read_word(context + 128, &pc))
		return PMP_STATUS_UNREADABLE;
	w->pc = pc;
	return read_reg(w, REG_RSP, &pc);
}

enum { STEP_ON = 0, STEP_BOTTOM = 0x100 }; /* else an enum pmp_status that is not whole */

__noinline pmp_u32 step_by_rule(struct walk *w, const struct pmp_rule *rule)
{
	pmp_u64 cfa, pc, saved, rsp, old;
	bool jumps, away;
	pmp_u32 status;

	if (!w || !rule)
		return PMP_STATUS_UNSUPPORTED;
	if (rule->ra == PMP_RA_UNDEFINED)
		return STEP_BOTTOM;
	if (rule->cfa == PMP_CFA_UNSUPPORTED)
		return PMP_STATUS_UNSUPPORTED;
	old = w->regs[REG_RSP];
	jumps = rule->saved[PMP_SAVED_RSP] != PMP_SAVED_SAME;
	/* on another stack: a register is there to keep this one's pointer */
	away = (CALLEE_SAVED & ~(1u << REG_RBP)) >> (rule->cfa_reg & 31) & 1;
	status = read_reg(w, rule->cfa_reg, &cfa);
	if (status)
		return status;
	cfa += (pmp_s64)rule->cfa_offset;
	if (rule->cfa == PMP_CFA_SIGNAL)
		return step_signal(w, cfa);
	if (rule->cfa == PMP_CFA_DEREF) {
		if (read_stack(w, cfa, &cfa))
			return PMP_STATUS_UNREADABLE;
		cfa += (pmp_s64)rule->cfa_offset2;
	} else if (rule->cfa == PMP_CFA_PLT) {
		if ((w->pc & 15) >= (pmp_u32)rule->cfa_offset2)
			cfa += 8;
	}
	saved = cfa;
	if (rule->saved_reg < PMP_N_REGS) {
		status = read_reg(w, rule->saved_reg, &saved);
		if (status)
			return status;
	}
	if (rule->ra == PMP_RA_REG) {
		/* at a return address, what a callee may change holds no return address */
		if (!w->exact && !(CALLEE_SAVED >> (rule->ra_reg & 31) & 1))
			return PMP_STATUS_UNSUPPORTED;
		status = read_reg(w, rule->ra_reg, &pc);
		if (status)
			return status;
	} else if (read_stack(w, cfa + (pmp_s64)rule->ra_offset, &pc)) {
		return PMP_STATUS_UNREADABLE;
	}
	set_saved(w, REG_RBX, saved, rule->saved[PMP_SAVED_RBX]);
	set_saved(w, REG_RBP, saved, rule->saved[PMP_SAVED_RBP]);
	set_saved(w, 12, saved, rule->saved[PMP_SAVED_R12]);
	set_saved(w, 13, saved, rule->saved[PMP_SAVED_R13]);
	set_saved(w, 14, saved, rule->saved[PMP_SAVED_R14]);
	set_saved(w, 15, saved, rule->saved[PMP_SAVED_R15]);
	if (jumps)
		set_saved(w, REG_RSP, saved, rule->saved[PMP_SAVED_RSP]);
	else
		set_reg(w, REG_RSP, cfa);
	status = read_reg(w, REG_RSP, &rsp);
	if (status)
		return status;
	if (!pc && !(rule->flags & PMP_RULE_SIGNAL_FRAME)) {
		/* the psABI marks the outermost frame so; but it may be anything */
		w->guessed = 1;
		if (!read_reg(w, REG_RBP, &saved) && !saved)
			return STEP_BOTTOM;
		return PMP_STATUS_IMPLAUSIBLE;
	}
	if (!jumps && !away && !(rule->flags & PMP_RULE_SIGNAL_FRAME) && rsp <= old &&
	    !(rsp == old && (w->exact || rule->ra == PMP_RA_REG)))
		return PMP_STATUS_IMPLAUSIBLE;
	w->pc = pc;
	return STEP_ON;
}

/* No unwind information: the return address is on top of the stack, or rbp is a frame pointer. */
__noinline pmp_u32 step_by_guess(struct walk *w)
{
	pmp_u64 rsp, rbp, saved, pc, word;
	bool had_code;

	if (!w)
		return PMP_STATUS_NO_CFI;
	had_code = w->has_code;
	w->guessed = 1;
	if (read_reg(w, REG_RSP, &rsp))
		return PMP_STATUS_NO_CFI;
	/* code that is there but in no mapping that is known is new: it may have pushed anything */
	if (!had_code && !read_word(w->pc, &pc))
		return PMP_STATUS_IMPLAUSIBLE;
	if (w->exact && !(rsp & 7) && !read_word(rsp, &pc) && call_before(pc) &&
	    !find_code(w, pc - 1)) {
		w->lost |= ~CALLEE_SAVED;
		set_reg(w, REG_RSP, rsp + 8);
		w->pc = pc;
		return STEP_ON;
	}
	/* where pc is no code, a jump went astray: a frame pointer says nothing of its caller */
	if (!had_code)
		return PMP_STATUS_IMPLAUSIBLE;
	if (read_reg(w, REG_RBP, &rbp) || (rbp & 7) || rbp < rsp || rbp - rsp > MAX_FRAME_BYTES ||
	    rbp > MAX_ADDRESS)
		return PMP_STATUS_NO_CFI;
	if (read_stack(w, rbp, &saved) || read_stack(w, rbp + 8, &pc))
		return PMP_STATUS_NO_CFI;
	if (!pc && !saved)
		return STEP_BOTTOM;
	if (pc < 16 || find_code(w, pc - 1) || read_word(pc - 8, &word) ||
	    (!is_call(word) && !is_goexit(w->rule, word)))
		return PMP_STATUS_NO_CFI;
	w->lost = ~0u;
	set_reg(w, REG_RBP, saved);
	set_reg(w, REG_RSP, rbp + 16);
	w->pc = pc;
	return STEP_ON;
}

static long walk_frame(pmp_u32 i, void *arg)
{
	struct walk *w = this_walk();
	struct pmp_rule *rule;
	pmp_u32 number = 0, status, n, signal = 0;
	pmp_u64 word;

	if (!w)
		return 1;
	n = w->event.n;
	if (n >= PMP_USER_FRAMES || n >= max_frames) {
		w->event.status = PMP_STATUS_TRUNCATED;
		return 1;
	}
	word = (w->pc & PMP_FRAME_PC) | (w->exact ? PMP_FRAME_EXACT : 0);
	if (w->has_code)
		number = w->rule;
	rule = bpf_map_lookup_elem(&rules, &number);
	if (!rule || rule->cfa == PMP_CFA_NONE) {
		status = step_by_guess(w);
	} else {
		status = step_by_rule(w, rule);
		signal = status == STEP_ON && (rule->flags & PMP_RULE_SIGNAL_FRAME);
	}
	if (signal)
		word |= PMP_FRAME_SIGNAL;
	w->frames[n & (PMP_USER_FRAMES - 1)] = word;
	w->hash = mix(w->hash, word);
	w->event.n = n + 1;
	if (status == STEP_BOTTOM) {
		w->event.status = w->guessed ? PMP_STATUS_GUESSED : PMP_STATUS_WHOLE;
		return 1;
	}
	if (status != STEP_ON) {
		w->event.status = status;
		return 1;
	}
	w->exact = signal;
	status = find_code(w, w->pc - !w->exact);
	w->has_code = !status;
	if (status && (!w->exact || status == PMP_STATUS_STALE)) {
		w->event.status = status;
		return 1;
	}
	return 0;
}

/*
 * Unwind from w->regs and w->pc into w->frames, w->event.n and w->event.status, with the mappings
 * of w; w->hash goes on from what it is. A frame whose mapping is not known is left out.
 */
static __noinline int walk_user_stack(struct walk *w)
{
	pmp_u32 status;

	w->in_memory = w->lost = w->guessed = w->unverified = 0;
	w->mapping = ~0u;
	w->stack_at = NOWHERE;
	w->exact = 1;
	w->event.n = 0;
	w->event.status = PMP_STATUS_TRUNCATED;
	status = find_code(w, w->pc);
	w->has_code = !status;
	if (status == PMP_STATUS_STALE) {
		w->event.status = status;
		return 0;
	}
	bpf_loop(PMP_USER_FRAMES + 1, walk_frame, NULL, 0);
	/* the pc of a jump into nowhere is a frame all the same; so is code that is too new */
	if (!w->has_code && w->event.n == 1 && w->event.status == PMP_STATUS_IMPLAUSIBLE)
		w->event.status = PMP_STATUS_NO_MAPPING;
	w->event.status |= w->unverified;
	return 0;
}

#endif
