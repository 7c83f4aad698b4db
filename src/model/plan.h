/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plan: what the command line asks for. Made once by cli/options.c, then read-only; the strings
 * are argv's, the list of files is freed by options__free().
 */
#ifndef PMP_PLAN_H
#define PMP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum plan_action { PLAN_CAPTURE, PLAN_CHECK, PLAN_HELP, PLAN_VERSION };
enum plan_format { PLAN_FORMAT_PMP, PLAN_FORMAT_FOLDED };
enum plan_tracer { PLAN_TRACER_BPF, PLAN_TRACER_GDB, PLAN_TRACER_EU, PLAN_TRACER_PTEU };
enum plan_dialect { PLAN_DIALECT_AUTO, PLAN_DIALECT_GDB, PLAN_DIALECT_EU, PLAN_DIALECT_PTEU };

struct plan {
	enum plan_action action;
	enum plan_format format;

	/* text traces to read instead of a process; "-" is standard input */
	const char **files;
	size_t n_files;
	const char *input;	   /* name of their format; NULL: by their form */
	enum plan_dialect dialect; /* whose rules shorten the names */

	/* targets: a pid, else every process of this command, else one process by exact name */
	pid_t pid;	    /* 0: not given */
	const char *comm;   /* NULL: not given */
	const char *binary; /* NULL: mysqld, then mariadbd */

	bool target_given;	 /* any of the options that name a process */
	enum plan_tracer tracer; /* who captures */
	double timeout;		 /* seconds that another tracer may take; 0: for ever */
	bool readnever;		 /* gdb is not to read debug information */

	unsigned int iterations; /* at least 1 */
	double interval;	 /* seconds between iterations, at least 0 */
	double max_wait;	 /* seconds to wait for the target's memory lock, over 0 */
	size_t max_frames;	 /* user frames per stack, at least 1 */
	bool kernel;		 /* kernel frames before the user frames */
	bool plain_iterator;	 /* as on kernels before 5.18: for tests of that path */

	size_t lines;	  /* frames per stack that are printed; 0: all */
	const char *tids; /* comma-separated regular expressions; NULL: every thread */

	const char *save_samples; /* file that raw text is appended to; NULL: none */
	const char *output;	  /* file that takes the place of standard output; NULL: none */
	bool verbose;
};

#endif
