// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * main: wires the stages; pipeline.c has those that all stacks pass:
 *
 *   options, config -> plan -> session -> raw_sample -> symbolizer -+-> stack -> filter ->
 *   tracer, FILES, earlier samples ---------------> reader ---------+   shortener -> aggregate ->
 *                                                                       report -> writer -> output
 */
#include "base/error.h"
#include "base/strbuf.h"
#include "base/caps.h"
#include "capture/features.h"
#include "capture/guard.h"
#include "capture/profile.h"
#include "capture/session.h"
#include "capture/targets.h"
#include "cli/options.h"
#include "capture/child.h"
#include "capture/tracer.h"
#include "model/plan.h"
#include "pipeline.h"
#include "proc/find.h"
#include "write/output.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The signal that asked us to end, or 0. A second one does not ask. */
static volatile sig_atomic_t interrupted;

static void on_signal(int signal_number)
{
	interrupted = signal_number;
}

static void complain(struct error *e, int err)
{
	fprintf(stderr, "bpf-pmp: %s\n", error__text(e, err));
	error__clear(e);
}

/* Print what was captured, and what of it is missing; `err` is what ended the capture, or 0. */
static int finish_capture(struct pipeline *p, const struct plan *plan,
			  const struct session *session, time_t began, struct error *e, int err)
{
	const struct losses *losses = session__losses(session);
	struct error first = *e;
	int put;

	/* what an earlier iteration gave is not lost for what became of a later one */
	if (err && !losses->threads)
		return err;
	*e = (struct error)ERROR_INIT;
	put = pipeline__report(p, &began);
	if (put) {
		error__clear(&first);
		return put;
	}
	*e = first;
	if (err != -ETIMEDOUT) /* then it is being written to still */
		session__print_losses(session);
	pipeline__print_gaps(p);
	if (interrupted)
		fprintf(stderr, "bpf-pmp: ended after %zu snapshots; these are printed\n",
			losses->snapshots);
	if (err && !interrupted) {
		char *reason = strdup(error__text(e, err));

		error__set(e, -err, "%s; %zu snapshots before that are printed",
			   reason ? reason : "", losses->snapshots);
		free(reason);
	}
	return err;
}

static int capture_by_bpf(const struct plan *plan, struct pipeline *p, const pid_t *pids,
			  size_t n_pids, struct error *e)
{
	const struct session_sink sink = {
		.sample = pipeline__sample,
		.iteration = pipeline__iteration,
		.arg = p,
	};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	int err = pipeline__expect_samples(p);
	struct session *session = err ? NULL : session__new(plan, e);
	time_t began = time(NULL);

	if (!err)
		err = session ? pipeline__open_saved(p) : -errno;
	if (!err && plan->iterations > 1) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
	}
	if (!err) {
		err = session__run(session, pids, n_pids, &sink, &interrupted, e);
		if (!plan->no_drop)
			caps__drop();
		err = finish_capture(p, plan, session, began, e, err);
	}
	/* a thread that was given up still works on the session: that is left to the kernel */
	if (err != -ETIMEDOUT)
		session__free(session);
	return err;
}

/* A line on the terminal that is written over again; gone in the end. */
static void show_progress(void *arg, const struct profile_progress *progress)
{
	*(bool *)arg = true;
	fprintf(stderr, "\rbpf-pmp: %.0f s left, %" PRIu64 " samples, %" PRIu64 " lost\033[K",
		progress->left, progress->samples, progress->lost);
}

static int profile(const struct plan *plan, struct pipeline *p, const pid_t *pids, size_t n_pids,
		   struct error *e)
{
	/* Ctrl-C is how a long one ends: it is to be printed then */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	bool shown = false;
	struct profile_sink sink = {
		.stack = pipeline__stack,
		.tick = pipeline__tick,
		.wants = pipeline__wants,
		.arg = p,
	};
	int err = pipeline__expect_samples(p);
	struct profile *profile = err ? NULL : profile__new(plan);
	struct strbuf losses = STRBUF_INIT;
	time_t began = time(NULL);

	if (!err && !profile)
		err = -errno;
	if (!err) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		if (plan->duration > 2 && isatty(STDERR_FILENO)) {
			sink.progress = show_progress;
			sink.progress_arg = &shown;
		}
		err = profile__run(profile, pids, n_pids, &sink, &interrupted, e);
	}
	if (shown)
		fputs("\r\033[K", stderr);
	if (!err)
		err = profile__describe(profile, &losses);
	if (!plan->no_drop)
		caps__drop();
	if (!err)
		err = profile__each(profile);
	if (!err)
		err = pipeline__report(p, &began);
	if (!err) {
		fputs(losses.data ? losses.data : "", stderr);
		pipeline__print_gaps(p);
	}
	strbuf__free(&losses);
	profile__free(profile);
	return err;
}

