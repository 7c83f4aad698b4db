// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/table.h"

#include "unwind/cursor.h"
#include "unwind/dwarf_ops.h"

static const struct pmp_rule unsupported = {.cfa = PMP_CFA_UNSUPPORTED};

/* DWARF's numbers of the registers in enum pmp_saved. */
static const uint8_t saved_regs[PMP_N_SAVED] = {
	[PMP_SAVED_RBX] = CFI_RBX, [PMP_SAVED_RBP] = CFI_RBP, [PMP_SAVED_R12] = CFI_R12,
	[PMP_SAVED_R13] = CFI_R13, [PMP_SAVED_R14] = CFI_R14, [PMP_SAVED_R15] = CFI_R15,
	[PMP_SAVED_RSP] = CFI_RSP,
};

/* Where the kernel puts each register in a struct sigcontext, in words. */
static const uint8_t sigcontext[CFI_N_REGS] = {
	[CFI_R8] = 0,	[CFI_R9] = 1,	[CFI_R10] = 2,	[CFI_R11] = 3,	[CFI_R12] = 4,
	[CFI_R13] = 5,	[CFI_R14] = 6,	[CFI_R15] = 7,	[CFI_RDI] = 8,	[CFI_RSI] = 9,
	[CFI_RBP] = 10, [CFI_RBX] = 11, [CFI_RDX] = 12, [CFI_RAX] = 13, [CFI_RCX] = 14,
	[CFI_RSP] = 15, [CFI_RA] = 16,
};

/* A register plus a number; for a place on the stack, PMP_N_REGS stands for the CFA. */
struct sum {
	uint8_t reg;
	int64_t offset;
};

static bool fits_s32(int64_t v)
{
	return v == (int32_t)v;
}

/* An operation that pushes a number known beforehand. */
static bool read_constant(struct cursor *c, int64_t *ret_value)
{
	uint8_t op = cursor__u8(c);
	uint64_t value;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		*ret_value = op - DW_OP_lit0;
		return true;
	}
	switch (op) {
	case DW_OP_const1u:
		*ret_value = cursor__u8(c);
		break;
	case DW_OP_const1s:
		*ret_value = (int8_t)cursor__u8(c);
		break;
	case DW_OP_const2u:
		*ret_value = cursor__u16(c);
		break;
	case DW_OP_const2s:
		*ret_value = (int16_t)cursor__u16(c);
		break;
	case DW_OP_const4u:
		*ret_value = cursor__u32(c);
		break;
	case DW_OP_const4s:
		*ret_value = (int32_t)cursor__u32(c);
		break;
	case DW_OP_constu:
		value = cursor__uleb(c);
		if (value > INT64_MAX)
			return false;
		*ret_value = (int64_t)value;
		break;
	case DW_OP_consts:
		*ret_value = cursor__sleb(c);
		break;
	default:
		return false;
	}
	return !c->bad;
}

/* One addition of a number to what is on the stack. */
static bool read_addition(struct cursor *c, int64_t *ret_value)
{
	uint64_t value;

	if (cursor__left(c) && *c->p == DW_OP_plus_uconst) {
		c->p++;
		value = cursor__uleb(c);
		*ret_value = (int64_t)value;
		return !c->bad && value <= INT64_MAX;
	}
	return read_constant(c, ret_value) && cursor__u8(c) == DW_OP_plus && !c->bad;
}

/* Add what additions there are to *offset; the cursor stays at what is none. */
static void read_additions(struct cursor *c, int64_t *offset)
{
	struct cursor at = *c;
	int64_t value, sum = *offset;

	while (cursor__left(c) && read_addition(&at, &value) &&
	       !__builtin_add_overflow(sum, value, &sum)) {
		*offset = sum;
		*c = at;
	}
}

static bool read_sum(struct cursor *c, struct sum *ret_sum)
{
	uint8_t op = cursor__u8(c);

	if (op < DW_OP_breg0 || op >= DW_OP_breg0 + CFI_N_REGS)
		return false;
	ret_sum->reg = (uint8_t)(op - DW_OP_breg0);
	ret_sum->offset = cursor__sleb(c);
	if (c->bad)
		return false;
	read_additions(c, &ret_sum->offset);
	return fits_s32(ret_sum->offset);
}

/* ((rip & 15) >= n) << 3, added: the linkers' PLT stubs, which push 8 bytes at byte n of 16. */
static bool read_plt(struct cursor *c, int32_t *ret_n)
{
	static const uint8_t before[] = {DW_OP_breg0 + CFI_RA, 0, DW_OP_lit0 + 15, DW_OP_and};
	static const uint8_t after[] = {DW_OP_ge, DW_OP_lit0 + 3, DW_OP_shl, DW_OP_plus};
	const uint8_t *p = c->p;

	if (cursor__left(c) != sizeof(before) + 1 + sizeof(after))
		return false;
	if (memcmp(p, before, sizeof(before)) != 0 ||
	    memcmp(p + sizeof(before) + 1, after, sizeof(after)) != 0)
		return false;
	p += sizeof(before);
	*ret_n = *p - DW_OP_lit0;
	return *p >= DW_OP_lit0 && *p <= DW_OP_lit31;
}

static struct cursor expression(const struct cfi_rule *rule)
{
	return (struct cursor){.p = rule->expr, .end = rule->expr + rule->expr_len};
}

