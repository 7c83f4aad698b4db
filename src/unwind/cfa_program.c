// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/cfa_program.h"

enum {
	DW_CFA_nop = 0x00,
	DW_CFA_set_loc = 0x01,
	DW_CFA_advance_loc1 = 0x02,
	DW_CFA_advance_loc2 = 0x03,
	DW_CFA_advance_loc4 = 0x04,
	DW_CFA_offset_extended = 0x05,
	DW_CFA_restore_extended = 0x06,
	DW_CFA_undefined = 0x07,
	DW_CFA_same_value = 0x08,
	DW_CFA_register = 0x09,
	DW_CFA_remember_state = 0x0a,
	DW_CFA_restore_state = 0x0b,
	DW_CFA_def_cfa = 0x0c,
	DW_CFA_def_cfa_register = 0x0d,
	DW_CFA_def_cfa_offset = 0x0e,
	DW_CFA_def_cfa_expression = 0x0f,
	DW_CFA_expression = 0x10,
	DW_CFA_offset_extended_sf = 0x11,
	DW_CFA_def_cfa_sf = 0x12,
	DW_CFA_def_cfa_offset_sf = 0x13,
	DW_CFA_val_offset = 0x14,
	DW_CFA_val_offset_sf = 0x15,
	DW_CFA_val_expression = 0x16,
	DW_CFA_MIPS_advance_loc8 = 0x1d,
	DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
	/* these three carry an operand in their low 6 bits */
	DW_CFA_advance_loc = 0x40,
	DW_CFA_offset = 0x80,
	DW_CFA_restore = 0xc0,
};

/* Compilers nest one level deep; hand-written code two. */
#define MAX_REMEMBERED 16

struct state {
	struct cfa_run *run; /* NULL: a CIE's instructions */
	const struct cfi_cie *cie;
	const struct cfi_row *initial; /* NULL: a CIE's instructions */
	struct cursor code;
	struct cfi_row row;
	/*
	 * The last register + offset that the CFA was, kept under an expression: a change of one
	 * half goes back to it, as in GCC's unwinder and gdb; libgcrypt's code relies on that.
	 */
	struct cfi_rule plain_cfa;
	size_t n_remembered;
	struct {
		struct cfi_rule cfa, plain_cfa;
		struct cfi_rule regs[CFI_N_REGS];
	} remembered[MAX_REMEMBERED];
};

static int set_rule(struct state *s, uint64_t reg, struct cfi_rule rule)
{
	if (s->code.bad)
		return -EINVAL;
	/* vector and segment registers have rules too: nothing here needs their values */
	if (reg < CFI_N_REGS)
		s->row.regs[reg] = rule;
	return 0;
}

static int set_kind(struct state *s, uint64_t reg, enum cfi_kind kind)
{
	return set_rule(s, reg, (struct cfi_rule){.kind = kind});
}

/* Offsets are stored divided by the CIE's data alignment factor. */
static int set_offset(struct state *s, uint64_t reg, enum cfi_kind kind, int64_t factored)
{
	struct cfi_rule rule = {.kind = kind};

	if (__builtin_mul_overflow(factored, s->cie->data_align, &rule.offset))
		return -EINVAL;
	return set_rule(s, reg, rule);
}

static int set_offset_unsigned(struct state *s, uint64_t reg, enum cfi_kind kind, int sign)
{
	uint64_t factored = cursor__uleb(&s->code);

	if (factored > INT64_MAX)
		return -EINVAL;
	return set_offset(s, reg, kind, sign * (int64_t)factored);
}

static int set_register(struct state *s, uint64_t reg)
{
	uint64_t source = cursor__uleb(&s->code);

	if (source < CFI_N_REGS)
		return set_rule(s, reg,
				(struct cfi_rule){.kind = CFI_REGISTER, .reg = (uint8_t)source});
	/* Values of other registers are not known, but "undefined" would say: the bottom. */
	if (reg == CFI_RA)
		return s->code.bad ? -EINVAL : -EOPNOTSUPP;
	return set_kind(s, reg, CFI_UNDEFINED);
}

static int read_expression(struct state *s, enum cfi_kind kind, struct cfi_rule *ret_rule)
{
	uint64_t len = cursor__uleb(&s->code);
	const uint8_t *expr = cursor__bytes(&s->code, len);

	if (!expr || len > UINT32_MAX)
		return -EINVAL;
	*ret_rule = (struct cfi_rule){.kind = kind, .expr = expr, .expr_len = (uint32_t)len};
	return 0;
}

