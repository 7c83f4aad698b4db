/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * targets: which processes a plan means.
 */
#ifndef PMP_TARGETS_H
#define PMP_TARGETS_H

#include "base/error.h"
#include "base/strbuf.h"
#include "model/plan.h"

#include <stddef.h>
#include <sys/types.h>

/*
 * The processes of plan->pids, plan->comm or plan->binary, each one found to be fit to be read;
 * none, and *ret_pids NULL, with plan->all. *ret_pids is the caller's to free. Returns 0 or -errno
 * with `e` set: none matches, or the one that does is a zombie, a kernel thread, ...; -ENOTUNIQ
 * where several processes have a name that must be one's: they are described in ret_list, a line
 * each.
 */
int targets__find(const struct plan *plan, pid_t **ret_pids, size_t *ret_n, struct strbuf *ret_list,
		  struct error *e);

#endif
