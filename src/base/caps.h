/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * caps: which capabilities this process lacks for what it is about to do, and which it gives up
 * once that is done (capabilities(7)).
 */
#ifndef PMP_CAPS_H
#define PMP_CAPS_H

#include "base/strbuf.h"

enum caps_need {
	CAPS_LOAD,   /* load and run the BPF programs */
	CAPS_TARGET, /* read another user's process: its maps, memory and files */
};

/*
 * Append the names of the missing ones, joined by " and ", to ret_names; nothing is appended if
 * none is missing. CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, as it does in the kernel.
 * Returns 0 or -errno.
 */
int caps__missing(enum caps_need need, struct strbuf *ret_names);

/*
 * After the capture: give up, for good, all but what names and output still take. These are kept:
 * CAP_SYSLOG (the kernel's names), CAP_SYS_PTRACE (a process' root, for its perf-PID.map),
 * CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH (debug files and -o, as before), CAP_SETUID, CAP_SETGID
 * and CAP_KILL (to start what reads debug information without privileges, and to end it).
 */
void caps__drop(void);

/* All of them, for a process that needs none. Returns 0 or -errno. */
int caps__drop_all(void);

#endif