/* One run of gdb or eu-stack on each process. */
static int trace_once(struct tracer *tracer, struct pipeline *p, const pid_t *pids, size_t n_pids,
		      struct error *e)
{
	struct tracer_result result;
	int err = 0;

	for (size_t i = 0; i < n_pids && !err && !interrupted; i++) {
		err = tracer__run(tracer, pids[i], pipeline__trace, p, e, &result);
		if (!err && result.continued)
			complain(e, 0);
		if (err == -EINTR)
			interrupted = result.signal;
	}
	return err;
}

static int capture_by_tracer(const struct plan *plan, struct pipeline *p, const pid_t *pids,
			     size_t n_pids, struct error *e)
{
	const struct tracer_options options = {
		.kind = plan->tracer == PLAN_TRACER_EU	   ? TRACER_EU
			: plan->tracer == PLAN_TRACER_PTEU ? TRACER_PTEU
							   : TRACER_GDB,
		.readnever = plan->readnever,
		.timeout = plan->timeout,
	};
	struct tracer *tracer = tracer__new(&options, e);
	time_t began = time(NULL);
	int err = tracer ? pipeline__open_saved(p) : -errno;

	for (unsigned int i = 0; i < plan->iterations && !err && !interrupted; i++) {
		struct timespec pause = {.tv_sec = (time_t)plan->interval};

		pause.tv_nsec = (long)((plan->interval - (double)pause.tv_sec) * 1e9);
		err = trace_once(tracer, p, pids, n_pids, e);
		if (!err)
			err = pipeline__iteration(p);
		if (!err && i + 1 < plan->iterations)
			nanosleep(&pause, NULL);
	}
	if (!err)
		err = pipeline__report(p, &began);
	tracer__free(tracer);
	return err;
}

