/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report: what is printed: equal stacks with their count, in printing order, and what was lost.
 * Owned by whoever aggregated it; a writer only reads it.
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
};

#endif
