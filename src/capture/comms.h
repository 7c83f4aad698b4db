/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * comms: what a process is called, and what it was called before each exec: what was counted then
 * may come to us after it.
 */
#ifndef PMP_COMMS_H
#define PMP_COMMS_H

#include "bpf/abi.h"

#include <stdint.h>
#include <sys/types.h>

struct past_comm;

/* All zeros: not known, and nothing before. comms__forget() frees what it holds. */
struct comms {
	char now[PMP_COMM_LEN];
	struct past_comm *past; /* the latest first */
};

/* Read what it is called now from /proc/PID/comm. What cannot be read is left as it was. */
void comms__read(struct comms *c, pid_t pid);

/* The process became another program at `now` (monotonic nanoseconds); its generations up to
 * `last_generation` were those of the program before. To be followed by comms__read(). Returns 0 or
 * -ENOMEM. */
int comms__exec(struct comms *c, uint32_t last_generation, uint64_t now);

/* What it was called in this generation; 0: what it is called now. */
const char *comms__in(const struct comms *c, uint32_t generation);

/* Those of before `until` in monotonic nanoseconds can be forgotten; UINT64_MAX: all of them. */
void comms__forget(struct comms *c, uint64_t until);

#endif
