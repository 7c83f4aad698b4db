// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/dwarf_expr.h"

#include "unwind/cursor.h"
#include "unwind/dwarf_ops.h"

#define MAX_DEPTH 64
#define MAX_OPS	  1000

struct machine {
	const struct dwarf_expr_space *space;
	struct cursor code;
	const uint8_t *begin;
	size_t depth;
	uint64_t stack[MAX_DEPTH];
};

static int push(struct machine *m, uint64_t value)
{
	if (m->code.bad || m->depth == MAX_DEPTH)
		return -EINVAL;
	m->stack[m->depth++] = value;
	return 0;
}

static int push_reg(struct machine *m, uint64_t reg, int64_t offset)
{
	if (m->code.bad)
		return -EINVAL;
	if (reg >= m->space->n_regs)
		return -EOPNOTSUPP;
	if (!(m->space->known >> reg & 1))
		return -ENODATA;
	return push(m, m->space->regs[reg] + (uint64_t)offset);
}

/* Push a copy of the value `n` below the top. */
static int pick(struct machine *m, size_t n)
{
	return n < m->depth ? push(m, m->stack[m->depth - 1 - n]) : -EINVAL;
}

static int jump(struct machine *m)
{
	int16_t distance = (int16_t)cursor__u16(&m->code);
	ptrdiff_t at = m->code.p - m->begin;

	if (m->code.bad || distance < -at || distance > m->code.end - m->code.p)
		return -EINVAL;
	m->code.p += distance;
	return 0;
}

static int branch(struct machine *m)
{
	if (!m->depth)
		return -EINVAL;
	if (m->stack[--m->depth])
		return jump(m);
	cursor__u16(&m->code);
	return m->code.bad ? -EINVAL : 0;
}

/* Replace the address on the stack by the `size` bytes that it points to. */
static int deref(struct machine *m, unsigned int size)
{
	uint64_t addr, word;
	int err;

	if (m->code.bad || !m->depth || size < 1 || size > 8)
		return -EINVAL;
	addr = m->stack[m->depth - 1];
	err = m->space->read_word(m->space->arg, addr, &word);
	if (err && size < 8) {
		/* these may be the last bytes that can be read */
		unsigned int before = 8 - size;

		err = m->space->read_word(m->space->arg, addr - before, &word);
		word >>= err ? 0 : before * 8;
	}
	if (err)
		return err;
	if (size < 8)
		word &= (1ULL << size * 8) - 1;
	m->stack[m->depth - 1] = word;
	return 0;
}

static int unary(struct machine *m, uint8_t op)
{
	uint64_t *top;

	if (!m->depth)
		return -EINVAL;
	top = &m->stack[m->depth - 1];
	switch (op) {
	case DW_OP_abs:
		*top = (int64_t)*top < 0 ? -*top : *top;
		break;
	case DW_OP_neg:
		*top = -*top;
		break;
	case DW_OP_not:
		*top = ~*top;
		break;
	case DW_OP_plus_uconst:
		*top += cursor__uleb(&m->code);
		break;
	}
	return m->code.bad ? -EINVAL : 0;
}

static uint64_t shift_right_signed(int64_t value, uint64_t by)
{
	return (uint64_t)(value >> (by > 63 ? 63 : by));
}

static int binary(struct machine *m, uint8_t op)
{
	uint64_t a, b, v;

	if (m->depth < 2)
		return -EINVAL;
	b = m->stack[m->depth - 1];
	a = m->stack[m->depth - 2];
	switch (op) {
	case DW_OP_and:
		v = a & b;
		break;
	case DW_OP_or:
		v = a | b;
		break;
	case DW_OP_xor:
		v = a ^ b;
		break;
	case DW_OP_plus:
		v = a + b;
		break;
	case DW_OP_minus:
		v = a - b;
		break;
	case DW_OP_mul:
		v = a * b;
		break;
	case DW_OP_div:
		if (!b)
			return -EINVAL;
		/* by -1 as a negation: INT64_MIN has no quotient */
		v = b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
		break;
	case DW_OP_mod:
		if (!b)
			return -EINVAL;
		v = a % b;
		break;
	case DW_OP_shl:
		v = b > 63 ? 0 : a << b;
		break;
	case DW_OP_shr:
		v = b > 63 ? 0 : a >> b;
		break;
	case DW_OP_shra:
		v = shift_right_signed((int64_t)a, b);
		break;
	case DW_OP_eq:
		v = a == b;
		break;
	case DW_OP_ne:
		v = a != b;
		break;
	case DW_OP_ge:
		v = (int64_t)a >= (int64_t)b;
		break;
	case DW_OP_gt:
		v = (int64_t)a > (int64_t)b;
		break;
	case DW_OP_le:
		v = (int64_t)a <= (int64_t)b;
		break;
	case DW_OP_lt:
		v = (int64_t)a < (int64_t)b;
		break;
	default:
		return -EOPNOTSUPP;
	}
	m->depth--;
	m->stack[m->depth - 1] = v;
	return 0;
}

