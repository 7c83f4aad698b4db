/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * target: one process that is being captured: its mappings, its objects and their unwind
 * information, kept from one snapshot to the next.
 */
#ifndef PMP_TARGET_H
#define PMP_TARGET_H

#include "base/error.h"
#include "capture/tasks.h"
#include "model/raw_sample.h"
#include "proc/object.h"

#include <stdbool.h>
#include <stddef.h>

struct target;

/* Reads nothing yet; `cache` is borrowed. NULL with errno. */
struct target *target__new(pid_t pid, struct object_cache *cache);
void target__free(struct target *t);

pid_t target__pid(const struct target *t);

/* Read the mappings anew, at the start of each snapshot. Returns 0 or -errno with `e` set. Takes
 * the target's memory lock. */
int target__read_maps(struct target *t, struct error *e);

/*
 * Unwind one record. ret_frames has room for max_frames. *ret_live: memory that the thread may
 * have changed since was read besides the record's copy. Returns how the stack ends. May take
 * the target's memory lock.
 */
enum stack_end target__unwind(struct target *t, const struct task_record *record, size_t max_frames,
			      struct raw_frame *ret_frames, size_t *ret_n, bool *ret_live);

/* Find the objects of the frames now: naming them later takes no lock of the target's. They are
 * borrowed from the target. */
void target__resolve(struct target *t, struct raw_frame *frames, size_t n);

#endif
