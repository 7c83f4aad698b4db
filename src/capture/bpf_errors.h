/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf_errors: why the kernel did not take BPF programs, in words that help.
 */
#ifndef PMP_BPF_ERRORS_H
#define PMP_BPF_ERRORS_H

#include "base/error.h"

/* libbpf is to print nothing: what matters of a failure is said here. */
void bpf_errors__keep_quiet(void);

/* `err`: positive errno of the load. Returns -errno, which may be another. */
int bpf_errors__say(struct error *e, int err);

#endif
