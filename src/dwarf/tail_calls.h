/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tail_calls: the functions between a caller and a callee that left no frame, because the last
 * thing that they did was to jump to the next one. They are found by DW_TAG_call_site, if there is
 * one way only; see call_site_find_chain and chain_candidate in gdb's dwarf2/loc.c.
 */
#ifndef PMP_TAIL_CALLS_H
#define PMP_TAIL_CALLS_H

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#define TAIL_CALLS_MAX 16

/* What is asked about the object. Both return 0 or -ENOENT. */
struct tail_calls_space {
	int (*function_at)(void *arg, uint64_t addr, Dwarf_Die *ret_function);
	int (*symbol)(void *arg, const char *name, uint64_t *ret_addr);
	void *arg;
};

/*
 * Between the call that returns to `return_addr` and the function that has `callee_addr`. Stores
 * the return addresses that the functions' frames would have, innermost first. Returns how many: 0
 * where it was a plain call, or where it is not certain which way it went.
 */
size_t tail_calls__find(const struct tail_calls_space *space, uint64_t return_addr,
			uint64_t callee_addr, uint64_t ret_addrs[TAIL_CALLS_MAX]);

#endif
