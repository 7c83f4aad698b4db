/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code_names: what gdb calls the code at an address of an object: by its debug information where
 * there is any (dwarf/), which tells inlined functions and source lines too, else by its symbols.
 * Names are kept with the object: the same frames and strings come back for as long as it lives.
 */
#ifndef PMP_CODE_NAMES_H
#define PMP_CODE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_names;
struct object; /* proc/object.h */
struct strbuf; /* base/strbuf.h */

struct code_names_options {
	const char *debug_dir;	/* borrowed; NULL: /usr/lib/debug */
	const char *debuginfod; /* servers, borrowed; NULL: $DEBUGINFOD_URLS */
	bool no_lines;
	bool no_inlines; /* with no_lines: debug information is not read at all */
	bool no_drop;	 /* what reads debug information keeps our privileges */
	size_t max_text; /* bytes of all names together; 0: 64 MiB. What comes then is "??" */
};

/* One function that the code is in. Printable bytes, blanks included. */
struct named_frame {
	const char *name; /* demangled; "??" where there is none, or one of over 64 KiB */
	const char *file; /* NULL: not known */
	int line;
	bool no_address; /* gdb shows none for this frame */
};

/* NULL with errno ENOMEM. */
struct code_names *code_names__new(const struct code_names_options *options);
void code_names__free(struct code_names *c);

/*
 * The code at `addr` (an address in the object); `exact`: it was running there, else the address is
 * a return address minus one. *ret_frames: innermost first, at least one. They live as long as the
 * object and the struct. Returns how many, or -ENOMEM.
 */
int code_names__find(struct code_names *c, struct object *object, uint64_t addr, bool exact,
		     const struct named_frame **ret_frames);

/*
 * The functions that left no frame between two frames of a stack in the same object: the caller's
 * has `return_addr` (an address in the object), the callee's address to name is `callee_addr`.
 * *ret_addrs: the return addresses that their frames would have, innermost first; they live as long
 * as the object. Returns how many, or -ENOMEM.
 */
int code_names__tail_calls(struct code_names *c, struct object *object, uint64_t return_addr,
			   uint64_t callee_addr, const uint64_t **ret_addrs);

/* Append what could not be had, a line each without the program's name, for the user to read.
 * Returns 0 or -ENOMEM. */
int code_names__gaps(const struct code_names *c, struct strbuf *ret_text);

#endif
