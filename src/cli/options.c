// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES_DEFAULT 4096
#define MAX_WAIT_DEFAULT   5.0

struct option_spec {
	char letter; /* 0: none */
	const char *name;
	const char *value; /* what the help calls it; NULL: takes none */
	const char *help;
	int (*set)(struct plan *plan, const char *value, struct error *e);
};

static int parse_whole(const char *option, const char *value, long min, long max, long *ret,
		       struct error *e)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(value, &end, 10);
	if (errno || end == value || *end || n < min || n > max)
		return error__set(e, EINVAL, "%s takes a whole number from %ld to %ld, not '%s'",
				  option, min, max, value);
	*ret = n;
	return 0;
}

static int parse_seconds(const char *option, const char *value, double min, double *ret,
			 struct error *e)
{
	char *end;
	double n;

	errno = 0;
	n = strtod(value, &end);
	if (errno || end == value || *end || !isfinite(n) || n < min || n > 1e6)
		return error__set(
			e, EINVAL,
			"%s takes a number of seconds from %g to 1000000 (0.5 will do), not '%s'",
			option, min, value);
	*ret = n;
	return 0;
}

static int set_pid(struct plan *plan, const char *value, struct error *e)
{
	long n = 0;
	int err = parse_whole("--pid", value, 1, INT32_MAX, &n, e);

	plan->pid = (pid_t)n;
	return err;
}

static int set_name(const char *option, const char *value, const char **ret, struct error *e)
{
	if (!*value || strchr(value, '/'))
		return error__set(e, EINVAL,
				  "%s takes the name of a program without its folder, not '%s'",
				  option, value);
	*ret = value;
	return 0;
}

static int set_binary(struct plan *plan, const char *value, struct error *e)
{
	return set_name("--binary", value, &plan->binary, e);
}

static int set_comm(struct plan *plan, const char *value, struct error *e)
{
	return set_name("--comm", value, &plan->comm, e);
}

static int set_iterations(struct plan *plan, const char *value, struct error *e)
{
	long n = 1;
	int err = parse_whole("--iterations", value, 1, 1000000, &n, e);

	plan->iterations = (unsigned int)n;
	return err;
}

static int set_interval(struct plan *plan, const char *value, struct error *e)
{
	return parse_seconds("--interval", value, 0, &plan->interval, e);
}

static int set_lines(struct plan *plan, const char *value, struct error *e)
{
	long n = 0;
	int err = parse_whole("--lines", value, 0, INT32_MAX, &n, e);

	plan->lines = (size_t)n;
	return err;
}

static int set_tids(struct plan *plan, const char *value, struct error *e)
{
	plan->tids = value;
	return 0;
}

static int set_save_samples(struct plan *plan, const char *value, struct error *e)
{
	if (!*value)
		return error__set(e, EINVAL, "--save-samples takes the name of a file, not ''");
	plan->save_samples = value;
	return 0;
}

static int set_output(struct plan *plan, const char *value, struct error *e)
{
	if (!*value)
		return error__set(e, EINVAL, "--output takes the name of a file, not ''");
	plan->output = value;
	return 0;
}

static int set_format(struct plan *plan, const char *value, struct error *e)
{
	if (!strcmp(value, "pmp"))
		plan->format = PLAN_FORMAT_PMP;
	else if (!strcmp(value, "folded"))
		plan->format = PLAN_FORMAT_FOLDED;
	else
		return error__set(e, EINVAL, "--format takes pmp or folded, not '%s'", value);
	return 0;
}

static int set_mode(struct plan *plan, const char *value, struct error *e)
{
	if (strcmp(value, "threads"))
		return error__set(e, EINVAL, "--mode takes threads, not '%s'", value);
	return 0;
}

static int set_kernel(struct plan *plan, const char *value, struct error *e)
{
	plan->kernel = true;
	return 0;
}

static int set_max_frames(struct plan *plan, const char *value, struct error *e)
{
	long n = MAX_FRAMES_DEFAULT;
	int err = parse_whole("--max-frames", value, 1, 1000000, &n, e);

	plan->max_frames = (size_t)n;
	return err;
}

static int set_max_wait(struct plan *plan, const char *value, struct error *e)
{
	return parse_seconds("--max-wait", value, 0.001, &plan->max_wait, e);
}

static int set_plain(struct plan *plan, const char *value, struct error *e)
{
	plan->plain_iterator = true;
	return 0;
}

static int set_verbose(struct plan *plan, const char *value, struct error *e)
{
	plan->verbose = true;
	return 0;
}

static int set_check(struct plan *plan, const char *value, struct error *e)
{
	plan->action = PLAN_CHECK;
	return 0;
}

static int set_help(struct plan *plan, const char *value, struct error *e)
{
	plan->action = PLAN_HELP;
	return 0;
}

static int set_version(struct plan *plan, const char *value, struct error *e)
{
	plan->action = PLAN_VERSION;
	return 0;
}

