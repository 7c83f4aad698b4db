/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfa_program: executes the DW_CFA_* instructions of a CIE or an FDE into rows.
 * Private to eh_frame.c. Pure; the bytes are borrowed and not trusted.
 *
 * Source: DWARF 5, section 6.4.2; the DW_CFA_GNU_* of GCC.
 */
#ifndef PMP_CFA_PROGRAM_H
#define PMP_CFA_PROGRAM_H

#include "unwind/cursor.h"
#include "unwind/eh_frame.h"

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding; /* of the addresses in its FDEs, DW_EH_PE_* */
	uint8_t lsda_encoding;
	bool sized_augmentation; /* its FDEs have an augmentation block with a length */
	struct cfi_row initial;	 /* rules that every FDE starts with; start and end unused */
};

enum { CFA_PROGRAM_STOPPED = 1 };

/* One run: what to do with the rows, and between which addresses. */
struct cfa_run {
	const struct cfi_cie *cie;
	uint64_t start, end;  /* the FDE's range */
	uint64_t addr_offset; /* a byte's address in the object minus its address here */
	eh_frame_row_fn fn;
	void *arg;
	int ret_stop; /* what fn returned, where it stopped the run */
};

/*
 * Run a CIE's initial instructions into cie->initial, whose other fields are already set.
 * Returns 0, -EINVAL (malformed) or -EOPNOTSUPP (well-formed, but not understood).
 */
int cfa_program__run_cie(struct cfi_cie *cie, struct cursor program);

/*
 * Run an FDE's instructions and call run->fn for each row that is not empty, in order; the row
 * is valid during the call. Returns 0, CFA_PROGRAM_STOPPED, -EINVAL or -EOPNOTSUPP; after an
 * error the rows before the fault have been handed out.
 */
int cfa_program__run_fde(struct cfa_run *run, struct cursor program);

#endif
