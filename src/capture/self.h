/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * self: what a capture asks for its own process. Without the right to it, so be it.
 */
#ifndef PMP_SELF_H
#define PMP_SELF_H

enum self_priority {
	SELF_AS_STARTED,
	/* to read a server that keeps all CPUs busy at one moment, not over a second in which its
	 * threads run on between; and not to be late for what the kernel hands over */
	SELF_CAPTURING,
	/* for some 70 ms of CPU time: a capture is to begin when it is asked for */
	SELF_STARTING,
};

void self__set_priority(enum self_priority priority);

/* Memory that we share with the kernel's BPF maps is not for processes that are forked from now on:
 * those that read what others control could write to it. To be called after each load. Returns 0 or
 * -errno. */
int self__keep_bpf_maps(void);

/* Each object of each process keeps a file open. */
void self__allow_many_files(void);

#endif
