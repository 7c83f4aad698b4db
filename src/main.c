// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * main: wires the stages, the only file that sees them all:
 *
 *   options -> plan -> session (capture) -> raw_sample -> symbolizer -> stack -> aggregate ->
 *   report -> writer -> output
 *   earlier samples (--save-samples) -> gdb reader ----------------> stack
 */
#include "base/error.h"
#include "base/strbuf.h"
#include "capture/features.h"
#include "capture/guard.h"
#include "capture/session.h"
#include "cli/options.h"
#include "fold/aggregate.h"
#include "fold/filter.h"
#include "fold/shorten.h"
#include "model/plan.h"
#include "proc/find.h"
#include "read/gdb.h"
#include "sym/symbolize.h"
#include "write/output.h"
#include "write/samples_file.h"
#include "write/writer.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The stages that a sample passes on its way to the report. */
struct pipeline {
	struct symbolizer *symbolizer;
	struct shortener *shortener;
	struct filter *filter;
	struct aggregate *aggregate;
	struct samples_file *saved; /* NULL without --save-samples */
	struct strbuf iteration;    /* gdb's text of one iteration, to be saved */
	struct error *e;
};

static int complain(struct error *e, int err)
{
	fprintf(stderr, "bpf-pmp: %s\n", error__text(e, err));
	error__clear(e);
	return EXIT_FAILURE;
}

static int count_stack(const struct stack *stack, void *arg)
{
	struct pipeline *p = arg;
	int err = aggregate__add(p->aggregate, stack);

	return err < 0 ? err : 0;
}

static int on_sample(void *arg, struct objects *objects, const struct raw_sample *sample,
		     unsigned int number)
{
	struct pipeline *p = arg;
	struct stack stack;
	int err = symbolizer__stack(p->symbolizer, objects, sample, number, &stack);

	if (!err && p->saved)
		err = write_gdb__stack(&p->iteration, &stack);
	if (!err)
		err = count_stack(&stack, p);
	return err;
}

static int on_iteration(void *arg)
{
	struct pipeline *p = arg;
	struct timespec now;
	int err;

	if (!p->saved)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	err = write_gdb__timestamp(&p->iteration, &now);
	if (!err)
		err = samples_file__append(p->saved, &p->iteration, p->e);
	strbuf__reset(&p->iteration);
	return err;
}

/* None of them is the last of the input: ours follow. */
static int count_earlier_stack(const struct stack *stack, void *arg)
{
	struct stack earlier = *stack;

	earlier.last = false;
	return count_stack(&earlier, arg);
}

/* Count what earlier runs left in the --save-samples file. */
static int count_earlier(struct pipeline *p)
{
	struct gdb_reader *reader = gdb_reader__new(count_earlier_stack, p);
	char *buffer = malloc(1 << 16);
	int err = reader && buffer ? 0 : -ENOMEM;
	ssize_t n = 0;

	while (!err && (n = samples_file__read(p->saved, buffer, 1 << 16)) > 0)
		err = gdb_reader__feed(reader, buffer, (size_t)n);
	if (!err && n < 0)
		err = (int)n;
	if (!err)
		err = gdb_reader__feed(reader, "\n", 1); /* its last line may have none */
	if (!err)
		err = gdb_reader__finish(reader);
	gdb_reader__free(reader);
	free(buffer);
	return err;
}

static int open_pipeline(struct pipeline *p, const struct plan *plan)
{
	const struct symbolizer_options options = {.debug_dir = NULL};
	int err;

	p->filter = filter__new(plan->tids, p->e);
	if (!p->filter)
		return -errno;
	p->shortener = shortener__new(SHORTEN_GDB);
	p->symbolizer = symbolizer__new(&options);
	if (!p->shortener || !p->symbolizer)
		return -ENOMEM;
	p->aggregate = aggregate__new(p->shortener, p->filter, plan->lines);
	if (!p->aggregate)
		return -ENOMEM;
	if (!plan->save_samples)
		return 0;
	p->saved = samples_file__open(plan->save_samples, p->e);
	if (!p->saved)
		return -errno;
	err = count_earlier(p);
	if (err)
		return error__set(p->e, -err, "cannot read %s: %s", plan->save_samples,
				  strerror(-err));
	return 0;
}

