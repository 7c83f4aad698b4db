/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * form: what each format that is read line by line implements. Ownership: create() makes what
 * destroy() frees; lines are borrowed until line() returns.
 */
#ifndef PMP_READ_FORM_H
#define PMP_READ_FORM_H

#include "model/stack.h"
#include "read/gdb.h"

struct form {
	/* NULL with errno ENOMEM */
	void *(*create)(stack_fn fn, void *arg);
	/* one line without newline and CR */
	int (*line)(void *form, struct text line);
	/* the end of one FILE: a stack that has begun ends, except where form_eu says otherwise */
	int (*end_file)(void *form);
	/* the end of the input, after end_file(); NULL: nothing to do */
	int (*finish)(void *form);
	void (*destroy)(void *form); /* takes NULL */
};

/*
 * eu-stack of elfutils 0.188, with any of its options. Each frame is handed on as the one line
 * that pt-pmp 3.5.7 makes of it: the source line joined, ` ??()` where there is no name; build ids
 * (-b) and activation marks (-a, -v) left out. For the dialect eu. Threads go on across FILES.
 */
extern const struct form form_eu;

/*
 * bpftrace 0.17. Names are those of the usual pipeline (awk, sort, uniq -c): no parameters and no
 * offsets, and `const` or `void` inside a plain name stays.
 *
 * Samples: a line that starts with '#' begins one, its text is the thread's name for --tids;
 * `\tADDRESS symbol(args)+offset (object)` lines are its frames, in the order they come, kernel
 * and user stacks after one another. In a FILE without '#' lines, a blank line ends a sample.
 *
 * Maps: `@[` or `@name[` up to `]: N`, N being the count (of stats() its `count N`; entries
 * with histograms and negative values are left out). Indented lines are frames, `symbol+offset`
 * or as above; all other keys (comm, pid, strings) are no frames: they are the thread's name.
 */
extern const struct form form_bpftrace;

/*
 * profile and offcputime of bcc and libbpf-tools (0.26): indented symbols, innermost first, `--`
 * between kernel and user, `    -                comm (pid)`, then the count (profile) or
 * microseconds (offcputime). `[Missed User Stack]` and the like are `??`. A line that does not
 * start with a blank and has the form of -f is a folded stack with comm first; comm is no frame.
 */
extern const struct form form_bcc;

/*
 * perf script (6.1), default fields or -F with them in any choice: `comm pid/tid [cpu] time:
 * period event:`, then tab-indented `ADDRESS symbol+0xoff (object)`; without call graphs the frame
 * is on the header's line. A sample counts 1, whatever its period.
 */
extern const struct form form_perf;

/*
 * Folded stacks, `root;..;leaf N`, as of stackcollapse-*.pl and of bpf-pmp itself. Whether the
 * first name is a comm cannot be seen: it stays a frame. Marks such as `_[k]` are left out; a
 * library or source line behind a name, `f(libc.so.6)`, stays.
 */
extern const struct form form_folded;

/*
 * pt-pmp's own output, with or without date lines: the count in 7 columns, a blank, frames joined
 * by commas. The names are final. A comma between brackets that both are there is no separator.
 */
extern const struct form form_pmp;

struct sample;

/* One folded line into `s`, which is handed out. comm_first: the first name is the thread's. */
int folded__line(struct sample *s, struct text line, bool comm_first);

#endif
