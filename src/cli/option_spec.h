/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option_spec: the table of all options, in the order of the help, and what each does to a plan.
 * For options.c and help.c alone.
 */
#ifndef PMP_OPTION_SPEC_H
#define PMP_OPTION_SPEC_H

#include "base/error.h"
#include "model/plan.h"

#include <stddef.h>

/* Bits of option_spec.modes. */
enum {
	FOR_THREADS = 1 << PLAN_MODE_THREADS,
	FOR_CPU = 1 << PLAN_MODE_CPU,
	FOR_OFFCPU = 1 << PLAN_MODE_OFFCPU,
	FOR_ALL = FOR_THREADS | FOR_CPU | FOR_OFFCPU,
};

struct option_spec {
	char letter;	   /* 0: none */
	const char *name;  /* NULL: a heading, which is `help` */
	const char *value; /* what the help calls it; NULL: takes none */
	const char *help;
	int (*set)(struct plan *plan, const char *value, struct error *e);
	unsigned int modes; /* those that it says something to */
	size_t flag;	    /* without set(): offset of the bool in the plan that it sets */
};

extern const struct option_spec option_specs[];
extern const size_t n_option_specs;

/* The names of the modes, by enum plan_mode. */
extern const char *const mode_names[3];

/* Returns 0 or -EINVAL with `e` set. */
int option_spec__mode(const char *value, enum plan_mode *ret_mode, struct error *e);

#endif
