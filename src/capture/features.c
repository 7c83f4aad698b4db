// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/features.h"

#include "base/error.h"
#include "base/caps.h"
#include "capture/ksym_query.h"
#include "capture/sampler.h"
#include "capture/tasks.h"
#include "proc/find.h"
#include "proc/maps.h"
#include "proc/memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The first line of a file, to free, or NULL. */
static char *first_line(const char *path)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		return NULL;
	if (getline(&line, &size, f) < 0) {
		free(line);
		line = NULL;
	}
	fclose(f);
	if (line)
		line[strcspn(line, "\n")] = '\0';
	return line;
}

static void check_kernel(struct strbuf *out)
{
	struct utsname name;

	if (uname(&name) == 0)
		strbuf__printf(out, "kernel: %s, %s\n", name.release, name.machine);
}

static bool check_btf(struct strbuf *out)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
		strbuf__append_str(out, "BTF: ok\n");
		return true;
	}
	strbuf__append_str(out,
			   "BTF: missing; the kernel must be built with CONFIG_DEBUG_INFO_BTF, "
			   "as distributions' kernels are\n");
	return false;
}

static void check_lockdown(struct strbuf *out)
{
	char *line = first_line("/sys/kernel/security/lockdown");

	/* the mode in force stands in brackets */
	if (!line)
		strbuf__append_str(out, "lockdown: off\n");
	else if (strstr(line, "[none]"))
		strbuf__append_str(out, "lockdown: ok (none)\n");
	else if (strstr(line, "[integrity]"))
		strbuf__append_str(out, "lockdown: ok (integrity: BPF may still read)\n");
	else
		strbuf__append_str(
			out, "lockdown: confidentiality: BPF may not read kernel memory; boot "
			     "without lockdown=confidentiality\n");
	free(line);
}

static int count_record(const struct task_record *record, void *arg)
{
	(*(size_t *)arg)++;
	return 0;
}

static bool check_programs(struct strbuf *out)
{
	const struct tasks_options options = {.kernel_stacks = false};
	const struct tasks_pass pass = {.with_memory = true};
	struct error e = ERROR_INIT;
	struct tasks *tasks = tasks__new(&options, &e);
	size_t n = 0;
	bool usable = false;
	int err;

	if (!tasks) {
		strbuf__printf(out, "BPF programs: %s\n", error__text(&e, errno));
		goto out;
	}
	strbuf__append_str(out, "BPF programs: ok\n");
	err = tasks__each(tasks, getpid(), &pass, count_record, &n);
	if (err || !n) {
		strbuf__printf(out, "thread iterator: does not run: %s\n",
			       err ? strerror(-err) : "it found no thread");
	} else {
		usable = true;
		strbuf__printf(out, "thread iterator: ok (%s)\n",
			       tasks__sleepable(tasks)
				       ? "sleepable: stacks are read in the kernel"
				       : "not sleepable, kernel before 5.18: stacks are read by "
					 "process_vm_readv");
	}
	err = tasks__start_sampling(tasks, 1000000, &e);
	if (err)
		strbuf__printf(
			out,
			"CPU sampling: %s; threads that run are shown as [running]; needs "
			"CAP_PERFMON, or kernel.perf_event_paranoid below 3 with CAP_SYS_ADMIN\n",
			error__text(&e, err));
	else
		strbuf__append_str(out, "CPU sampling: ok (cpu-clock)\n");
out:
	tasks__free(tasks);
	error__clear(&e);
	return usable;
}

static int no_record(void *arg, const struct pmp_event *event, size_t size)
{
	return 0;
}

static int no_count(void *arg, const struct pmp_count_key *key, const struct pmp_count *count)
{
	return 0;
}