static void close_pipeline(struct pipeline *p)
{
	aggregate__free(p->aggregate);
	symbolizer__free(p->symbolizer);
	shortener__free(p->shortener);
	filter__free(p->filter);
	samples_file__close(p->saved);
	strbuf__free(&p->iteration);
}

struct described {
	const pid_t *pids;
	size_t n;
	struct strbuf text;
};

static int describe_all(void *arg)
{
	struct described *d = arg;

	for (size_t i = 0; i < d->n; i++) {
		strbuf__append_str(&d->text, "    ");
		if (find__describe(d->pids[i], &d->text))
			strbuf__printf(&d->text, "PID %d", (int)d->pids[i]);
		strbuf__append_char(&d->text, '\n');
	}
	return 0;
}

/* Several processes match: say which, so that one can be chosen. */
static int complain_several(const char *name, const pid_t *pids, size_t n, const struct plan *plan)
{
	struct described *d = calloc(1, sizeof(*d)); /* left alone should it time out */

	fprintf(stderr,
		"bpf-pmp: %zu processes are named %s; give one with -p, or take all with "
		"--comm %s:\n",
		n, name, name);
	if (!d)
		return EXIT_FAILURE;
	d->pids = pids;
	d->n = n;
	/* a command line lies in the process' memory: reading it may have to wait */
	if (guard__run(describe_all, d, plan->max_wait) == 0) {
		fputs(d->text.data ? d->text.data : "", stderr);
		strbuf__free(&d->text);
		free(d);
	} else {
		for (size_t i = 0; i < n; i++)
			fprintf(stderr, "    PID %d\n", (int)pids[i]);
	}
	return EXIT_FAILURE;
}

/* Find the processes that the plan names. Returns an exit status; complains itself. */
static int find_targets(const struct plan *plan, pid_t **ret_pids, size_t *ret_n)
{
	static const char *const servers[] = {"mysqld", "mariadbd"};
	const char *name = plan->binary;
	struct error e = ERROR_INIT;
	pid_t *pids = NULL;
	size_t n = 0;
	int err = 0;

	if (plan->pid) {
		pids = malloc(sizeof(*pids));
		if (!pids)
			return complain(&e, ENOMEM);
		pids[n++] = plan->pid;
	} else if (plan->comm) {
		err = find__comm(plan->comm, &pids, &n);
	} else if (name) {
		err = find__binary(name, &pids, &n);
	} else {
		for (size_t i = 0; i < 2 && !n && !err; i++) {
			name = servers[i];
			err = find__binary(name, &pids, &n);
		}
	}
	if (err)
		error__set(&e, -err, "cannot list the processes in /proc: %s", strerror(-err));
	else if (!n && plan->comm)
		err = error__set(&e, ESRCH,
				 "no process has the command %s; see `ps -e -o pid,comm`",
				 plan->comm);
	else if (!n && plan->binary)
		err = error__set(&e, ESRCH,
				 "no process is named %s; give -p PID, or another name with -b",
				 plan->binary);
	else if (!n)
		err = error__set(&e, ESRCH,
				 "no process is named mysqld or mariadbd; name one with -b, or "
				 "give -p PID");
	else if (n > 1 && !plan->comm)
		return complain_several(name, pids, n, plan);
	for (size_t i = 0; i < n && !err && !plan->comm; i++)
		err = find__check(pids[i], &e);
	if (err) {
		free(pids);
		return complain(&e, err);
	}
	*ret_pids = pids;
	*ret_n = n;
	return EXIT_SUCCESS;
}

