// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/step.h"

#include "unwind/call_site.h"
#include "unwind/dwarf_expr.h"

#include <errno.h>
#include <string.h>

/* A guess that finds a caller further away than this is no caller: 8 MiB are a whole stack. */
#define MAX_FRAME_BYTES (8ULL << 20)

#define BIT(reg) (1U << (reg))
#define CALLEE_SAVED                                                                               \
	(BIT(CFI_RBX) | BIT(CFI_RBP) | BIT(CFI_R12) | BIT(CFI_R13) | BIT(CFI_R14) | BIT(CFI_R15))

enum outcome {
	STEP_CALLER, /* the registers are now the caller's, at a return address */
	STEP_SIGNAL, /* the registers are now those of the interrupted frame */
	STEP_BOTTOM,
	STEP_BROKEN,
};

struct walk {
	const struct unwind_space *space;
	struct unwind_regs regs;
	bool exact;   /* pc was running or interrupted, so no call precedes it */
	bool guessed; /* some step so far was a guess */
	bool has_code;
	struct unwind_code code; /* at the pc that is looked up */
};

static bool known(const struct unwind_regs *regs, unsigned int reg)
{
	return regs->known & BIT(reg);
}

static void set(struct unwind_regs *regs, unsigned int reg, uint64_t value)
{
	regs->value[reg] = value;
	regs->known |= BIT(reg);
}

/* A return address may lie behind the function's last instruction: its call is in the function. */
static uint64_t lookup_pc(uint64_t pc, bool exact)
{
	return exact ? pc : pc - 1;
}

static bool find_code(struct walk *w, uint64_t pc, struct unwind_code *ret_code)
{
	return !w->space->find_code(w->space->arg, pc, ret_code);
}

static int read_word(struct walk *w, uint64_t addr, uint64_t *ret_word)
{
	return w->space->read_word(w->space->arg, addr, ret_word);
}

static int evaluate(struct walk *w, const struct cfi_rule *rule, const uint64_t *initial,
		    uint64_t *ret_value)
{
	struct dwarf_expr_space space = {
		.regs = w->regs.value,
		.n_regs = CFI_N_REGS,
		.known = w->regs.known,
		.bias = w->code.bias,
		.read_word = w->space->read_word,
		.arg = w->space->arg,
	};

	return dwarf_expr__eval(rule->expr, rule->expr_len, &space, initial, ret_value);
}

static int find_cfa(struct walk *w, const struct cfi_rule *rule, uint64_t *ret_cfa)
{
	if (rule->kind == CFI_EXPRESSION)
		return evaluate(w, rule, NULL, ret_cfa);
	if (rule->kind != CFI_REGISTER || !known(&w->regs, rule->reg))
		return -ENODATA;
	*ret_cfa = w->regs.value[rule->reg] + (uint64_t)rule->offset;
	return 0;
}

/* The caller's value of one register. Returns 0, or -errno where it cannot be known. */
static int recover(struct walk *w, unsigned int reg, const struct cfi_rule *rule, uint64_t cfa,
		   uint64_t *ret_value)
{
	uint64_t value;
	int err;

	switch (rule->kind) {
	case CFI_UNSPECIFIED:
		if (reg == CFI_RSP) {
			*ret_value = cfa;
			return 0;
		}
		/*
		 * The ABI lets a callee change the others. But a rule that builds on one of them
		 * at a return address is hand-written, and knows its callee: libcrypto's bit-sliced
		 * AES finds its caller by rax. gdb and libdw hold them to be the same, too.
		 */
		/* fallthrough */
	case CFI_SAME:
		/* for the return address this would be a loop */
		if (reg == CFI_RA || !known(&w->regs, reg))
			return -ENODATA;
		*ret_value = w->regs.value[reg];
		return 0;
	case CFI_OFFSET:
		return read_word(w, cfa + (uint64_t)rule->offset, ret_value);
	case CFI_VAL_OFFSET:
		*ret_value = cfa + (uint64_t)rule->offset;
		return 0;
	case CFI_REGISTER:
		if (!known(&w->regs, rule->reg))
			return -ENODATA;
		/* at a return address, the address to return to is in no register (vfork's rdi) */
		if (reg == CFI_RA && !w->exact && !(CALLEE_SAVED & BIT(rule->reg)))
			return -ENODATA;
		*ret_value = w->regs.value[rule->reg];
		return 0;
	case CFI_EXPRESSION:
		err = evaluate(w, rule, &cfa, &value);
		return err ?: read_word(w, value, ret_value);
	case CFI_VAL_EXPRESSION:
		return evaluate(w, rule, &cfa, ret_value);
	default:
		return -ENODATA;
	}
}

