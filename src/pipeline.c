// SPDX-License-Identifier: GPL-2.0-or-later
#include "pipeline.h"

#include "base/strbuf.h"
#include "capture/ksym_query.h"
#include "fold/aggregate.h"
#include "fold/filter.h"
#include "fold/functions.h"
#include "fold/shorten.h"
#include "read/reader.h"
#include "sym/debuginfod.h"
#include "sym/symbolize.h"
#include "write/output.h"
#include "write/samples_file.h"
#include "write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE (256 * 1024)

struct pipeline {
	const struct plan *plan;
	struct error *e;
	struct ksym_query *ksym_query;
	struct symbolizer *symbolizer;
	struct shortener *shortener;
	struct filter *filter;
	struct aggregate *aggregate;
	struct output *output;
	struct reader *reader;	    /* of text: FILES, a tracer, or what was saved before */
	enum input_format format;   /* of the last stack that it gave */
	bool earlier;		    /* it reads what was saved before: more is to come */
	struct samples_file *saved; /* NULL without --save-samples */
	struct strbuf iteration;    /* gdb's text of one iteration, to be saved */
	char *buffer;
};

static enum shorten_dialect dialect_of(const struct plan *plan, enum input_format format)
{
	/* a recognised form has its own; a trace in pt-pmp's own is whatever -d says */
	if (format == INPUT_EU)
		return SHORTEN_EU;
	if (format != INPUT_GDB)
		return SHORTEN_GDB;
	if (plan->dialect == PLAN_DIALECT_EU || (!plan->n_files && plan->tracer == PLAN_TRACER_EU))
		return SHORTEN_EU;
	if (plan->dialect == PLAN_DIALECT_PTEU ||
	    (!plan->n_files && plan->tracer == PLAN_TRACER_PTEU))
		return SHORTEN_PTEU;
	return SHORTEN_GDB;
}

static int on_stack(const struct stack *stack, void *arg)
{
	struct pipeline *p = arg;
	enum input_format format = reader__format(p->reader);
	struct stack copy = *stack;
	int err;

	if (format != p->format) {
		/* names carry over from frame to frame, but not from one format to another */
		struct shortener *shortener = shortener__new(dialect_of(p->plan, format));

		if (!shortener)
			return -ENOMEM;
		aggregate__set_shortener(p->aggregate, shortener);
		shortener__free(p->shortener);
		p->shortener = shortener;
		p->format = format;
	}
	copy.last = stack->last && !p->earlier;
	err = aggregate__add(p->aggregate, &copy);
	return err < 0 ? err : 0;
}

static int start_reading(struct pipeline *p, enum input_format format)
{
	reader__free(p->reader);
	p->reader = reader__new(format, on_stack, p);
	return p->reader ? 0 : -ENOMEM;
}

struct pipeline *pipeline__new(const struct plan *plan, struct error *e)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int err = ENOMEM;

	if (!p)
		return NULL;
	p->plan = plan;
	p->e = e;
	p->format = INPUT_GDB;
	p->filter = filter__new(plan->tids, e);
	if (!p->filter) {
		err = errno;
		goto fail;
	}
	p->output = output__open(plan->output, e);
	if (!p->output) {
		err = errno;
		goto fail;
	}
	p->shortener = shortener__new(dialect_of(plan, INPUT_GDB));
	p->buffer = malloc(READ_SIZE);
	if (!p->shortener || !p->buffer)
		goto fail;
	p->aggregate = aggregate__new(p->shortener, p->filter, plan->lines);
	if (!p->aggregate)
		goto fail;
	return p;
fail:
	pipeline__free(p);
	errno = err;
	return NULL;
}

void pipeline__free(struct pipeline *p)
{
	if (!p)
		return;
	reader__free(p->reader);
	aggregate__free(p->aggregate);
	symbolizer__free(p->symbolizer);
	ksym_query__free(p->ksym_query);
	shortener__free(p->shortener);
	filter__free(p->filter);
	samples_file__close(p->saved);
	output__close(p->output);
	strbuf__free(&p->iteration);
	free(p->buffer);
	free(p);
}