static int set_expression(struct state *s, enum cfi_kind kind)
{
	uint64_t reg = cursor__uleb(&s->code);
	struct cfi_rule rule;
	int err = read_expression(s, kind, &rule);

	return err ?: set_rule(s, reg, rule);
}

static int set_plain_cfa(struct state *s, uint64_t reg, int64_t offset)
{
	if (s->code.bad)
		return -EINVAL;
	if (reg >= CFI_N_REGS)
		return -EOPNOTSUPP;
	s->plain_cfa = (struct cfi_rule){
		.kind = CFI_REGISTER, .reg = (uint8_t)reg, .offset = offset};
	s->row.cfa = s->plain_cfa;
	return 0;
}

static int read_cfa_offset(struct state *s, bool is_signed, int64_t *ret_offset)
{
	uint64_t value;

	if (is_signed)
		return __builtin_mul_overflow(cursor__sleb(&s->code), s->cie->data_align,
					      ret_offset)
			       ? -EINVAL
			       : 0;
	value = cursor__uleb(&s->code);
	if (value > INT64_MAX)
		return -EINVAL;
	*ret_offset = (int64_t)value;
	return 0;
}

static int define_cfa(struct state *s, bool is_signed)
{
	uint64_t reg = cursor__uleb(&s->code);
	int64_t offset;
	int err = read_cfa_offset(s, is_signed, &offset);

	return err ?: set_plain_cfa(s, reg, offset);
}

static int set_cfa_offset(struct state *s, bool is_signed)
{
	int64_t offset;
	int err = read_cfa_offset(s, is_signed, &offset);

	if (err || s->plain_cfa.kind != CFI_REGISTER)
		return -EINVAL;
	return set_plain_cfa(s, s->plain_cfa.reg, offset);
}

static int set_cfa_register(struct state *s)
{
	uint64_t reg = cursor__uleb(&s->code);

	if (s->plain_cfa.kind != CFI_REGISTER)
		return -EINVAL;
	return set_plain_cfa(s, reg, s->plain_cfa.offset);
}

static int restore(struct state *s, uint64_t reg)
{
	if (!s->initial || s->code.bad)
		return -EINVAL;
	return reg < CFI_N_REGS ? set_rule(s, reg, s->initial->regs[reg]) : 0;
}

static int remember_state(struct state *s)
{
	if (s->n_remembered == MAX_REMEMBERED)
		return -EOPNOTSUPP;
	s->remembered[s->n_remembered].cfa = s->row.cfa;
	s->remembered[s->n_remembered].plain_cfa = s->plain_cfa;
	memcpy(s->remembered[s->n_remembered].regs, s->row.regs, sizeof(s->row.regs));
	s->n_remembered++;
	return 0;
}

static int restore_state(struct state *s)
{
	if (!s->n_remembered)
		return -EINVAL;
	s->n_remembered--;
	s->row.cfa = s->remembered[s->n_remembered].cfa;
	s->plain_cfa = s->remembered[s->n_remembered].plain_cfa;
	memcpy(s->row.regs, s->remembered[s->n_remembered].regs, sizeof(s->row.regs));
	return 0;
}

/* The rules so far hold up to `end`: hand the row out unless it is empty. */
static int end_row(struct state *s, uint64_t end)
{
	if (end > s->run->end)
		end = s->run->end;
	if (end <= s->row.start)
		return 0;
	s->row.end = end;
	s->run->ret_stop = s->run->fn(&s->row, s->run->arg);
	if (s->run->ret_stop)
		return CFA_PROGRAM_STOPPED;
	s->row.start = end;
	return 0;
}

static int advance(struct state *s, uint64_t delta)
{
	uint64_t loc;

	if (!s->run || s->code.bad || __builtin_mul_overflow(delta, s->cie->code_align, &delta) ||
	    __builtin_add_overflow(s->row.start, delta, &loc))
		return -EINVAL;
	return end_row(s, loc);
}

static int set_loc(struct state *s)
{
	uint64_t loc;
	int err;

	if (!s->run)
		return -EINVAL;
	err = cursor__pointer(&s->code, s->cie->pointer_encoding,
			      (uint64_t)(uintptr_t)s->code.p + s->run->addr_offset, 0, &loc);
	if (err)
		return err;
	if (loc < s->row.start)
		return -EINVAL;
	return end_row(s, loc);
}

