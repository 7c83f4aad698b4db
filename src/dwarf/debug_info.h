/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug_info: the DWARF of one object, by libdw: which functions an address is in, those inlined
 * there too, and where in the source.
 *
 * libdw is not made for files that lie: whoever looks up what others control does it in a process
 * that may fall (worker.h).
 */
#ifndef PMP_DEBUG_INFO_H
#define PMP_DEBUG_INFO_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/tail_calls.h"

struct debug_info;

#define DEBUG_INFO_MAX_INLINED 256

struct debug_frame {
	const char *name; /* untrusted bytes; NULL: DWARF names no function there */
	bool mangled;	  /* the name is one to demangle, and to be shown without parameters */
	const char *file; /* as gdb prints it; untrusted bytes; NULL: not known */
	int line;
	/* gdb shows no address: a call of what is inlined, or the very start of a statement */
	bool no_address;
};

/*
 * `fd` is the file that has .debug_info, `alt_fd` what its .gnu_debugaltlink names, or -1; both are
 * taken over. NULL with errno: EINVAL (there is no DWARF in it, or what it names is missing),
 * ENOMEM.
 */
struct debug_info *debug_info__new(int fd, int alt_fd);
void debug_info__free(struct debug_info *d);

/*
 * The frames that the code at `addr` (an address in the object) stands for, innermost first. The
 * address of a call is its return address minus one: then `exact` is false. Returns how many, 0
 * where nothing is known; *ret_frames is valid until the next call.
 */
size_t debug_info__find(struct debug_info *d, uint64_t addr, bool exact,
			const struct debug_frame **ret_frames);

/* Whether something was met that makes no sense. */
bool debug_info__damaged(const struct debug_info *d);

/* tail_calls__find() in this object. Returns how many addresses were stored. */
size_t debug_info__tail_calls(struct debug_info *d, uint64_t return_addr, uint64_t callee_addr,
			      uint64_t ret_addrs[TAIL_CALLS_MAX]);

#endif
