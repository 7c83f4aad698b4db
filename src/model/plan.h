/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plan: what the command line asks for. Made once by cli/options.c, then read-only; the strings
 * are argv's or the config's, the lists of files and pids are freed by options__free().
 */
#ifndef PMP_PLAN_H
#define PMP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum plan_action { PLAN_CAPTURE, PLAN_CHECK, PLAN_HELP, PLAN_VERSION };
enum plan_mode { PLAN_MODE_THREADS, PLAN_MODE_CPU, PLAN_MODE_OFFCPU };
enum plan_format { PLAN_FORMAT_PMP, PLAN_FORMAT_FOLDED, PLAN_FORMAT_SAMPLES };
enum plan_tracer { PLAN_TRACER_BPF, PLAN_TRACER_GDB, PLAN_TRACER_EU, PLAN_TRACER_PTEU };
enum plan_dialect { PLAN_DIALECT_AUTO, PLAN_DIALECT_GDB, PLAN_DIALECT_EU, PLAN_DIALECT_PTEU };

enum plan_unwind { PLAN_UNWIND_EH_FRAME, PLAN_UNWIND_FP };

/* What a thread may be while it is off the CPU: bits of `states`. */
enum {
	PLAN_STATE_INTERRUPTIBLE = 1,
	PLAN_STATE_UNINTERRUPTIBLE = 2,
	PLAN_STATE_RUNNABLE = 4,
};

struct plan {
	enum plan_action action;
	enum plan_mode mode;
	enum plan_format format;

	/* text traces to read instead of a process; "-" is standard input */
	const char **files;
	size_t n_files;
	const char *input;	   /* name of their format; NULL: by their form */
	enum plan_dialect dialect; /* whose rules shorten the names */

	/* targets: the whole system, else these pids, else every process of this command, else one
	 * process by exact name */
	bool all;
	pid_t *pids; /* each one once, in the order given; NULL: none given */
	size_t n_pids;
	const char *comm;   /* NULL: not given */
	const char *binary; /* NULL: mysqld, then mariadbd */

	bool target_given;	 /* any of the options that name a process */
	enum plan_tracer tracer; /* who captures */
	double timeout;		 /* seconds that another tracer may take; 0: for ever */
	bool readnever;		 /* debug information is not to be read, by gdb or by us */

	unsigned int iterations; /* at least 1 */
	double interval;	 /* seconds between iterations, at least 0 */
	double max_wait;	 /* seconds to wait for the target's memory lock, over 0 */
	size_t max_frames;	 /* user frames per stack, at least 1 */
	bool kernel;		 /* kernel frames before the user frames */
	bool plain_iterator;	 /* as before 5.18, and kallsyms, as before 5.16: for tests */

	/* cpu and offcpu */
	double duration;	 /* seconds, over 0 */
	enum plan_unwind unwind; /* how user stacks are unwound in the kernel */

	/* cpu: a sample `frequency` times a second, or, unless it is 0, every `event_count` events
	 */
	const char *event;	/* NULL: cpu-clock */
	unsigned int frequency; /* Hz, 1 to 100000 */
	uint64_t event_count;

	/* offcpu: waits of so many microseconds, and of these states alone */
	uint64_t min_us, max_us; /* 0: no limit */
	unsigned int states;	 /* PLAN_STATE_... */

	const char *debug_dir;	/* of separate debug files; NULL: /usr/lib/debug */
	const char *debuginfod; /* servers of them; NULL: $DEBUGINFOD_URLS */
	bool no_lines;		/* no source lines; with no_inlines: DWARF is not read */
	bool no_inlines;	/* no inlined functions */
	bool no_drop;		/* keep all privileges to the end */

	size_t lines;	  /* frames per stack that are printed; 0: all */
	const char *tids; /* comma-separated regular expressions; NULL: every thread */
	bool annotate;	  /* names of kernel frames end in _[k] */
	bool by_process;  /* command and pid are the two outermost frames */
	bool percent;	  /* shares in place of counts */
	bool functions;	  /* a table of functions in place of the stacks */
	size_t top;	  /* lines that are printed; 0: all */
	bool stacks;	  /* with PLAN_FORMAT_SAMPLES: each sample's stack, too */

	const char *save_samples; /* file that raw text is appended to; NULL: none */
	const char *output;	  /* file that takes the place of standard output; NULL: none */
	bool verbose;
};

#endif