static int step(struct state *s)
{
	struct cursor *code = &s->code;
	uint8_t op = *code->p++;
	uint64_t reg;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(s, op & 0x3f);
	case DW_CFA_offset:
		return set_offset_unsigned(s, op & 0x3f, CFI_OFFSET, 1);
	case DW_CFA_restore:
		return restore(s, op & 0x3f);
	}
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return set_loc(s);
	case DW_CFA_advance_loc1:
		return advance(s, cursor__u8(code));
	case DW_CFA_advance_loc2:
		return advance(s, cursor__u16(code));
	case DW_CFA_advance_loc4:
		return advance(s, cursor__u32(code));
	case DW_CFA_MIPS_advance_loc8:
		return advance(s, cursor__u64(code));
	case DW_CFA_restore_extended:
		return restore(s, cursor__uleb(code));
	case DW_CFA_undefined:
		return set_kind(s, cursor__uleb(code), CFI_UNDEFINED);
	case DW_CFA_same_value:
		return set_kind(s, cursor__uleb(code), CFI_SAME);
	case DW_CFA_register:
		return set_register(s, cursor__uleb(code));
	case DW_CFA_offset_extended:
		return set_offset_unsigned(s, cursor__uleb(code), CFI_OFFSET, 1);
	case DW_CFA_val_offset:
		return set_offset_unsigned(s, cursor__uleb(code), CFI_VAL_OFFSET, 1);
	case DW_CFA_GNU_negative_offset_extended:
		return set_offset_unsigned(s, cursor__uleb(code), CFI_OFFSET, -1);
	case DW_CFA_offset_extended_sf:
		reg = cursor__uleb(code);
		return set_offset(s, reg, CFI_OFFSET, cursor__sleb(code));
	case DW_CFA_val_offset_sf:
		reg = cursor__uleb(code);
		return set_offset(s, reg, CFI_VAL_OFFSET, cursor__sleb(code));
	case DW_CFA_expression:
		return set_expression(s, CFI_EXPRESSION);
	case DW_CFA_val_expression:
		return set_expression(s, CFI_VAL_EXPRESSION);
	case DW_CFA_remember_state:
		return remember_state(s);
	case DW_CFA_restore_state:
		return restore_state(s);
	case DW_CFA_def_cfa:
		return define_cfa(s, false);
	case DW_CFA_def_cfa_sf:
		return define_cfa(s, true);
	case DW_CFA_def_cfa_register:
		return set_cfa_register(s);
	case DW_CFA_def_cfa_offset:
		return set_cfa_offset(s, false);
	case DW_CFA_def_cfa_offset_sf:
		return set_cfa_offset(s, true);
	case DW_CFA_def_cfa_expression:
		return read_expression(s, CFI_EXPRESSION, &s->row.cfa);
	case DW_CFA_GNU_args_size:
		/* pushed arguments: only exception handlers that land in this frame need it */
		cursor__uleb(code);
		return code->bad ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

static int run_all(struct state *s)
{
	while (s->code.p < s->code.end) {
		int err = step(s);

		if (err)
			return err;
	}
	return 0;
}

int cfa_program__run_cie(struct cfi_cie *cie, struct cursor program)
{
	/* not "= {}": clearing all that may be remembered would cost more than the run */
	struct state s;
	int err;

	s.run = NULL;
	s.cie = cie;
	s.initial = NULL;
	s.code = program;
	s.row = cie->initial;
	s.n_remembered = 0;
	s.row.cfa = (struct cfi_rule){.kind = CFI_UNDEFINED};
	s.plain_cfa = s.row.cfa;
	memset(s.row.regs, 0, sizeof(s.row.regs));
	err = run_all(&s);
	if (!err)
		cie->initial = s.row;
	return err;
}

int cfa_program__run_fde(struct cfa_run *run, struct cursor program)
{
	struct state s;
	int err;

	s.run = run;
	s.cie = run->cie;
	s.initial = &run->cie->initial;
	s.code = program;
	s.row = run->cie->initial;
	s.row.start = run->start;
	s.row.end = run->end;
	s.row.fde_start = run->start;
	s.plain_cfa = s.row.cfa;
	s.n_remembered = 0;
	err = run_all(&s);
	return err ?: end_row(&s, run->end);
}
