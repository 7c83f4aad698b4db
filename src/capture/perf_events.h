/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_events: runs a BPF program at each tick of a sampling event, on every CPU
 * (perf_event_open(2)).
 */
#ifndef PMP_PERF_EVENTS_H
#define PMP_PERF_EVENTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct perf_events;

struct perf_events_options {
	const char *event;  /* perf's name of it, as cpu-clock or cycles; NULL: cpu-clock */
	uint64_t frequency; /* ticks a second; 0: by period */
	uint64_t period;    /* one tick each so many events (for clocks: ns) */
	int program_fd;
};

/* Start on every CPU that is online. NULL with errno and `e` set: EINVAL (no such event), ENOENT or
 * EOPNOTSUPP (not on this machine), EACCES or EPERM (not permitted), ... */
struct perf_events *perf_events__new(const struct perf_events_options *options, struct error *e);
void perf_events__free(struct perf_events *pe);

/* Look for CPUs that came or went. Returns 0 or -errno. */
int perf_events__follow_cpus(struct perf_events *pe);

/* Stop the ticks; what they counted can still be asked. */
void perf_events__stop(struct perf_events *pe);

/*
 * How many ticks there should have been so far, and how many of them on CPUs that had nothing to
 * do: of these, a virtual machine may not see all. False: that cannot be known, for the kernel
 * adapts the period of this event to the frequency as it goes.
 */
bool perf_events__expected(struct perf_events *pe, uint64_t *ret_ticks, uint64_t *ret_idle);

#endif
