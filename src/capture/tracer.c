// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/tracer.h"

#include "capture/child.h"
#include "capture/eu_join.h"
#include "capture/release.h"
#include "proc/find.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_SECONDS 30.0 /* for gdb to say whether it knows --readnever */
struct program {
	const char *name;
	const char *package;
};

static const struct program programs[] = {
	[TRACER_GDB] = {"gdb", "gdb"},
	[TRACER_EU] = {"eu-stack", "elfutils"},
	[TRACER_PTEU] = {"pt-eustack-resolver", "percona-toolkit 3.5.7 or later"},
};

struct tracer {
	struct tracer_options options;
	char *path;
	bool probed; /* it knows --readnever */
};

struct output {
	tracer_text_fn text;
	void *arg;
	struct eu_join join;
	struct strbuf joined;
	bool joins;
	bool line_start;
	bool frames; /* one was seen */
};

static int need(const struct program *program, struct error *e, char **ret_path)
{
	int err = child__find(program->name, ret_path);

	if (err == -ENOENT)
		return error__set(e, ENOENT,
				  "%s was not found in PATH; install %s, or use --tracer=bpf",
				  program->name, program->package);
	return err;
}

struct tracer *tracer__new(const struct tracer_options *options, struct error *e)
{
	struct tracer *t = calloc(1, sizeof(*t));
	int err = t ? 0 : -ENOMEM;
	char *eu = NULL;

	if (!err) {
		t->options = *options;
		err = need(&programs[options->kind], e, &t->path);
	}
	/* the resolver runs it */
	if (!err && options->kind == TRACER_PTEU)
		err = need(&programs[TRACER_EU], e, &eu);
	free(eu);
	if (err) {
		tracer__free(t);
		errno = -err;
		return NULL;
	}
	return t;
}

void tracer__free(struct tracer *t)
{
	if (!t)
		return;
	free(t->path);
	free(t);
}

static int pass_on(struct output *o, const char *bytes, size_t len)
{
	const char *p = bytes, *end = bytes + len;

	while (!o->frames && p < end) {
		o->frames = o->line_start && *p == '#';
		o->line_start = false;
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			break;
		o->line_start = true;
		p++;
	}
	return len ? o->text(o->arg, bytes, len) : 0;
}

static int on_text(void *arg, const char *bytes, size_t len)
{
	struct output *o = arg;

	if (!o->joins)
		return pass_on(o, bytes, len);
	strbuf__reset(&o->joined);
	eu_join__feed(&o->join, bytes, len, &o->joined);
	if (o->joined.failed)
		return -ENOMEM;
	return pass_on(o, o->joined.data, o->joined.len);
}

static int finish_text(struct output *o)
{
	if (!o->joins)
		return 0;
	strbuf__reset(&o->joined);
	eu_join__finish(&o->join, &o->joined);
	if (o->joined.failed)
		return -ENOMEM;
	return pass_on(o, o->joined.data, o->joined.len);
}

static int ignore_text(void *arg, const char *bytes, size_t len)
{
	return 0;
}

static int start_failed(const struct tracer *t, int err, struct error *e)
{
	return error__set(e, -err, "cannot run %s: %s", t->path, strerror(-err));
}

/* As stock finds out: by trying. */
static int probe_readnever(struct tracer *t, struct error *e, struct tracer_result *ret_result)
{
	char *argv[] = {"gdb", "-nx", "--quiet", "--batch", "--readnever", NULL};
	const struct child_options options = {
		.path = t->path,
		.argv = argv,
		.timeout = PROBE_SECONDS,
		.drop_stderr = true,
	};
	struct child_end end;
	int err;

	if (t->options.kind != TRACER_GDB || !t->options.readnever || t->probed)
		return 0;
	err = child__run(&options, ignore_text, NULL, &end);
	ret_result->signal = end.interrupted;
	if (err == -EINTR)
		return error__set(e, EINTR, "interrupted by signal %d (%s)", end.interrupted,
				  strsignal(end.interrupted));
	if (err && err != -ETIMEDOUT)
		return start_failed(t, err, e);
	if (err || end.status)
		return error__set(e, EOPNOTSUPP, "%s does not support --readnever", t->path);
	t->probed = true;
	return 0;
}