static void check_profiles(struct strbuf *out)
{
	const struct sampler_sink sink = {.record = no_record, .count = no_count};
	const struct plan plan = {
		.mode = PLAN_MODE_OFFCPU,
		.kernel = true,
		.max_frames = PMP_USER_FRAMES,
	};
	struct unwind_maps *maps = unwind_maps__new(true, 1);
	struct error e = ERROR_INIT;
	struct sampler *sampler = maps ? sampler__new(&plan, maps, &sink, &e) : NULL;
	int err = sampler ? sampler__start(sampler, &e) : -errno;

	if (err)
		strbuf__printf(out, "profiles: %s\n", error__text(&e, err));
	else
		strbuf__printf(out, "profiles: ok (--mode=cpu, --mode=offcpu; %s)\n",
			       sampler__by_frame_pointers(sampler)
				       ? "by frame pointers: kernels before 5.17 cannot unwind by "
					 ".eh_frame"
				       : "unwound by .eh_frame");
	sampler__free(sampler);
	unwind_maps__free(maps);
	error__clear(&e);
}

/* Whether the kernel can be asked for single names, hidden though the addresses are. */
static bool answers_for_symbols(void)
{
	struct ksym_query *query = ksym_query__new();
	const char *name = NULL;
	bool answers = query && ksym_query__name(query, 0, &name) == 0;

	ksym_query__free(query);
	return answers;
}

static void check_kernel_symbols(struct strbuf *out)
{
	char *line = first_line("/proc/kallsyms");

	if (line && strtoull(line, NULL, 16))
		strbuf__append_str(out, "kernel symbols: ok\n");
	else if (answers_for_symbols())
		strbuf__append_str(
			out, "kernel symbols: names only; --mode=offcpu shows the scheduler's own "
			     "frames, too, without CAP_SYSLOG and kernel.kptr_restrict=0 or 1\n");
	else
		strbuf__append_str(
			out,
			"kernel symbols: hidden; kernel frames are shown as ??; needs CAP_SYSLOG "
			"and kernel.kptr_restrict=0 or 1\n");
	free(line);
}

/* A byte of the process: the first of its first readable mapping. */
static int read_something(pid_t pid)
{
	struct maps *maps = maps__read(pid);
	const struct mapping *mappings;
	int err = maps ? -EFAULT : -errno;
	size_t n = 0;
	char byte;

	mappings = maps ? maps__all(maps, &n) : NULL;
	for (size_t i = 0; i < n; i++) {
		if (!mappings[i].readable)
			continue;
		err = memory__read(&pid, mappings[i].start, &byte, 1);
		break;
	}
	maps__free(maps);
	return err;
}

static bool check_target(pid_t pid, struct strbuf *out)
{
	struct strbuf missing = STRBUF_INIT;
	struct error e = ERROR_INIT;
	bool usable = false;
	int err;

	caps__missing(CAPS_TARGET, &missing);
	if (!pid) {
		if (missing.len)
			strbuf__printf(out, "access to processes: only your own; others' need %s\n",
				       missing.data);
		else
			strbuf__append_str(out,
					   "access to processes: ok (give -p PID to try one)\n");
		usable = true;
	} else if (find__check(pid, &e)) {
		strbuf__printf(out, "access to process %d: %s\n", (int)pid, error__text(&e, ESRCH));
	} else {
		err = read_something(pid);
		usable = err == 0;
		if (usable)
			strbuf__printf(out, "access to process %d: ok\n", (int)pid);
		else
			strbuf__printf(out,
				       "access to process %d: %s; needs %s, or to be its user with "
				       "kernel.yama.ptrace_scope=0\n",
				       (int)pid, strerror(-err),
				       missing.len ? missing.data : "CAP_SYS_PTRACE");
	}
	strbuf__free(&missing);
	error__clear(&e);
	return usable;
}

int features__check(pid_t pid, struct strbuf *ret_text, bool *ret_usable)
{
	bool usable;

	check_kernel(ret_text);
	usable = check_btf(ret_text);
	check_lockdown(ret_text);
	usable &= check_programs(ret_text);
	check_profiles(ret_text);
	check_kernel_symbols(ret_text);
	usable &= check_target(pid, ret_text);
	*ret_usable = usable;
	return ret_text->failed ? -ENOMEM : 0;
}
