/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * detect: which format a FILE has, by the form of its first lines. Pure.
 *
 *   gdb        a line `Thread...`, or `#...` that no `\tADDRESS symbol` line follows; pt-pmp's
 *              joined eu-stack text too, which needs no joining; and whatever is not recognised
 *   eu         `PID n - process` or `TID n:`, and then a frame as only eu-stack prints it: without
 *              module, without `??()` in the place of a name, or with its source on a line of its
 * own bpftrace   `@[`, `@name[`, or a `\tADDRESS symbol` line where no perf header is before it bcc
 * `    -                comm (pid)`, or `Sampling at`/`Tracing off-CPU time` in front perf `comm
 * pid/tid [cpu] time: ...` pmp        a line of pt-pmp's output folded     every line is `FRAMES N`
 * and one of the first three has a `;`
 *
 * The first line that settles it does so for the FILE.
 */
#ifndef PMP_READ_DETECT_H
#define PMP_READ_DETECT_H

#include "read/reader.h"

/* All zero is the start of a FILE. */
struct detect {
	size_t n_lines; /* non-empty ones */
	bool not_folded;
	bool has_semicolon;
	bool mark;	/* a '#' line was the last that was not empty */
	bool gdb_frame; /* and it was one of gdb's */
	bool eu;	/* PID and TID lines came */
	bool eu_frame;	/* the last line was one of eu-stack's frames */
	bool eu_frames; /* and others could be */
};

/* The next line. INPUT_AUTO: not settled yet. */
enum input_format detect__line(struct detect *d, struct text line);

/* The FILE's end, or that of what may be looked at. Never INPUT_AUTO. */
enum input_format detect__end(const struct detect *d);

#endif
