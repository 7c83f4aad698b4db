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
	plan->target_given = true;
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
	plan->target_given = true;
	return set_name("--binary", value, &plan->binary, e);
}

static int set_comm(struct plan *plan, const char *value, struct error *e)
{
	plan->target_given = true;
	if (strlen(value) > 15)
		return error__set(
			e, EINVAL,
			"--comm takes at most 15 bytes, for the kernel keeps no more of a "
			"command, not '%s'; use -b",
			value);
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

/* bpf, gdb, eu or pteu. */
static int parse_tracer(const char *option, const char *value, enum plan_tracer *ret,
			struct error *e)
{
	static const char *const names[] = {"bpf", "gdb", "eu", "pteu"};

	for (int i = PLAN_TRACER_BPF; i <= PLAN_TRACER_PTEU; i++) {
		if (!strcmp(value, names[i])) {
			*ret = (enum plan_tracer)i;
			return 0;
		}
	}
	return error__set(e, EINVAL, "%s takes bpf, gdb, eu or pteu, not '%s'", option, value);
}

static int set_tracer(struct plan *plan, const char *value, struct error *e)
{
	return parse_tracer("--tracer", value, &plan->tracer, e);
}

/* pt-pmp's word for both: who captures, and whose form a trace has. */
static int set_dumper(struct plan *plan, const char *value, struct error *e)
{
	enum plan_tracer tracer = PLAN_TRACER_BPF;
	int err = parse_tracer("--dumper", value, &tracer, e);

	if (err)
		return err;
	plan->tracer = tracer;
	plan->dialect = tracer == PLAN_TRACER_EU     ? PLAN_DIALECT_EU
			: tracer == PLAN_TRACER_PTEU ? PLAN_DIALECT_PTEU
						     : PLAN_DIALECT_GDB;
	return 0;
}

static int set_input(struct plan *plan, const char *value, struct error *e)
{
	plan->input = value;
	return 0;
}

static int set_timeout(struct plan *plan, const char *value, struct error *e)
{
	return parse_seconds("--timeout", value, 0, &plan->timeout, e);
}

static int set_readnever(struct plan *plan, const char *value, struct error *e)
{
	plan->readnever = true;
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

/* Read by config__load(), which takes it away where it may stand. */
static int set_config(struct plan *plan, const char *value, struct error *e)
{
	return error__set(e, EINVAL, "--config must be the first option");
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
	{0, "tracer", "TRACER",
	 "bpf (default); gdb, eu (eu-stack) or pteu (pt-eustack-resolver):\nthese stop the process",
	 set_tracer},
	{0, "timeout", "SECONDS", "end gdb or eu-stack after so long (default 0: never)",
	 set_timeout},
	{0, "readnever", NULL, "gdb is not to read debug information", set_readnever},
	{0, NULL, NULL, "What to read, with FILES:", NULL},
	{'d', "dumper", "TRACER",
	 "who made the trace: gdb (default), eu or pteu; without FILES, who is\nto make it",
	 set_dumper},
	{0, "input", "FORMAT", "gdb, eu, bpftrace, bcc, perf, folded or pmp (default: by its form)",
	 set_input},
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
	{0, "config", "A,B,...", "as the first option: read these files instead of pt-pmp's own",
	 set_config},
	{0, "check", NULL, "say what this kernel and this user allow, and what to do", set_check},
	{'h', "help", NULL, "this text", set_help},
	{0, "version", NULL, "the version", set_version},
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

/* The option of this letter or long name, without dashes, or NULL. */
static const struct option_spec *find_by_name(const char *name, size_t len)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option_spec *o = &options[i];

		if (o->name && ((len == 1 && o->letter && name[0] == o->letter) ||
				(strlen(o->name) == len && !strncmp(name, o->name, len))))
			return o;
	}
	return NULL;
}

/* The option that `word` (of `len` bytes, with its dashes) names, or NULL. */
static const struct option_spec *find_option(const char *word, size_t len)
{
	if (len == 2)
		return find_by_name(word + 1, 1);
	return !strncmp(word, "--", 2) ? find_by_name(word + 2, len - 2) : NULL;
}

static int apply(struct plan *plan, const struct option_spec *o, const char *value, struct error *e)
{
	if (!o->value && value)
		return error__set(e, EINVAL, "--%s takes no value", o->name);
	if (o->value && !value)
		return error__set(e, EINVAL, "--%s needs a value (%s)", o->name, o->value);
	return o->set(plan, value, e);
}

static int apply_config(const struct config *config, struct plan *plan, struct error *e)
{
	const struct config_entry *entry;

	for (size_t i = 0; (entry = config__entry(config, i)); i++) {
		const struct option_spec *o;
		int err;

		/* as in pt-pmp: arguments lead nowhere, and an empty value is none */
		if (!entry->name)
			continue;
		o = find_by_name(entry->name, strlen(entry->name));
		if (!o && entry->shared)
			continue; /* another tool's */
		if (o && o->value && !(entry->value && *entry->value))
			continue;
		if (o)
			err = apply(plan, o, entry->value, e);
		else
			err = error__set(e, EINVAL, "there is no option '%s'", entry->name);
		if (err)
			return config__blame(entry, err, e);
	}
	return 0;
}

static int apply_words(int argc, char *const argv[], struct plan *plan, struct error *e)
{
	bool options_ended = false;

	for (int i = 0; i < argc; i++) {
		const char *word = argv[i], *value = strchr(word, '=');
		size_t len = value ? (size_t)(value - word) : strlen(word);
		const struct option_spec *o;
		int err;

		if (options_ended || word[0] != '-' || !word[1]) {
			plan->files[plan->n_files++] = word;
			continue;
		}
		if (!strcmp(word, "--")) {
			options_ended = true;
			continue;
		}
		o = find_option(word, len);
		if (!o)
			return error__set(e, EINVAL, "there is no option '%s'; see --help", word);
		if (value)
			value++;
		else if (o->value && i + 1 < argc)
			value = argv[++i];
		err = apply(plan, o, value, e);
		if (err)
			return err;
	}
	return 0;
}

/* pt-pmp lets -p overrule -b, and scripts give both; what cannot be meant is refused. */
static int contradictions(const struct plan *plan, struct error *e)
{
	if (plan->comm && (plan->pid || plan->binary))
		return error__set(e, EINVAL,
				  "--comm takes all processes of a name: without %s, please",
				  plan->pid ? "--pid" : "--binary");
	if (plan->output && plan->save_samples && !strcmp(plan->output, plan->save_samples))
		return error__set(e, EINVAL,
				  "--output and --save-samples name the same file, '%s': one would "
				  "overwrite the other",
				  plan->output);
	return 0;
}

int options__parse(int argc, char *const argv[], const struct config *config, struct plan *ret_plan,
		   struct error *e)
{
	struct plan plan = {
		.iterations = 1,
		.max_frames = MAX_FRAMES_DEFAULT,
		.max_wait = MAX_WAIT_DEFAULT,
	};
	int err = 0;

	plan.files = calloc((size_t)argc + 1, sizeof(*plan.files));
	if (!plan.files)
		return error__set(e, ENOMEM, "out of memory");
	if (config)
		err = apply_config(config, &plan, e);
	if (!err)
		err = apply_words(argc, argv, &plan, e);
	if (!err)
		err = contradictions(&plan, e);
	if (err) {
		free(plan.files);
		return err;
	}
	*ret_plan = plan;
	return 0;
}

void options__free(struct plan *plan)
{
	free(plan->files);
	plan->files = NULL;
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
		"Usage: bpf-pmp [OPTIONS] [FILES]\n"
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
		"[guessed], [torn] or [running]. Needs root, or CAP_BPF, CAP_PERFMON and\n"
		"CAP_SYS_PTRACE.\n");
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (options[i].name)
			append_option(out, &options[i]);
		else
			strbuf__printf(out, "\n%s\n", options[i].help);
	}
	return out->failed ? -ENOMEM : 0;
}
