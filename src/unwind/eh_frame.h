/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eh_frame: finds how to undo one function's frame at one pc, from an object's .eh_frame, or from
 * .debug_frame, which is all that Go's compiler makes.
 * Pure: bytes in, rules out. The bytes are borrowed from the caller and must outlive the
 * struct eh_frame and every row taken from it; they are not trusted in any way.
 *
 * Source of the format: LSB 5.0 "Exception Frames"; DWARF 5, section 6.4; x86-64 psABI 1.0.
 */
#ifndef PMP_EH_FRAME_H
#define PMP_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* x86-64 registers in DWARF's numbering; 16 is the return address column, i.e. rip. */
enum cfi_reg {
	CFI_RAX,
	CFI_RDX,
	CFI_RCX,
	CFI_RBX,
	CFI_RSI,
	CFI_RDI,
	CFI_RBP,
	CFI_RSP,
	CFI_R8,
	CFI_R9,
	CFI_R10,
	CFI_R11,
	CFI_R12,
	CFI_R13,
	CFI_R14,
	CFI_R15,
	CFI_RA,
	CFI_N_REGS
};

enum cfi_kind {
	CFI_UNSPECIFIED = 0, /* no rule was given: callee-saved registers stay, RA is unknown */
	CFI_UNDEFINED,	     /* DW_CFA_undefined; for RA: the outermost frame */
	CFI_SAME,
	CFI_OFFSET,	    /* saved at CFA + offset */
	CFI_VAL_OFFSET,	    /* is CFA + offset */
	CFI_REGISTER,	    /* is in register `reg`; as a CFA rule: reg + offset */
	CFI_EXPRESSION,	    /* saved at the address that expr gives; as a CFA rule: its value */
	CFI_VAL_EXPRESSION, /* is the value of expr */
};

struct cfi_rule {
	uint8_t kind; /* enum cfi_kind */
	uint8_t reg;  /* for CFI_REGISTER: below CFI_N_REGS */
	uint32_t expr_len;
	int64_t offset;
	const uint8_t *expr; /* DWARF expression, within the caller's bytes */
};

/* How to undo the frame for every pc from start up to, not including, end. */
struct cfi_row {
	uint64_t start, end; /* addresses in the object (as its program headers have them) */
	uint64_t fde_start;  /* of the FDE's first row: where they overlap, the last one counts */
	/* CFI_REGISTER (reg + offset), CFI_EXPRESSION, or CFI_UNDEFINED where there is none */
	struct cfi_rule cfa;
	struct cfi_rule regs[CFI_N_REGS];
	bool signal_frame; /* 'S' augmentation: the frame above was interrupted, not calling */
};

struct eh_frame_bytes {
	const uint8_t *eh_frame; /* .eh_frame */
	size_t eh_frame_len;
	uint64_t eh_frame_addr; /* where it lies in the object's address space */
	const uint8_t *hdr;	/* .eh_frame_hdr; NULL: an index is made by scanning */
	size_t hdr_len;
	uint64_t hdr_addr;
	bool is_debug_frame; /* the bytes are .debug_frame's, inflated */
	void *owned;	     /* or NULL: freed with the struct eh_frame, or if it cannot be made */
};

struct eh_frame;

/*
 * A broken or missing .eh_frame_hdr table is replaced by a scan. Returns NULL with errno set:
 * ENOMEM, or EINVAL where the bytes cannot be an .eh_frame at all.
 */
struct eh_frame *eh_frame__new(const struct eh_frame_bytes *bytes);
void eh_frame__free(struct eh_frame *eh);

/* `second` is asked where `first` has nothing, and belongs to it now. Either may be NULL. Returns
 * what has both. */
struct eh_frame *eh_frame__join(struct eh_frame *first, struct eh_frame *second);

/*
 * The row that covers `pc` (an address in the object). Returns 0; -ENOENT: no FDE covers pc;
 * -EINVAL: the entry is malformed; -EOPNOTSUPP: well-formed, but not understood.
 */
int eh_frame__find_row(struct eh_frame *eh, uint64_t pc, struct cfi_row *ret_row);

/*
 * Call `fn` for each row of each FDE, in the order of the section and then of pc. Malformed
 * FDEs are counted, and skipped from the fault on. Stops and returns what fn returns when that
 * is not 0.
 */
typedef int (*eh_frame_row_fn)(const struct cfi_row *row, void *arg);
int eh_frame__each_row(struct eh_frame *eh, eh_frame_row_fn fn, void *arg, size_t *ret_malformed);

#endif