int pipeline__expect_samples(struct pipeline *p)
{
	const struct plan *plan = p->plan;
	struct kernel_names_source kernel = {
		.name = ksym_query__name,
		.address = ksym_query__address,
	};
	struct symbolizer_options options = {
		.names = {.debug_dir = plan->debug_dir,
			  .debuginfod = plan->debuginfod,
			  .no_lines = plan->no_lines || plan->readnever,
			  .no_inlines = plan->no_inlines || plan->readnever,
			  .no_drop = plan->no_drop},
		.annotate = plan->annotate,
		.by_process = plan->by_process,
		.off_cpu = plan->mode == PLAN_MODE_OFFCPU,
	};

	if (plan->debuginfod && !debuginfod__supported())
		return error__set(p->e, ENOSYS,
				  "--debuginfod: not in this build: libdebuginfod's header was "
				  "not there (libdebuginfod-dev)");
	/* without it, names come from /proc/kallsyms */
	if (plan->kernel && !plan->plain_iterator)
		p->ksym_query = ksym_query__new();
	if (p->ksym_query) {
		kernel.arg = p->ksym_query;
		options.kernel = &kernel;
	}
	p->symbolizer = symbolizer__new(&options);
	return p->symbolizer ? 0 : -errno;
}

static int count_earlier(struct pipeline *p)
{
	int err = start_reading(p, INPUT_GDB);
	ssize_t n = 0;

	p->earlier = true;
	while (!err && (n = samples_file__read(p->saved, p->buffer, READ_SIZE)) > 0)
		err = reader__feed(p->reader, p->buffer, (size_t)n);
	if (!err && n < 0)
		err = (int)n;
	if (!err)
		err = reader__finish(p->reader);
	p->earlier = false;
	return err;
}

int pipeline__open_saved(struct pipeline *p)
{
	int err;

	if (p->plan->save_samples) {
		p->saved = samples_file__open(p->plan->save_samples, p->e);
		if (!p->saved)
			return -errno;
		err = count_earlier(p);
		if (err)
			return error__set(p->e, -err, "cannot read %s: %s", p->plan->save_samples,
					  strerror(-err));
	}
	/* for a tracer's text; the form is pt-pmp's own whatever its first lines look like */
	return start_reading(p, INPUT_GDB);
}

int pipeline__sample(void *pipeline, const struct raw_sample *sample, unsigned int number)
{
	struct pipeline *p = pipeline;
	struct stack stack;
	int err = symbolizer__stack(p->symbolizer, sample, number, &stack);

	if (!err && p->saved)
		err = write_gdb__stack(&p->iteration, &stack);
	if (!err)
		err = aggregate__add(p->aggregate, &stack);
	return err < 0 ? err : 0;
}

int pipeline__stack(void *pipeline, const struct raw_sample *sample)
{
	return pipeline__sample(pipeline, sample, 1);
}

/* The names of a stack, a line each. */
static int append_names(struct pipeline *p, struct strbuf *out, const struct stack *stack)
{
	struct text name;
	int err = 0;

	for (size_t i = 0; i < stack->n_frames && !err; i++) {
		err = shortener__frame(p->shortener, stack->frames[i], &name);
		if (err || !name.len)
			continue;
		strbuf__append_char(out, '\t');
		strbuf__append(out, name.str, name.len);
		strbuf__append_char(out, '\n');
	}
	strbuf__append_char(out, '\n');
	return err;
}

int pipeline__tick(void *pipeline, const struct profile_tick *tick, const struct raw_sample *sample)
{
	struct pipeline *p = pipeline;
	const struct sample_line line = {
		.time = tick->time,
		.comm = tick->comm,
		.pid = tick->pid,
		.tid = tick->tid,
		.cpu = tick->cpu,
		.n_kernel = sample->n_kernel,
		.n_user = sample->n_user,
	};
	struct stack stack;
	int err;

	/* as they come: they are not gathered here */
	strbuf__reset(&p->iteration);
	err = write_samples__line(&p->iteration, &line);
	if (!err && p->plan->stacks) {
		err = symbolizer__stack(p->symbolizer, sample, 1, &stack);
		if (!err)
			err = append_names(p, &p->iteration, &stack);
	}
	return err ? err : output__append(p->output, &p->iteration, p->e);
}

bool pipeline__wants(void *pipeline, const struct raw_sample *thread)
{
	struct pipeline *p = pipeline;
	struct stack stack;

	return symbolizer__stack(p->symbolizer, thread, 1, &stack) ||
	       filter__wants(p->filter, stack.header);
}

int pipeline__trace(void *pipeline, const char *bytes, size_t len)
{
	struct pipeline *p = pipeline;
	int err = reader__feed(p->reader, bytes, len);

	if (!err && p->saved) {
		/* as it comes: a trace may be larger than what we want to hold */
		strbuf__reset(&p->iteration);
		err = strbuf__append(&p->iteration, bytes, len);
		if (!err)
			err = samples_file__append(p->saved, &p->iteration, p->e);
		strbuf__reset(&p->iteration);
	}
	return err;
}