static const struct option_spec options[] = {
	{0, NULL, NULL, "Which process:", NULL},
	{'p', "pid", "PID", "this one", set_pid},
	{'b', "binary", "NAME",
	 "the one whose executable or command is exactly NAME\n(default: mysqld, else mariadbd)",
	 set_binary},
	{0, "comm", "NAME", "every one whose command is exactly NAME", set_comm},
	{0, NULL, NULL, "What to capture:", NULL},
	{0, "mode", "threads", "every thread's stack at one moment (the only mode so far)",
	 set_mode},
	{'i', "iterations", "N", "so many snapshots, counted together (default 1)", set_iterations},
	{'s', "interval", "SECONDS", "pause between two of them (default 0; 0.5 will do)",
	 set_interval},
	{0, "kernel", NULL, "kernel frames too, before the user frames", set_kernel},
	{0, "max-frames", "N", "user frames per stack (default 4096)", set_max_frames},
	{0, "max-wait", "SECONDS",
	 "give up if the process' memory stays locked so long (default 5)", set_max_wait},
	{0, "plain-iterator", NULL, "read memory as on kernels before 5.18 (for tests)", set_plain},
	{0, NULL, NULL, "What to print:", NULL},
	{'l', "lines", "N", "only the innermost N frames of each stack (default 0: all)",
	 set_lines},
	{'t', "tids", "A,B,...",
	 "only threads whose id or name matches one of these regular\nexpressions", set_tids},
	{0, "format", "FORMAT", "pmp (default), or folded: outermost;...;innermost COUNT",
	 set_format},
	{'o', "output", "FILE", "write to FILE instead of standard output", set_output},
	{'k', "save-samples", "FILE",
	 "append every stack to FILE as gdb would print it; what is printed\nis then all of FILE",
	 set_save_samples},
	{'v', "verbose", NULL, "say how every thread was read, on standard error", set_verbose},
	{0, NULL, NULL, "Other:", NULL},
	{0, "check", NULL, "say what this kernel and this user allow, and what to do", set_check},
	{0, "help", NULL, "this text", set_help},
	{0, "version", NULL, "the version", set_version},
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

/* The option that `word` (of `len` bytes, with its dashes) names, or NULL. */
static const struct option_spec *find_option(const char *word, size_t len)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option_spec *o = &options[i];

		if (!o->name)
			continue;
		if (len == 2 && word[0] == '-' && o->letter && word[1] == o->letter)
			return o;
		if (len > 2 && !strncmp(word, "--", 2) && strlen(o->name) == len - 2 &&
		    !strncmp(word + 2, o->name, len - 2))
			return o;
	}
	return NULL;
}

int options__parse(int argc, char *const argv[], struct plan *ret_plan, struct error *e)
{
	struct plan plan = {
		.iterations = 1,
		.max_frames = MAX_FRAMES_DEFAULT,
		.max_wait = MAX_WAIT_DEFAULT,
	};

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *value = strchr(word, '=');
		size_t len = value ? (size_t)(value - word) : strlen(word);
		const struct option_spec *o;
		int err;

		if (word[0] != '-' || !word[1])
			return error__set(e, EINVAL,
					  "'%s' is no option; to profile a process give -p PID or "
					  "-b NAME",
					  word);
		o = find_option(word, len);
		if (!o)
			return error__set(e, EINVAL, "there is no option '%s'; see --help", word);
		if (!o->value && value)
			return error__set(e, EINVAL, "--%s takes no value", o->name);
		if (value) {
			value++;
		} else if (o->value) {
			if (++i == argc)
				return error__set(e, EINVAL, "--%s needs a value (%s)", o->name,
						  o->value);
			value = argv[i];
		}
		err = o->set(&plan, value, e);
		if (err)
			return err;
	}
	*ret_plan = plan;
	return 0;
}

/* Append one option's lines: the option in the first 30 columns, what it does after them. */
static void append_option(struct strbuf *out, const struct option_spec *o)
{
	struct strbuf left = STRBUF_INIT;
	const char *line = o->help;

	if (o->letter)
		strbuf__printf(&left, "  -%c, --%s", o->letter, o->name);
	else
		strbuf__printf(&left, "      --%s", o->name);
	if (o->value)
		strbuf__printf(&left, " %s", o->value);
	while (line) {
		const char *end = strchr(line, '\n');
		int len = end ? (int)(end - line) : (int)strlen(line);

		strbuf__printf(out, "%-30s%.*s\n", left.data ? left.data : "", len, line);
		strbuf__reset(&left);
		line = end ? end + 1 : NULL;
	}
	strbuf__free(&left);
}

int options__help(struct strbuf *out)
{
	strbuf__append_str(
		out,
		"Usage: bpf-pmp [OPTIONS]\n"
		"\n"
		"Prints the stacks of all threads of a server, equal ones counted, without "
		"stopping it:\n"
		"\n"
		"    bpf-pmp                  the mysqld or mariadbd of this machine\n"
		"    bpf-pmp -p 1201          the process 1201\n"
		"    bpf-pmp -i 10 -s 0.5     ten times, half a second apart, counted together\n"
		"\n"
		"Each line is a count of threads and their stack, innermost function first, joined "
		"by\n"
		"commas. A stack that could not be read whole ends in [truncated], [broken],\n"
		"[guessed], [torn] or [running]. Needs root, or CAP_BPF, CAP_PERFMON, "
		"CAP_SYS_PTRACE\n"
		"and CAP_CHECKPOINT_RESTORE.\n");
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (options[i].name)
			append_option(out, &options[i]);
		else
			strbuf__printf(out, "\n%s\n", options[i].help);
	}
	return out->failed ? -ENOMEM : 0;
}
