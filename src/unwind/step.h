/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * step: walks one thread's stack from its registers and memory, frame by frame.
 * Pure: memory and unwind information come through the callbacks of struct unwind_space.
 */
#ifndef PMP_STEP_H
#define PMP_STEP_H

#include "model/raw_sample.h"
#include "unwind/eh_frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unwind_regs {
	uint64_t value[CFI_N_REGS]; /* value[CFI_RA] is the pc */
	uint32_t known;		    /* bit n: value[n] holds */
};

/* What is known of the code at one pc. */
struct unwind_code {
	struct eh_frame *eh; /* NULL: executable, but without unwind information (JIT) */
	uint64_t bias;	     /* address in the target minus address in the object */
};

struct unwind_space {
	/* Read the 8 bytes at `addr`. Returns 0, or -errno where they cannot be read. */
	int (*read_word)(void *arg, uint64_t addr, uint64_t *ret_word);
	/* Returns 0, or -ENOENT where pc lies in no executable mapping. */
	int (*find_code)(void *arg, uint64_t pc, struct unwind_code *ret_code);
	void *arg;
};

/*
 * Unwind from `regs` until the outermost frame, at most max_frames (over 0) frames.
 * Appends nothing beyond ret_frames[max_frames - 1]. Returns the end: STACK_WHOLE,
 * STACK_TRUNCATED, STACK_BROKEN or STACK_GUESSED; never STACK_TORN or STACK_RUNNING.
 * Frame 0 is always there, even when its pc lies nowhere.
 */
enum stack_end unwind__stack(const struct unwind_space *space, const struct unwind_regs *regs,
			     size_t max_frames, struct raw_frame *ret_frames, size_t *ret_n);

#endif