static int reorder(struct machine *m, uint8_t op)
{
	uint64_t *top, first;

	if (m->depth < (op == DW_OP_drop ? 1 : op == DW_OP_swap ? 2 : 3))
		return -EINVAL;
	top = m->stack + m->depth;
	first = top[-1];
	switch (op) {
	case DW_OP_drop:
		m->depth--;
		break;
	case DW_OP_swap:
		top[-1] = top[-2];
		top[-2] = first;
		break;
	case DW_OP_rot:
		top[-1] = top[-2];
		top[-2] = top[-3];
		top[-3] = first;
		break;
	}
	return 0;
}

static int step(struct machine *m)
{
	struct cursor *code = &m->code;
	uint8_t op = *code->p++;
	uint64_t reg;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		return push(m, op - DW_OP_lit0);
	/* a register by itself is a location, not a value; GCC's unwinder takes its value */
	if (op >= DW_OP_reg0 && op <= DW_OP_reg31)
		return push_reg(m, op - DW_OP_reg0, 0);
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return push_reg(m, op - DW_OP_breg0, cursor__sleb(code));
	switch (op) {
	case DW_OP_regx:
		return push_reg(m, cursor__uleb(code), 0);
	case DW_OP_bregx:
		reg = cursor__uleb(code);
		return push_reg(m, reg, cursor__sleb(code));
	case DW_OP_addr:
		return push(m, cursor__u64(code) + m->space->bias);
	case DW_OP_const1u:
		return push(m, cursor__u8(code));
	case DW_OP_const1s:
		return push(m, (uint64_t)(int8_t)cursor__u8(code));
	case DW_OP_const2u:
		return push(m, cursor__u16(code));
	case DW_OP_const2s:
		return push(m, (uint64_t)(int16_t)cursor__u16(code));
	case DW_OP_const4u:
		return push(m, cursor__u32(code));
	case DW_OP_const4s:
		return push(m, (uint64_t)(int32_t)cursor__u32(code));
	case DW_OP_const8u:
	case DW_OP_const8s:
		return push(m, cursor__u64(code));
	case DW_OP_constu:
		return push(m, cursor__uleb(code));
	case DW_OP_consts:
		return push(m, (uint64_t)cursor__sleb(code));
	case DW_OP_dup:
		return pick(m, 0);
	case DW_OP_over:
		return pick(m, 1);
	case DW_OP_pick:
		return pick(m, cursor__u8(code));
	case DW_OP_drop:
	case DW_OP_swap:
	case DW_OP_rot:
		return reorder(m, op);
	case DW_OP_deref:
		return deref(m, 8);
	case DW_OP_deref_size:
		return deref(m, cursor__u8(code));
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_plus_uconst:
		return unary(m, op);
	case DW_OP_skip:
		return jump(m);
	case DW_OP_bra:
		return branch(m);
	case DW_OP_nop:
	case DW_OP_stack_value:
		return 0;
	default:
		return op >= DW_OP_and && op <= DW_OP_ne ? binary(m, op) : -EOPNOTSUPP;
	}
}

int dwarf_expr__eval(const uint8_t *expr, size_t len, const struct dwarf_expr_space *space,
		     const uint64_t *initial, uint64_t *ret_value)
{
	struct machine m;
	size_t n_ops = 0;
	int err;

	m.space = space;
	m.code = (struct cursor){.p = expr, .end = expr + len};
	m.begin = expr;
	m.depth = 0;
	if (initial)
		m.stack[m.depth++] = *initial;
	while (m.code.p < m.code.end) {
		if (++n_ops > MAX_OPS)
			return -ELOOP;
		err = step(&m);
		if (err)
			return err;
	}
	if (!m.depth)
		return -EINVAL;
	*ret_value = m.stack[m.depth - 1];
	return 0;
}
