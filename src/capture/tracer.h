/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracer: the programs that stock pt-pmp gets its text from, run with the same arguments: gdb,
 * eu-stack and pt-eustack-resolver. They stop their target while they read it; however they end,
 * and however we do, it is not left stopped. Their standard error is ours, as with stock.
 * Text is borrowed: valid until the callback returns.
 */
#ifndef PMP_TRACER_H
#define PMP_TRACER_H

#include "base/error.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum tracer_kind { TRACER_GDB, TRACER_EU, TRACER_PTEU };

struct tracer_options {
	enum tracer_kind kind;
	bool readnever; /* gdb's option; the others do not know it: it is passed over */
	double timeout; /* seconds for each run; 0: none */
};

struct tracer_result {
	int status;	/* the program's exit status; -1: it was killed, or not even started */
	int signal;	/* sent to us meanwhile: act upon it by child__die_by(); 0: none */
	bool continued; /* the target was left stopped, and was sent SIGCONT */
};

struct tracer;

/* A value other than 0 ends the program and is handed on. */
typedef int (*tracer_text_fn)(void *arg, const char *bytes, size_t len);

/* Find the programs in PATH. `options` are copied. NULL with errno and `e` set: ENOENT (which one
 * is missing, and the package that has it) or ENOMEM. */
struct tracer *tracer__new(const struct tracer_options *options, struct error *e);
void tracer__free(struct tracer *t);

/*
 * Run it on the process once; text() is called with what it prints, cut anywhere, eu-stack's
 * joined as by eu_join. Returns 0 if it ended by itself and printed a frame: with another exit
 * status than 0 too, as stock takes it. Else what text() returned, or -errno with `e` set, the
 * text so far being a part only: -ENODATA (no frame), -EIO (it was killed), -ETIMEDOUT, -EINTR
 * (ret_result->signal), -EOPNOTSUPP (this gdb has no --readnever), ...
 *
 * *ret_result is set in every case. If `continued` is, `e` says so: added to the error's text, or,
 * where 0 is returned, as a notice of its own for the caller to print.
 *
 * A target that was stopped before stays so. With a program that did not end well this takes some
 * 50 ms more: its last SIGSTOP may reach the target after its death.
 */
int tracer__run(struct tracer *t, pid_t pid, tracer_text_fn text, void *arg, struct error *e,
		struct tracer_result *ret_result);

#endif
