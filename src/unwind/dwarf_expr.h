/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_expr: evaluates the DWARF expressions that occur in call frame information.
 * Pure: registers and memory come with struct dwarf_expr_space. The expression is not trusted:
 * stack depth and number of operations are bounded.
 *
 * Source: DWARF 5, section 2.5, less what section 6.4.2 forbids in call frame information.
 */
#ifndef PMP_DWARF_EXPR_H
#define PMP_DWARF_EXPR_H

#include <stddef.h>
#include <stdint.h>

struct dwarf_expr_space {
	const uint64_t *regs; /* by DWARF's numbers */
	uint32_t n_regs;      /* at most 32 */
	uint32_t known;	      /* bit n: regs[n] holds */
	uint64_t bias;	      /* added to the addresses of DW_OP_addr */
	/* Read the 8 bytes at `addr`. Returns 0 or -errno. */
	int (*read_word)(void *arg, uint64_t addr, uint64_t *ret_word);
	void *arg;
};

/*
 * Evaluate `len` bytes at `expr`, starting with *initial on the stack (NULL: nothing), as
 * CFI_EXPRESSION and CFI_VAL_EXPRESSION rules start with the CFA. Gives the top of the stack.
 * Returns 0; -EINVAL: malformed, or divides by zero; -EOPNOTSUPP: an operation with no place in
 * call frame information; -ENODATA: needs a register that is not known; -ELOOP: too long a run;
 * else what read_word returned.
 */
int dwarf_expr__eval(const uint8_t *expr, size_t len, const struct dwarf_expr_space *space,
		     const uint64_t *initial, uint64_t *ret_value);

#endif