static bool set_cfa_expression(const struct cfi_rule *cfa, struct pmp_rule *rule)
{
	struct cursor c = expression(cfa);
	struct sum sum;
	int64_t offset2 = 0;

	if (!read_sum(&c, &sum))
		return false;
	rule->cfa_reg = sum.reg;
	rule->cfa_offset = (int32_t)sum.offset;
	if (!cursor__left(&c)) {
		rule->cfa = PMP_CFA_REG;
		return true;
	}
	if (*c.p != DW_OP_deref) {
		rule->cfa = PMP_CFA_PLT;
		return read_plt(&c, &rule->cfa_offset2);
	}
	c.p++;
	read_additions(&c, &offset2);
	rule->cfa = PMP_CFA_DEREF;
	rule->cfa_offset2 = (int32_t)offset2;
	return !cursor__left(&c) && fits_s32(offset2);
}

static bool set_cfa(const struct cfi_rule *cfa, struct pmp_rule *rule)
{
	switch (cfa->kind) {
	case CFI_REGISTER:
		rule->cfa = PMP_CFA_REG;
		rule->cfa_reg = cfa->reg;
		rule->cfa_offset = (int32_t)cfa->offset;
		return fits_s32(cfa->offset);
	case CFI_EXPRESSION:
		return set_cfa_expression(cfa, rule);
	default:
		return false;
	}
}

static bool set_ra(const struct cfi_rule *ra, struct pmp_rule *rule)
{
	switch (ra->kind) {
	case CFI_OFFSET:
		rule->ra = PMP_RA_OFFSET;
		rule->ra_offset = (int32_t)ra->offset;
		return fits_s32(ra->offset);
	case CFI_REGISTER:
		rule->ra = PMP_RA_REG;
		rule->ra_reg = ra->reg;
		return true;
	default:
		return false;
	}
}

/* Where a register was saved; false: in no place that a rule can name. */
static bool find_place(const struct cfi_rule *reg, struct sum *ret_place)
{
	struct cursor c;

	switch (reg->kind) {
	case CFI_OFFSET:
		*ret_place = (struct sum){.reg = PMP_N_REGS, .offset = reg->offset};
		break;
	case CFI_EXPRESSION:
		c = expression(reg);
		if (!read_sum(&c, ret_place) || cursor__left(&c))
			return false;
		break;
	default:
		return false;
	}
	return ret_place->offset >= INT16_MIN && ret_place->offset < PMP_SAVED_LOST;
}

/* The caller's own; for the stack pointer, it is the CFA, which only no rule at all says. */
static bool is_same(const struct cfi_row *row, unsigned int reg)
{
	return row->regs[reg].kind == CFI_UNSPECIFIED ||
	       (row->regs[reg].kind == CFI_SAME && reg != CFI_RSP);
}

/*
 * A rule has one base for all places. Should they differ, the stack pointer's is kept, for nothing
 * goes on without it, else the frame pointer's, else the first.
 */
static bool set_saved(const struct cfi_row *row, struct pmp_rule *rule)
{
	static const uint8_t by_weight[] = {PMP_SAVED_RSP, PMP_SAVED_RBP, PMP_SAVED_RBX,
					    PMP_SAVED_R12, PMP_SAVED_R13, PMP_SAVED_R14,
					    PMP_SAVED_R15};
	bool based = false;

	rule->saved_reg = PMP_N_REGS;
	for (size_t i = 0; i < PMP_N_SAVED; i++) {
		unsigned int saved = by_weight[i];
		unsigned int reg = saved_regs[saved];
		struct sum place;

		if (is_same(row, reg)) {
			rule->saved[saved] = PMP_SAVED_SAME;
		} else if (find_place(&row->regs[reg], &place) &&
			   (!based || place.reg == rule->saved_reg)) {
			rule->saved[saved] = (int16_t)place.offset;
			rule->saved_reg = place.reg;
			based = true;
		} else {
			rule->saved[saved] = PMP_SAVED_LOST;
		}
	}
	return rule->saved[PMP_SAVED_RSP] != PMP_SAVED_LOST;
}

/* All registers are in a struct sigcontext: the C library's trampoline behind a signal handler. */
static bool is_signal(const struct cfi_row *row, const struct pmp_rule *cfa,
		      struct sum *ret_context)
{
	struct sum first;

	if (!row->signal_frame || cfa->cfa != PMP_CFA_DEREF || cfa->cfa_offset2)
		return false;
	first.reg = cfa->cfa_reg;
	first.offset = (int64_t)cfa->cfa_offset - 8 * sigcontext[CFI_RSP];
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++) {
		struct sum place;
		struct cursor c;

		if (row->regs[reg].kind != CFI_EXPRESSION)
			return false;
		c = expression(&row->regs[reg]);
		if (!read_sum(&c, &place) || cursor__left(&c) || place.reg != first.reg ||
		    place.offset != first.offset + 8 * sigcontext[reg])
			return false;
	}
	*ret_context = first;
	return fits_s32(first.offset);
}

struct pmp_rule unwind_rules__from_row(const struct cfi_row *row)
{
	struct pmp_rule rule = {.cfa = PMP_CFA_NONE};
	struct sum context;

	/* nothing else counts then; the stack pointer is a register that is always known */
	if (row->regs[CFI_RA].kind == CFI_UNDEFINED)
		return (struct pmp_rule){
			.cfa = PMP_CFA_REG, .cfa_reg = CFI_RSP, .ra = PMP_RA_UNDEFINED};
	if (!set_cfa(&row->cfa, &rule))
		return unsupported;
	if (is_signal(row, &rule, &context))
		return (struct pmp_rule){.cfa = PMP_CFA_SIGNAL,
					 .cfa_reg = context.reg,
					 .cfa_offset = (int32_t)context.offset,
					 .flags = PMP_RULE_SIGNAL_FRAME};
	if (!set_ra(&row->regs[CFI_RA], &rule) || !set_saved(row, &rule))
		return unsupported;
	rule.flags = row->signal_frame ? PMP_RULE_SIGNAL_FRAME : 0;
	return rule;
}
