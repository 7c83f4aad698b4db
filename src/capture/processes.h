/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * processes: those that are sampled: what code they have mapped, now and in the recent past, and
 * the same for the kernel to unwind by. Each state of a process' mappings is a generation; a
 * sample carries the number of the one that it was unwound with.
 */
#ifndef PMP_PROCESSES_H
#define PMP_PROCESSES_H

#include "base/error.h"
#include "bpf/abi.h"
#include "capture/unwind_maps.h"
#include "proc/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct processes;

struct processes_options {
	const char *comm; /* processes of another name are dropped when they exec; NULL: none is */
	double max_wait;  /* seconds to wait for a process' memory lock */
	/* A generation is over: no more stacks of it come. */
	void (*forget)(void *arg, uint32_t generation);
	void *arg;
};

/* `maps` and what `options` points to are borrowed. NULL with errno ENOMEM. */
struct processes *processes__new(struct unwind_maps *maps, const struct processes_options *options);
void processes__free(struct processes *ps);

/* Take a process in, and look at its mappings. Returns 0 or -errno: -ESRCH (it has ended), -EPERM,
 * -ETIMEDOUT, ... */
int processes__add(struct processes *ps, pid_t pid);

/* The kernel's map of processes is there, and the unwind maps are loaded: put all into it. */
int processes__load(struct processes *ps, int processes_fd);

/* One of PMP_EVENT_LOOK, FORK, EXEC, EXIT. Returns 0 or -ENOMEM. */
int processes__news(struct processes *ps, const struct pmp_event *event);

/* To be called now and then: looks again where a look was put off, and drops what is over. All that
 * the kernel took before `settled_ns` has been dealt with. */
int processes__tick(struct processes *ps, uint64_t now_ns, uint64_t settled_ns);

/* Drop those that ended without news of it: before these came, or when they found no room. */
void processes__drop_ended(struct processes *ps);

/* The code at `pc` in a generation. Returns 0, or -ENOENT. */
int processes__find_code(const struct processes *ps, uint32_t generation, uint64_t pc,
			 struct code_place *ret_place);

/*
 * Whether a process still had this generation at `time` (ns, CLOCK_MONOTONIC): the kernel met it
 * then but could not tell. Looks at its mappings. Returns 0; -ESTALE: it had not, or nobody can
 * tell, for it has ended or changes its mappings all the time; -ENOMEM.
 */
int processes__verify(struct processes *ps, pid_t pid, uint32_t generation, uint64_t time);

/* The generation that a process has now; 0: none. */
uint32_t processes__generation(const struct processes *ps, pid_t pid);

/* The name of a process, as the kernel has it (untrusted bytes); "" if it is not known. With a
 * generation (not 0) the name that it had then: an exec changes both. Borrowed until the next
 * call. */
const char *processes__name(struct processes *ps, pid_t pid, uint32_t generation);

/* How many are known and have not ended. */
size_t processes__alive(const struct processes *ps);

struct processes_losses {
	size_t looks;	   /* times that mappings were read */
	size_t unreadable; /* processes that could not be read */
	size_t stuck;	   /* of these, because a thread of theirs keeps their memory locked */
	size_t no_room;	   /* states of mappings that found no room in the kernel */
};

const struct processes_losses *processes__losses(const struct processes *ps);

#endif