/*
 * Each call has pushed a return address, so stack pointers rise from frame to frame. Not so where
 * the stack was switched: across a signal frame, where a rule restores the stack pointer by itself,
 * as in glibc's setcontext, and where the CFA counts from a register that is there for it, as in
 * Go's calls of the vDSO. They may stay equal where the return address has been popped
 * and is in a register (vfork), or nothing more was pushed since.
 */
static bool rises(const struct walk *w, const struct cfi_row *row, uint64_t rsp)
{
	uint64_t old = w->regs.value[CFI_RSP];

	if (row->signal_frame)
		return true;
	if (row->cfa.kind == CFI_REGISTER && (CALLEE_SAVED & ~BIT(CFI_RBP) & BIT(row->cfa.reg)))
		return true;
	switch (row->regs[CFI_RSP].kind) {
	case CFI_OFFSET:
	case CFI_REGISTER:
	case CFI_EXPRESSION:
	case CFI_VAL_EXPRESSION:
		return true;
	}
	if (!known(&w->regs, CFI_RSP) || rsp > old)
		return true;
	return rsp == old && (w->exact || row->regs[CFI_RA].kind == CFI_REGISTER);
}

static enum outcome step_by_row(struct walk *w, const struct cfi_row *row)
{
	struct unwind_regs next = {.known = 0};
	uint64_t cfa, value;

	if (row->regs[CFI_RA].kind == CFI_UNDEFINED)
		return STEP_BOTTOM;
	if (find_cfa(w, &row->cfa, &cfa))
		return STEP_BROKEN;
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++) {
		if (!recover(w, reg, &row->regs[reg], cfa, &value))
			set(&next, reg, value);
	}
	if (!known(&next, CFI_RA) || !known(&next, CFI_RSP))
		return STEP_BROKEN;
	/*
	 * The psABI has the outermost frame's caller marked so. But a zero pc may come of a stack
	 * that is smashed, or that _Unwind_Resume() is about to leave: with a zero rbp it is a
	 * bottom to the best of our knowledge. An interrupted pc may well be 0, by a call of a NULL
	 * pointer.
	 */
	if (!next.value[CFI_RA] && !row->signal_frame) {
		w->guessed = true;
		return known(&next, CFI_RBP) && !next.value[CFI_RBP] ? STEP_BOTTOM : STEP_BROKEN;
	}
	if (!rises(w, row, next.value[CFI_RSP]))
		return STEP_BROKEN;
	w->regs = next;
	return row->signal_frame ? STEP_SIGNAL : STEP_CALLER;
}

/* How well `pc` does as a return address to the caller of this frame: 0, not at all. */
static int rate_return(struct walk *w, uint64_t pc)
{
	struct unwind_code code;
	struct cfi_row row;
	uint64_t target;

	if (pc < 16 || !find_code(w, pc - 1, &code))
		return 0;
	switch (call_site__before(w->space->read_word, w->space->arg, pc, &target)) {
	case CALL_SITE_DIRECT:
		return find_code(w, target, &code) ? 2 : 0;
	case CALL_SITE_INDIRECT:
		return 2;
	case CALL_SITE_UNREADABLE:
		return 1;
	case CALL_SITE_NONE:
		break;
	}
	/* the kernel makes signal handlers return to where nothing was called; Go's runtime has
	 * each goroutine return to the second byte of its outermost function */
	if (!code.eh || eh_frame__find_row(code.eh, pc - 1 - code.bias, &row))
		return 0;
	if (row.signal_frame ||
	    (row.regs[CFI_RA].kind == CFI_UNDEFINED && row.fde_start == pc - 1 - code.bias))
		return 1;
	return 0;
}

