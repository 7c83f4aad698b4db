/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report: what is printed: equal stacks with their count, in printing order, or the functions in
 * them. Owned by whoever made it; a writer only reads it. Who wants fewer lines lowers their
 * number: the totals stay, so that shares go on referring to everything.
 */
#ifndef PMP_REPORT_H
#define PMP_REPORT_H

#include <stddef.h>
#include <stdint.h>

struct report_line {
	uint64_t count;	    /* thread stacks, or what the mode counts */
	const char *frames; /* shortened, joined by ',', innermost first; NUL-terminated */
	size_t len;	    /* of `frames`, which may hold NULs as its input did */
	/* Start of each frame within `frames` (a name may hold commas itself) and their number. */
	const uint32_t *offsets;
	size_t n_frames;
};

struct report {
	const struct report_line *lines;
	size_t n_lines;
	uint64_t total; /* of all counts; UINT64_MAX if they come to more */
};

struct report_function {
	const char *name; /* not NUL-terminated; `??` if it has none */
	size_t len;
	uint64_t self;	/* of the stacks of which it is the innermost frame */
	uint64_t total; /* of the stacks that it is in, each counted once */
};

struct report_functions {
	const struct report_function *functions;
	size_t n_functions;
	uint64_t total; /* the report's */
};

#endif
