/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot: every thread of one process with its stack, at one moment, the process running on.
 * A snapshot owns its samples and their frames until it is taken again or freed; the objects of the
 * frames are the target's.
 */
#ifndef PMP_SNAPSHOT_H
#define PMP_SNAPSHOT_H

#include "base/error.h"
#include "capture/losses.h"
#include "capture/target.h"
#include "capture/tasks.h"
#include "model/raw_sample.h"

#include <stddef.h>

struct snapshot;

/* NULL with errno ENOMEM. */
struct snapshot *snapshot__new(size_t max_frames);
void snapshot__free(struct snapshot *s);

/*
 * Take it: read all threads; those that slept meanwhile are exact, the others are read again,
 * from outside once they sleep or on their CPU by a timer, for at most a tenth of a second.
 * Adds to `losses`. Returns 0 or -errno with `e` set; -ESRCH: the process has ended. May block
 * while a thread of the target holds its memory lock.
 */
int snapshot__take(struct snapshot *s, struct tasks *tasks, struct target *target,
		   struct losses *losses, struct error *e);

/* The samples, in the order of their tid. */
const struct raw_sample *snapshot__samples(const struct snapshot *s, size_t *ret_n);

#endif