/* Nothing has been pushed since the call: the return address is on top of the stack. */
static bool guess_leaf(struct walk *w)
{
	uint64_t rsp = w->regs.value[CFI_RSP], pc;

	/* what lies on top is mostly no return address: only one that follows a call will do */
	if (!known(&w->regs, CFI_RSP) || rsp % 8 || read_word(w, rsp, &pc) ||
	    rate_return(w, pc) < 2)
		return false;
	w->regs.known &= CALLEE_SAVED;
	set(&w->regs, CFI_RSP, rsp + 8);
	set(&w->regs, CFI_RA, pc);
	return true;
}

static enum outcome guess_by_frame_pointer(struct walk *w)
{
	uint64_t rsp = w->regs.value[CFI_RSP], rbp = w->regs.value[CFI_RBP], saved, pc;

	if (!known(&w->regs, CFI_RSP) || !known(&w->regs, CFI_RBP) || rbp % 8 || rbp < rsp ||
	    rbp - rsp > MAX_FRAME_BYTES || rbp > UINT64_MAX - 16)
		return STEP_BROKEN;
	if (read_word(w, rbp, &saved) || read_word(w, rbp + 8, &pc))
		return STEP_BROKEN;
	/* the psABI marks the outermost frame so; a zero pc alone may be anything */
	if (!pc && !saved)
		return STEP_BOTTOM;
	if (!rate_return(w, pc))
		return STEP_BROKEN;
	w->regs.known = 0;
	set(&w->regs, CFI_RBP, saved);
	set(&w->regs, CFI_RSP, rbp + 16);
	set(&w->regs, CFI_RA, pc);
	return STEP_CALLER;
}

/* There is no unwind information for the pc: go on by convention, and remember that. */
static enum outcome step_by_guess(struct walk *w)
{
	w->guessed = true;
	/* only at the innermost frame can it be that nothing was pushed yet */
	if (w->exact && guess_leaf(w))
		return STEP_CALLER;
	/* where pc is no code, a jump went astray: a frame pointer says nothing of its caller */
	if (!w->has_code)
		return STEP_BROKEN;
	return guess_by_frame_pointer(w);
}

static enum outcome step(struct walk *w)
{
	uint64_t pc = lookup_pc(w->regs.value[CFI_RA], w->exact);
	struct cfi_row row;
	int err = -ENOENT;

	if (w->has_code && w->code.eh)
		err = eh_frame__find_row(w->code.eh, pc - w->code.bias, &row);
	if (!err)
		return step_by_row(w, &row);
	return err == -ENOENT || err == -EINVAL ? step_by_guess(w) : STEP_BROKEN;
}

static bool equal(const struct unwind_regs *a, const struct unwind_regs *b)
{
	if (a->known != b->known)
		return false;
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++) {
		if (known(a, reg) && a->value[reg] != b->value[reg])
			return false;
	}
	return true;
}

enum stack_end unwind__stack(const struct unwind_space *space, const struct unwind_regs *regs,
			     size_t max_frames, struct raw_frame *ret_frames, size_t *ret_n)
{
	struct walk w = {.space = space, .regs = *regs, .exact = true};
	struct unwind_regs seen = *regs; /* of frame 0, 1, 3, 7, 15...: finds any cycle (Brent) */
	size_t n = 0, next_seen = 1;

	w.has_code = find_code(&w, w.regs.value[CFI_RA], &w.code);
	for (;;) {
		enum outcome outcome;

		ret_frames[n++] = (struct raw_frame){.pc = w.regs.value[CFI_RA], .exact = w.exact};
		*ret_n = n;
		outcome = step(&w);
		ret_frames[n - 1].signal = outcome == STEP_SIGNAL;
		if (outcome == STEP_BOTTOM)
			return w.guessed ? STACK_GUESSED : STACK_WHOLE;
		if (outcome == STEP_BROKEN || equal(&w.regs, &seen))
			return STACK_BROKEN;
		w.exact = outcome == STEP_SIGNAL;
		w.has_code = find_code(&w, lookup_pc(w.regs.value[CFI_RA], w.exact), &w.code);
		if (!w.has_code && !w.exact)
			return STACK_BROKEN;
		if (n == max_frames)
			return STACK_TRUNCATED;
		if (n == next_seen) {
			seen = w.regs;
			next_seen = next_seen * 2 + 1;
		}
	}
}
