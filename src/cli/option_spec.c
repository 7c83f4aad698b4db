// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/option_spec.h"

#include "cli/number.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LARGE 1000000000000L /* as microseconds, the most seconds that we take */

/* One more, unless it is there already. */
static int add_pid(struct plan *plan, pid_t pid)
{
	pid_t *pids;

	for (size_t i = 0; i < plan->n_pids; i++) {
		if (plan->pids[i] == pid)
			return 0;
	}
	pids = reallocarray(plan->pids, plan->n_pids + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	pids[plan->n_pids++] = pid;
	plan->pids = pids;
	return 0;
}

static int set_pid(struct plan *plan, const char *value, struct error *e)
{
	int err = 0;

	plan->target_given = true;
	for (;;) {
		size_t len = strcspn(value, ",");
		long n = 0;

		err = number__whole("--pid", value, len, 1, INT32_MAX, &n, e);
		if (!err)
			err = add_pid(plan, (pid_t)n);
		if (err || !value[len])
			return err;
		value += len + 1;
	}
}

static int set_all(struct plan *plan, const char *value, struct error *e)
{
	plan->target_given = true;
	plan->all = true;
	return 0;
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
	int err = number__whole("--iterations", value, strlen(value), 1, 1000000, &n, e);

	plan->iterations = (unsigned int)n;
	return err;
}

static int set_interval(struct plan *plan, const char *value, struct error *e)
{
	return number__seconds("--interval", value, 0, &plan->interval, e);
}

static int set_lines(struct plan *plan, const char *value, struct error *e)
{
	long n = 0;
	int err = number__whole("--lines", value, strlen(value), 0, INT32_MAX, &n, e);

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
	static const char *const names[] = {"pmp", "folded", "samples"};

	for (int i = PLAN_FORMAT_PMP; i <= PLAN_FORMAT_SAMPLES; i++) {
		if (!strcmp(value, names[i])) {
			plan->format = (enum plan_format)i;
			return 0;
		}
	}
	return error__set(e, EINVAL, "--format takes pmp, folded or samples, not '%s'", value);
}

const char *const mode_names[] = {"threads", "cpu", "offcpu"};

int option_spec__mode(const char *value, enum plan_mode *ret_mode, struct error *e)
{
	for (int i = PLAN_MODE_THREADS; i <= PLAN_MODE_OFFCPU; i++) {
		if (!strcmp(value, mode_names[i])) {
			*ret_mode = (enum plan_mode)i;
			return 0;
		}
	}
	return error__set(e, EINVAL, "--mode takes threads, cpu or offcpu, not '%s'", value);
}

static int set_mode(struct plan *plan, const char *value, struct error *e)
{
	return option_spec__mode(value, &plan->mode, e);
}

static int set_duration(struct plan *plan, const char *value, struct error *e)
{
	return number__seconds("--duration", value, 0.001, &plan->duration, e);
}

static int set_unwind(struct plan *plan, const char *value, struct error *e)
{
	if (!strcmp(value, "eh_frame"))
		plan->unwind = PLAN_UNWIND_EH_FRAME;
	else if (!strcmp(value, "fp"))
		plan->unwind = PLAN_UNWIND_FP;
	else
		return error__set(e, EINVAL, "--unwind takes eh_frame or fp, not '%s'", value);
	return 0;
}

static int set_event(struct plan *plan, const char *value, struct error *e)
{
	if (!*value)
		return error__set(e, EINVAL, "--event takes the name of an event, not ''");
	plan->event = value;
	return 0;
}

static int set_frequency(struct plan *plan, const char *value, struct error *e)
{
	long n = 1;
	int err = number__whole("--frequency", value, strlen(value), 1, 100000, &n, e);

	plan->frequency = (unsigned int)n;
	return err;
}

static int set_count(struct plan *plan, const char *value, struct error *e)
{
	long n = 0;
	int err = number__whole("--count", value, strlen(value), 1, LARGE, &n, e);

	plan->event_count = (uint64_t)n;
	return err;
}

static int set_min_us(struct plan *plan, const char *value, struct error *e)
{
	long n = 0;
	int err = number__whole("--min-us", value, strlen(value), 0, LARGE, &n, e);

	plan->min_us = (uint64_t)n;
	return err;
}

static int set_max_us(struct plan *plan, const char *value, struct error *e)
{
	long n = 0;
	int err = number__whole("--max-us", value, strlen(value), 0, LARGE, &n, e);

	plan->max_us = (uint64_t)n;
	return err;
}

static int set_state(struct plan *plan, const char *value, struct error *e)
{
	static const struct {
		const char *name;
		unsigned int states;
	} known[] = {
		{"interruptible", PLAN_STATE_INTERRUPTIBLE},
		{"uninterruptible", PLAN_STATE_UNINTERRUPTIBLE},
		{"runnable", PLAN_STATE_RUNNABLE},
		{"all",
		 PLAN_STATE_INTERRUPTIBLE | PLAN_STATE_UNINTERRUPTIBLE | PLAN_STATE_RUNNABLE},
	};
	unsigned int states = 0;

	for (const char *name = value;;) {
		size_t len = strcspn(name, ","), i = 0;

		while (i < 4 && (strlen(known[i].name) != len || memcmp(known[i].name, name, len)))
			i++;
		if (i == 4)
			return error__set(e, EINVAL,
					  "--state takes a list of interruptible, uninterruptible, "
					  "runnable or all, not '%s'",
					  value);
		states |= known[i].states;
		if (!name[len])
			break;
		name += len + 1;
	}
	plan->states = states;
	return 0;
}

static int set_top(struct plan *plan, const char *value, struct error *e)
{
	long n = 0;
	int err = number__whole("--top", value, strlen(value), 0, INT32_MAX, &n, e);

	plan->top = (size_t)n;
	return err;
}

static int set_kernel(struct plan *plan, const char *value, struct error *e)
{
	plan->kernel = true;
	return 0;
}

static int set_no_kernel(struct plan *plan, const char *value, struct error *e)
{
	plan->kernel = false;
	return 0;
}

static int set_max_frames(struct plan *plan, const char *value, struct error *e)
{
	long n = 1;
	int err = number__whole("--max-frames", value, strlen(value), 1, 1000000, &n, e);

	plan->max_frames = (size_t)n;
	return err;
}

static int set_max_wait(struct plan *plan, const char *value, struct error *e)
{
	return number__seconds("--max-wait", value, 0.001, &plan->max_wait, e);
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

static int set_debug_dir(struct plan *plan, const char *value, struct error *e)
{
	if (!*value)
		return error__set(e, EINVAL, "--debug-dir takes the name of a folder, not ''");
	plan->debug_dir = value;
	return 0;
}

static int set_debuginfod(struct plan *plan, const char *value, struct error *e)
{
	if (strncmp(value, "http://", 7) && strncmp(value, "https://", 8) &&
	    strncmp(value, "file://", 7))
		return error__set(e, EINVAL,
				  "--debuginfod takes http://..., https://... or "
				  "file://..., not '%s'",
				  value);
	plan->debuginfod = value;
	return 0;
}

static int set_input(struct plan *plan, const char *value, struct error *e)
{
	plan->input = value;
	return 0;
}

static int set_timeout(struct plan *plan, const char *value, struct error *e)
{
	return number__seconds("--timeout", value, 0, &plan->timeout, e);
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

#define FOR_SAMPLERS (FOR_CPU | FOR_OFFCPU)

/* Without a set(): the bool that it sets. */
#define FLAG(field) offsetof(struct plan, field)

const struct option_spec option_specs[] = {
	{0, NULL, NULL, "Which process:", NULL, 0, 0},
	{'p', "pid", "PID,...", "this one, or these", set_pid, FOR_ALL, 0},
	{'b', "binary", "NAME",
	 "the one whose executable or command is exactly NAME\n(default: mysqld, else mariadbd)",
	 set_binary, FOR_ALL, 0},
	{0, "comm", "NAME", "every one whose command is exactly NAME", set_comm, FOR_ALL, 0},
	{'a', "all", NULL, "the whole machine (only with --mode=cpu and --mode=offcpu)", set_all,
	 FOR_SAMPLERS, 0},
	{0, NULL, NULL, "What to capture:", NULL, 0, 0},
	{0, "mode", "MODE",
	 "threads: what is every thread doing right now? (default)\n"
	 "cpu: where does CPU time go? Counts are samples.\n"
	 "offcpu: what do threads wait for? Counts are microseconds.",
	 set_mode, FOR_ALL, 0},
	{0, "kernel", NULL,
	 "kernel frames too, before the user frames (the default, but for\n--mode=threads)",
	 set_kernel, FOR_ALL, 0},
	{0, "no-kernel", NULL, "no kernel frames (the default with --mode=threads)", set_no_kernel,
	 FOR_ALL, 0},
	{0, "max-frames", "N", "user frames per stack (default 4096; profiles keep 512 at most)",
	 set_max_frames, FOR_ALL, 0},
	{0, "max-wait", "SECONDS",
	 "give up if the process' memory stays locked so long (default 5)", set_max_wait, FOR_ALL,
	 0},
	{0, NULL, NULL, "How to take the threads (--mode=threads):", NULL, 0, 0},
	{'i', "iterations", "N", "so many snapshots, counted together (default 1)", set_iterations,
	 FOR_THREADS, 0},
	{'s', "interval", "SECONDS", "pause between two of them (default 0; 0.5 will do)",
	 set_interval, FOR_THREADS, 0},
	{'k', "save-samples", "FILE",
	 "append every stack to FILE as gdb would print it; what is printed\nis then all of FILE",
	 set_save_samples, FOR_THREADS, 0},
	{0, "tracer", "TRACER",
	 "bpf (default); gdb, eu (eu-stack) or pteu (pt-eustack-resolver):\nthese stop the process",
	 set_tracer, FOR_THREADS, 0},
	{0, "timeout", "SECONDS", "end gdb or eu-stack after so long (default 0: never)",
	 set_timeout, FOR_THREADS, 0},
	{0, "readnever", NULL, "debug information is not read, by gdb or by us", NULL, FOR_THREADS,
	 FLAG(readnever)},
	{0, "plain-iterator", NULL, "memory and kernel names as before Linux 5.18 (for tests)",
	 NULL, FOR_THREADS, FLAG(plain_iterator)},
	{0, NULL, NULL, "For how long, and how (--mode=cpu, --mode=offcpu):", NULL, 0, 0},
	{0, "duration", "SECONDS",
	 "for so long (default 10); Ctrl-C ends it early, and what there is\nis printed",
	 set_duration, FOR_SAMPLERS, 0},
	{0, "unwind", "HOW",
	 "eh_frame (default), or fp: by frame pointers, quicker, but code\n"
	 "built without them is lost",
	 set_unwind, FOR_SAMPLERS, 0},
	{0, NULL, NULL, "How to sample (--mode=cpu):", NULL, 0, 0},
	{'F', "frequency", "HZ", "so many samples a second on each CPU (default 99)", set_frequency,
	 FOR_CPU, 0},
	{0, "event", "NAME", "an event of the CPU or the kernel (default cpu-clock)", set_event,
	 FOR_CPU, 0},
	{0, "count", "N", "a sample every N of these events, instead of -F", set_count, FOR_CPU, 0},
	{0, NULL, NULL, "Off-CPU (--mode=offcpu):", NULL, 0, 0},
	{0, "min-us", "N", "only waits of at least N microseconds (default 0: all)", set_min_us,
	 FOR_OFFCPU, 0},
	{0, "max-us", "N", "only waits of at most N microseconds (default 0: all)", set_max_us,
	 FOR_OFFCPU, 0},
	{0, "state", "A,B,...",
	 "interruptible (sleeps), uninterruptible (mostly disks), runnable\n"
	 "(waits for a CPU), or all (default: the first two)",
	 set_state, FOR_OFFCPU, 0},
	{0, NULL, NULL, "What to read, with FILES:", NULL, 0, 0},
	{'d', "dumper", "TRACER",
	 "who made the trace: gdb (default), eu or pteu; without FILES, who is\nto make it",
	 set_dumper, FOR_THREADS, 0},
	{0, "input", "FORMAT", "gdb, eu, bpftrace, bcc, perf, folded or pmp (default: by its form)",
	 set_input, FOR_THREADS, 0},
	{0, NULL, NULL, "What to print:", NULL, 0, 0},
	{'l', "lines", "N", "only the innermost N frames of each stack (default 0: all)", set_lines,
	 FOR_ALL, 0},
	{'t', "tids", "A,B,...",
	 "only threads whose id or name matches one of these regular\nexpressions", set_tids,
	 FOR_ALL, 0},
	{0, "top", "N", "only the first N lines (default 0: all)", set_top, FOR_ALL, 0},
	{0, "percent", NULL, "shares of the whole in place of counts", NULL, FOR_ALL,
	 FLAG(percent)},
	{0, "functions", NULL,
	 "each function's share, itself and with what it calls, in place\n"
	 "of stacks",
	 NULL, FOR_ALL, FLAG(functions)},
	{0, "by-process", NULL, "command and PID as the two outermost frames", NULL, FOR_ALL,
	 FLAG(by_process)},
	{0, "no-lines", NULL, "no source lines: f(a.cc:12) is f(a.so)", NULL, FOR_ALL,
	 FLAG(no_lines)},
	{0, "no-inlines", NULL,
	 "no inlined functions; with --no-lines, debug information is not\nread", NULL, FOR_ALL,
	 FLAG(no_inlines)},
	{0, "annotate", NULL, "mark kernel frames: schedule_[k]", NULL, FOR_ALL, FLAG(annotate)},
	{0, "format", "FORMAT",
	 "pmp (default); folded: outermost;...;innermost COUNT; samples: a\n"
	 "line for each sample (only with --mode=cpu)",
	 set_format, FOR_ALL, 0},
	{0, "stacks", NULL, "with --format=samples: each sample's stack, too", NULL, FOR_CPU,
	 FLAG(stacks)},
	{'o', "output", "FILE", "write to FILE instead of standard output", set_output, FOR_ALL, 0},
	{'v', "verbose", NULL,
	 "say what was counted, and how each thread was read, on standard\nerror", NULL, FOR_ALL,
	 FLAG(verbose)},
	{0, NULL, NULL, "Other:", NULL, 0, 0},
	{0, "debug-dir", "FOLDER", "where debug files are (default /usr/lib/debug)", set_debug_dir,
	 FOR_ALL, 0},
	{0, "debuginfod", "URL",
	 "ask this server for debug files that are not there (default: those\n"
	 "in DEBUGINFOD_URLS; none)",
	 set_debuginfod, FOR_ALL, 0},
	{0, "no-drop", NULL, "keep all privileges to the end (for debugging)", NULL, FOR_ALL,
	 FLAG(no_drop)},
	{0, "config", "A,B,...", "as the first option: read these files instead of pt-pmp's own",
	 set_config, FOR_ALL, 0},
	{0, "check", NULL, "say what this kernel and this user allow, and what to do", set_check,
	 FOR_ALL, 0},
	{'h', "help", NULL, "this text", set_help, FOR_ALL, 0},
	{0, "version", NULL, "the version", set_version, FOR_ALL, 0},
};

const size_t n_option_specs = sizeof(option_specs) / sizeof(option_specs[0]);
