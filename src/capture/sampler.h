/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sampler: the samplers' BPF programs (bpf/profile.bpf.c), loaded, attached and drained.
 * Records and keys are borrowed: valid until the callback returns.
 */
#ifndef PMP_SAMPLER_H
#define PMP_SAMPLER_H

#include "base/error.h"
#include "bpf/abi.h"
#include "capture/unwind_maps.h"
#include "model/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler;

struct sampler_sink {
	/* A record of the ring buffer; `size` is not trusted to be that of its type. */
	int (*record)(void *arg, const struct pmp_event *event, size_t size);
	int (*count)(void *arg, const struct pmp_count_key *key, const struct pmp_count *count);
	void *arg;
};

/* Load the programs for plan->mode. `maps` has the tables that there is to be room for. Where the
 * kernel has no bpf_loop, those that walk by frame pointers. NULL with errno and `e` set. */
struct sampler *sampler__new(const struct plan *plan, struct unwind_maps *maps,
			     const struct sampler_sink *sink, struct error *e);
void sampler__free(struct sampler *s);

/* Whether it walks by frame pointers, wanted or not. */
bool sampler__by_frame_pointers(const struct sampler *s);

int sampler__processes_fd(const struct sampler *s);
int sampler__waits_fd(const struct sampler *s);

/* From now on news of processes come, then samples. Return 0 or -errno with `e` set. */
int sampler__follow_processes(struct sampler *s, struct error *e);
int sampler__start(struct sampler *s, struct error *e);

/* Off-CPU time counts from now on (ns, CLOCK_MONOTONIC). */
void sampler__begin(struct sampler *s, uint64_t now_ns);

/* Wait for records for at most so long, and hand them on: not for ever, even if they come faster
 * than that. Returns 0, -errno, or what the sink returned. */
int sampler__poll(struct sampler *s, int milliseconds);

/* Hand on counts so far, as far as their stacks have been handed on, too. */
int sampler__drain_counts(struct sampler *s, uint64_t now_ns);

/* All that the kernel took before this time has been handed on (ns, CLOCK_MONOTONIC). */
uint64_t sampler__settled(const struct sampler *s);

/* No more samples. Then hand on all that is left. */
void sampler__stop(struct sampler *s);
int sampler__drain_all(struct sampler *s);

/* CPUs that came or went. */
int sampler__follow_cpus(struct sampler *s);

/* User space no longer has the stack of this id. */
void sampler__forget(struct sampler *s, uint64_t id);
/* The thread of this id is not wanted. */
void sampler__ignore_thread(struct sampler *s, uint64_t id);

/* Sums over all CPUs, so far. */
int sampler__stats(const struct sampler *s, struct pmp_stats *ret_stats);
/* Ticks that there should have been, and those of them on idle CPUs; false: that cannot be known.
 */
bool sampler__expected(struct sampler *s, uint64_t *ret_ticks, uint64_t *ret_idle);

#endif