int pipeline__iteration(void *pipeline)
{
	struct pipeline *p = pipeline;
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

static void complain_of_file(const char *name, int err)
{
	struct error e = ERROR_INIT;

	error__set(&e, -err, "cannot read %s: %s", name, strerror(-err));
	fprintf(stderr, "bpf-pmp: %s\n", error__text(&e, err));
	error__clear(&e);
}

/* Returns 0; *ret_err is what reading it came to, or what the stages made of it is returned. */
static int read_file(struct pipeline *p, const char *name, int *ret_err)
{
	bool is_stdin = !strcmp(name, "-");
	int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int err = 0;

	*ret_err = fd < 0 ? -errno : 0;
	while (!err && !*ret_err) {
		ssize_t n = read(fd, p->buffer, READ_SIZE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			*ret_err = -errno;
		if (n <= 0)
			break;
		err = reader__feed(p->reader, p->buffer, (size_t)n);
	}
	if (fd >= 0 && !is_stdin)
		close(fd);
	if (!err)
		err = reader__next_file(p->reader);
	if (err == -E2BIG)
		return error__set(
			p->e, E2BIG,
			"cannot read %s: a stack of more than %zu MiB, or a line of more than "
			"%zu MiB",
			name, GDB_READER_STACK_MAX >> 20, GDB_READER_LINE_MAX >> 20);
	return err;
}

int pipeline__files(struct pipeline *p, bool *ret_missing)
{
	static const char *const standard_input = "-";
	const char *const *files = p->plan->n_files ? p->plan->files : &standard_input;
	size_t n = p->plan->n_files ? p->plan->n_files : 1;
	enum input_format format = INPUT_AUTO;
	int err = 0, file_err;

	if (p->plan->input && input_format__parse(p->plan->input, &format))
		return error__set(
			p->e, EINVAL,
			"--input takes auto, gdb, eu, bpftrace, bcc, perf, folded or pmp, not "
			"'%s'",
			p->plan->input);
	/* who names a dialect knows the form; eu-stack's may be joined already, or not */
	if (format == INPUT_AUTO && p->plan->dialect != PLAN_DIALECT_AUTO)
		format = p->plan->dialect == PLAN_DIALECT_EU ? INPUT_EU : INPUT_GDB;
	err = start_reading(p, format);
	for (size_t i = 0; i < n && !err; i++) {
		err = read_file(p, files[i], &file_err);
		if (!err && file_err) {
			complain_of_file(files[i], file_err);
			*ret_missing = true;
		}
	}
	return err ? err : reader__finish(p->reader);
}

static size_t top(const struct plan *plan, size_t n)
{
	return plan->top && plan->top < n ? plan->top : n;
}

static int write_functions(const struct plan *plan, const struct report *report,
			   struct strbuf *text)
{
	struct functions *functions = functions__new(report);
	struct report_functions table;
	int err;

	if (!functions)
		return -errno;
	table = functions__table(functions);
	table.n_functions = top(plan, table.n_functions);
	err = write_functions__table(text, &table);
	functions__free(functions);
	return err;
}

static int write_report(const struct plan *plan, const struct report *report, struct strbuf *text)
{
	struct report shown = *report;

	if (plan->functions)
		return write_functions(plan, report, text);
	shown.n_lines = top(plan, shown.n_lines);
	if (plan->format == PLAN_FORMAT_FOLDED)
		return write_folded__report(text, &shown);
	return plan->percent ? write_pmp__shares(text, &shown) : write_pmp__report(text, &shown);
}

int pipeline__report(struct pipeline *p, const time_t *began)
{
	struct strbuf text = STRBUF_INIT;
	struct report report;
	int err = 0;

	if (p->plan->format == PLAN_FORMAT_SAMPLES)
		return output__finish(p->output, p->e);
	if (began && p->plan->tracer != PLAN_TRACER_BPF)
		err = reader__finish(p->reader);
	if (!err)
		err = aggregate__report(p->aggregate, &report);
	if (!err && began && p->plan->format == PLAN_FORMAT_PMP)
		err = write_pmp__date(&text, *began);
	if (!err)
		err = write_report(p->plan, &report, &text);
	if (!err)
		err = output__put(p->output, &text, p->e);
	strbuf__free(&text);
	if (!err && !report.n_lines && p->plan->tids)
		fprintf(stderr, "bpf-pmp: no thread matches --tids\n");
	if (!err && filter__given_up(p->filter))
		fprintf(stderr,
			"bpf-pmp: %zu threads were left out: --tids took too long to match them\n",
			filter__given_up(p->filter));
	return err;
}

void pipeline__print_gaps(const struct pipeline *p)
{
	struct strbuf text = STRBUF_INIT;

	if (!symbolizer__gaps(p->symbolizer, &text) && text.len) {
		for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"))
			fprintf(stderr, "bpf-pmp: %s\n", line);
	}
	strbuf__free(&text);
}
