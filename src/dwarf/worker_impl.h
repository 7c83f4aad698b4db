/* SPDX-License-Identifier: GPL-2.0-or-later */
/* worker_impl: what both sides of the socket share, worker.c and worker_process.c; for no one else.
 */
#ifndef PMP_DWARF_WORKER_IMPL_H
#define PMP_DWARF_WORKER_IMPL_H

#include "dwarf/debug_info.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_TEXT (1u << 20)

struct request {
	uint32_t number; /* its file comes with the first request for it */
	uint32_t flags;
	uint64_t addr; /* with TAIL_CALLS the return address */
	uint64_t callee;
};

#define EXACT	   1u
#define TAIL_CALLS 2u /* the answer's frames have addresses alone */

struct answer {
	uint32_t n; /* frames, then the text; UNUSABLE: there is nothing to be had of this file */
	uint32_t text_len;
};

#define UNUSABLE UINT32_MAX

struct answer_frame {
	uint64_t addr;
	uint32_t name, file; /* in the text; NO_TEXT: there is none */
	int32_t line;
	uint32_t flags;
};

#define NO_TEXT	   UINT32_MAX
#define MANGLED	   1u
#define NO_ADDRESS 2u

#define MAX_FRAMES (DEBUG_INFO_MAX_INLINED + 1)
#define MAX_ANSWER (sizeof(struct answer) + MAX_FRAMES * sizeof(struct answer_frame) + MAX_TEXT + 1)

/* In a child of `parent`: become the worker at the other end of `socket`. */
__attribute__((noreturn)) void worker_process__run(int socket, bool keep_privileges, pid_t parent);

/* What a file has on the disk, in bytes: a hole is large for nothing. 0 for -1. */
uint64_t worker_process__size_of(int fd);

#endif