static int capture(const struct plan *plan, bool as_pt_pmp)
{
	struct error e = ERROR_INIT;
	struct pipeline *pipeline = NULL;
	struct strbuf list = STRBUF_INIT;
	pid_t *pids = NULL;
	size_t n_pids = 0;
	int err = targets__find(plan, &pids, &n_pids, &list, &e);

	if (!err) {
		pipeline = pipeline__new(plan, &e);
		err = pipeline ? 0 : -errno;
	}
	if (!err && plan->mode != PLAN_MODE_THREADS)
		err = profile(plan, pipeline, pids, n_pids, &e);
	else if (!err && plan->tracer == PLAN_TRACER_BPF)
		err = capture_by_bpf(plan, pipeline, pids, n_pids, &e);
	else if (!err)
		err = capture_by_tracer(plan, pipeline, pids, n_pids, &e);
	if (err && !(err == -EPIPE && as_pt_pmp)) /* `| head`, which pt-sift does */
		complain(&e, err);
	fputs(list.data ? list.data : "", stderr);
	if (err == -ETIMEDOUT && plan->tracer == PLAN_TRACER_BPF)
		_exit(as_pt_pmp ? EXIT_SUCCESS : EXIT_FAILURE);
	pipeline__free(pipeline);
	strbuf__free(&list);
	free(pids);
	if (interrupted)
		child__die_by(interrupted); /* what called us is to know */
	/* where stock fails, too: its program is missing */
	if (err == -ENOENT && plan->tracer != PLAN_TRACER_BPF)
		return EXIT_FAILURE;
	return err && !as_pt_pmp ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int read_files(const struct plan *plan, bool as_pt_pmp)
{
	struct error e = ERROR_INIT;
	struct pipeline *pipeline = pipeline__new(plan, &e);
	bool missing = false;
	int err = pipeline ? pipeline__files(pipeline, &missing) : -errno;

	if (!err)
		err = pipeline__report(pipeline, NULL);
	if (err && !(err == -EPIPE && as_pt_pmp)) /* `| head`, which pt-sift does */
		complain(&e, err);
	pipeline__free(pipeline);
	return (err || missing) && !as_pt_pmp ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * `cat trace | bpf-pmp`: standard input holds a trace if it is a pipe or a file, and nothing on the
 * command line asks for a process. A pipe that ends at once is none that anybody means (a job of
 * cron), one that stays silent may be none (ssh): then say what we wait for.
 */
static bool stdin_has_trace(const struct plan *plan)
{
	struct pollfd readable = {.fd = STDIN_FILENO, .events = POLLIN};
	struct stat st;
	int waiting;

	if (plan->mode != PLAN_MODE_THREADS || plan->target_given || plan->iterations > 1 ||
	    plan->save_samples || plan->kernel || plan->tracer != PLAN_TRACER_BPF ||
	    fstat(STDIN_FILENO, &st) || !(S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode)))
		return false;
	if (poll(&readable, 1, 2000) == 0)
		fprintf(stderr,
			"bpf-pmp: reading a trace from standard input; to capture a process, "
			"give -p PID or -b NAME\n");
	else if (S_ISFIFO(st.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && !waiting)
		return false;
	return true;
}

struct check {
	pid_t pid;
	struct strbuf text;
	bool usable;
};

static int run_check(void *arg)
{
	struct check *check = arg;

	return features__check(check->pid, &check->text, &check->usable);
}

static int check(const struct plan *plan)
{
	struct check *check = calloc(1, sizeof(*check)); /* left alone should it time out */
	struct error e = ERROR_INIT;
	struct output *output = output__open(plan->output, &e);
	bool usable = false;
	pid_t *pids = NULL;
	size_t n = 0;
	int err = !output ? -errno : !check ? -ENOMEM : 0;

	if (!err) {
		check->pid = plan->n_pids ? plan->pids[0] : 0;
		if (!plan->n_pids && plan->binary && !find__binary(plan->binary, &pids, &n) &&
		    n == 1)
			check->pid = pids[0];
		free(pids);
		err = guard__run(run_check, check, plan->max_wait);
	}
	if (err == -ETIMEDOUT) {
		error__set(&e, ETIMEDOUT,
			   "no answer within %g s: a thread of process %d keeps its "
			   "memory locked, or the machine is overloaded (see --max-wait)",
			   plan->max_wait, (int)check->pid);
		complain(&e, err);
		_exit(EXIT_FAILURE);
	}
	if (!err) {
		err = output__put(output, &check->text, &e);
		usable = check->usable;
	}
	if (check)
		strbuf__free(&check->text);
	free(check);
	output__close(output);
	if (err)
		complain(&e, err);
	return err || !usable ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int put_text(int (*make)(struct strbuf *out))
{
	struct strbuf text = STRBUF_INIT;
	struct error e = ERROR_INIT;
	struct output *output = output__open(NULL, &e);
	int err = output ? make(&text) : -errno;

	if (!err)
		err = output__put(output, &text, &e);
	output__close(output);
	strbuf__free(&text);
	if (err)
		complain(&e, err);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int make_version(struct strbuf *out)
{
	return strbuf__append_str(out, "bpf-pmp " PMP_VERSION "\n");
}

static int run(const struct plan *plan, bool as_pt_pmp)
{
	switch (plan->action) {
	case PLAN_HELP:
		return put_text(options__help);
	case PLAN_VERSION:
		return put_text(make_version);
	case PLAN_CHECK:
		return check(plan);
	case PLAN_CAPTURE:
		break;
	}
	if (plan->n_files || (!as_pt_pmp && (plan->input || stdin_has_trace(plan))))
		return read_files(plan, as_pt_pmp);
	return capture(plan, as_pt_pmp);
}

int main(int argc, char *argv[])
{
	struct config *config = config__new();
	struct error e = ERROR_INIT;
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	bool as_pt_pmp = argc && !strcmp(slash ? slash + 1 : argv[0], "pt-pmp");
	struct plan plan = {0};
	/* what helps must not fail for a file that does not */
	bool no_config = argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "--version"));
	int err, words = 0, status = EXIT_FAILURE;

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C"); /* `-s 0.5` means the same everywhere */
	signal(SIGPIPE, SIG_IGN);   /* a closed standard output is an error like any other */
	err = output__prepare(&e);
	if (!err && !no_config)
		err = config ? config__load(config, argc, argv, "/etc/percona-toolkit",
					    getenv("HOME"), &words, &e)
			     : -ENOMEM;
	if (!err)
		err = options__parse(argc ? argc - 1 - words : 0, argv + 1 + words, config,
				     as_pt_pmp, &plan, &e);
	if (err)
		complain(&e, err);
	/* pt-pmp knows one form, and makes what it can of any other */
	else if (as_pt_pmp && !plan.input)
		plan.input = "gdb";
	if (!err)
		status = run(&plan, as_pt_pmp);
	options__free(&plan);
	config__free(config);
	return status;
}
