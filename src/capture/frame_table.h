/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame_table: every frame that was met, once, by the place of its code: the object, the address
 * in it, and the name that the object has. A frame is a number; it holds its object, so that it can
 * be named when no process maps that any more.
 */
#ifndef PMP_FRAME_TABLE_H
#define PMP_FRAME_TABLE_H

#include "capture/processes.h"
#include "model/raw_sample.h"

#include <stdbool.h>
#include <stdint.h>

struct frame_table;

/* NULL with errno ENOMEM. */
struct frame_table *frame_table__new(void);
void frame_table__free(struct frame_table *t);

/* The number of a frame as the kernel hands it over (bpf/abi.h: an address with marks), met in this
 * generation; `pid` is told of code that is no object's. Returns 0 or -ENOMEM. */
int frame_table__intern(struct frame_table *t, const struct processes *processes, pid_t pid,
			uint32_t generation, uint64_t frame, uint32_t *ret_number);

/* The frame of a number that was given out. Its pc is that of the first time. */
struct raw_frame frame_table__get(const struct frame_table *t, uint32_t number);

/* Whether it is the outermost of a thread, by its unwind information. */
bool frame_table__is_start(const struct frame_table *t, uint32_t number);

#endif