static int put_report(const struct pipeline *p, const struct plan *plan, time_t began)
{
	struct strbuf text = STRBUF_INIT;
	struct report report;
	int err = aggregate__report(p->aggregate, &report);

	if (!err && plan->format == PLAN_FORMAT_PMP) {
		err = write_pmp__date(&text, began);
		if (!err)
			err = write_pmp__report(&text, &report);
	} else if (!err) {
		err = write_folded__report(&text, &report);
	}
	if (!err)
		err = output__put(plan->output, &text, p->e);
	strbuf__free(&text);
	return err;
}

static int capture(const struct plan *plan)
{
	time_t began = time(NULL);
	struct error e = ERROR_INIT;
	struct pipeline pipeline = {.e = &e};
	const struct session_sink sink = {
		.sample = on_sample,
		.iteration = on_iteration,
		.arg = &pipeline,
	};
	struct session *session = NULL;
	pid_t *pids = NULL;
	size_t n_pids = 0;
	int err, status = find_targets(plan, &pids, &n_pids);

	if (status)
		return status;
	err = open_pipeline(&pipeline, plan);
	if (!err) {
		session = session__new(plan, &e);
		err = session ? 0 : -errno;
	}
	if (!err) {
		err = session__run(session, pids, n_pids, &sink, &e);
		/* what an earlier iteration gave is not lost for what became of a later one */
		if (!err || session__losses(session)->threads) {
			struct error first = e;
			int put;

			e = (struct error)ERROR_INIT;
			put = put_report(&pipeline, plan, began);
			if (!err) {
				err = put;
			} else {
				error__clear(&e);
				e = first;
			}
		}
	}
	if (session && !err)
		session__print_losses(session);
	if (!err && !symbolizer__kernel_names(pipeline.symbolizer))
		fprintf(stderr, "bpf-pmp: kernel names are hidden (kernel.kptr_restrict): kernel "
				"frames are "
				"shown as ??\n");
	if (!err && filter__given_up(pipeline.filter))
		fprintf(stderr,
			"bpf-pmp: %zu threads were left out: --tids took too long to match them\n",
			filter__given_up(pipeline.filter));
	status = err ? complain(&e, err) : EXIT_SUCCESS;
	/* a thread that was given up still works on the session: that is left to the kernel */
	if (err == -ETIMEDOUT)
		_exit(EXIT_FAILURE);
	session__free(session);
	close_pipeline(&pipeline);
	free(pids);
	return status;
}

static int check(const struct plan *plan)
{
	struct strbuf text = STRBUF_INIT;
	struct error e = ERROR_INIT;
	pid_t pid = plan->pid, *pids = NULL;
	bool usable = false;
	size_t n = 0;
	int err;

	if (!pid && plan->binary && find__binary(plan->binary, &pids, &n) == 0 && n == 1)
		pid = pids[0];
	free(pids);
	err = features__check(pid, &text, &usable);
	if (!err)
		err = output__put(plan->output, &text, &e);
	strbuf__free(&text);
	if (err)
		return complain(&e, err);
	return usable ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int put_text(int (*make)(struct strbuf *out))
{
	struct strbuf text = STRBUF_INIT;
	struct error e = ERROR_INIT;
	int err = make(&text);

	if (!err)
		err = output__put(NULL, &text, &e);
	strbuf__free(&text);
	return err ? complain(&e, err) : EXIT_SUCCESS;
}

static int make_version(struct strbuf *out)
{
	return strbuf__append_str(out, "bpf-pmp " PMP_VERSION "\n");
}

int main(int argc, char *argv[])
{
	struct error e = ERROR_INIT;
	struct plan plan;
	int err;

	setlocale(LC_ALL, "");
	signal(SIGPIPE, SIG_IGN); /* a closed standard output is an error like any other */
	err = output__prepare(&e);
	if (!err)
		err = options__parse(argc, argv, &plan, &e);
	if (err)
		return complain(&e, err);
	switch (plan.action) {
	case PLAN_HELP:
		return put_text(options__help);
	case PLAN_VERSION:
		return put_text(make_version);
	case PLAN_CHECK:
		return check(&plan);
	case PLAN_CAPTURE:
		break;
	}
	return capture(&plan);
}