static int run_child(struct tracer *t, pid_t pid, struct output *o, struct child_end *ret_end)
{
	char number[16];
	char *gdb[10], **argv = gdb;
	char *eu[] = {"eu-stack", "-s", "-m", "-p", number, NULL};
	char *pteu[] = {"pt-eustack-resolver", number, NULL};
	struct child_options options = {.path = t->path, .timeout = t->options.timeout};
	int err;

	snprintf(number, sizeof(number), "%d", (int)pid);
	switch (t->options.kind) {
	case TRACER_GDB:
		*argv++ = "gdb";
		if (t->options.readnever)
			*argv++ = "--readnever";
		*argv++ = "-ex";
		*argv++ = "set pagination 0";
		*argv++ = "-ex";
		*argv++ = "thread apply all bt";
		*argv++ = "-batch";
		*argv++ = "-p";
		*argv++ = number;
		*argv = NULL;
		options.argv = gdb;
		break;
	case TRACER_EU:
		options.argv = eu;
		break;
	case TRACER_PTEU:
		options.argv = pteu;
		break;
	}
	err = child__run(&options, on_text, o, ret_end);
	return err ? err : finish_text(o);
}

/* Why it is an error, if it is one. */
static int explain(const struct tracer *t, pid_t pid, const struct child_end *end, bool frames,
		   int err, struct error *e)
{
	const char *name = programs[t->options.kind].name;

	if (end->interrupted)
		return error__set(e, EINTR, "%s was ended: interrupted by signal %d (%s)", name,
				  end->interrupted, strsignal(end->interrupted));
	if (err == -ETIMEDOUT)
		return error__set(e, ETIMEDOUT,
				  "%s was ended: it took longer than %g s (see --timeout)", name,
				  t->options.timeout);
	if (err)
		return err;
	if (end->killed_by)
		return error__set(e, EIO, "%s was killed by signal %d (%s)", name, end->killed_by,
				  strsignal(end->killed_by));
	if (!frames && end->status > 0)
		return error__set(e, ENODATA, "%s printed no stack of process %d (exit status %d)",
				  name, (int)pid, end->status);
	if (!frames)
		return error__set(e, ENODATA, "%s printed no stack of process %d", name, (int)pid);
	return 0;
}

static void note_stop(const struct tracer *t, pid_t pid, bool still, int err, struct error *e)
{
	const char *name = programs[t->options.kind].name;
	char *first = err && e ? e->text : NULL;
	const char *sep = first ? "; " : "";

	if (first)
		e->text = NULL;
	if (still)
		error__set(e, err ? -err : EIO,
			   "%s%s%s left process %d stopped, and SIGCONT did not help",
			   first ? first : "", sep, name, (int)pid);
	else
		error__set(e, err ? -err : EIO,
			   "%s%s%s left process %d stopped: it was continued (SIGCONT)",
			   first ? first : "", sep, name, (int)pid);
	free(first);
}

int tracer__run(struct tracer *t, pid_t pid, tracer_text_fn text, void *arg, struct error *e,
		struct tracer_result *ret_result)
{
	struct output o = {
		.text = text,
		.arg = arg,
		.join = EU_JOIN_INIT,
		.joins = t->options.kind == TRACER_EU,
		.line_start = true,
	};
	struct child_end end = {.status = -1};
	struct release release;
	bool still = false;
	sigset_t mask;
	int err, sig;

	*ret_result = (struct tracer_result){.status = -1};
	child__hold(&mask);
	err = probe_readnever(t, e, ret_result);
	if (err)
		goto out;
	release__begin(&release, pid);
	err = run_child(t, pid, &o, &end);
	ret_result->status = end.status;
	release__end(&release, !err && end.status == 0, &ret_result->continued, &still);
	if (err && !end.started && !end.interrupted)
		err = start_failed(t, err, e);
	else
		err = explain(t, pid, &end, o.frames, err, e);
	ret_result->signal = end.interrupted;
	if (ret_result->continued || still)
		note_stop(t, pid, still, err, e);
	if (still && !err)
		err = -EIO;
out:
	sig = child__release(&mask);
	if (sig && !ret_result->signal) {
		ret_result->signal = sig;
		if (!err)
			err = error__set(e, EINTR, "interrupted by signal %d (%s)", sig,
					 strsignal(sig));
	}
	strbuf__free(&o.joined);
	return err;
}
