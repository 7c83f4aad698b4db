// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/perf_events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct event_name {
	const char *name;
	uint32_t type;
	uint64_t config;
};

/* perf's names */
static const struct event_name names[] = {
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
};

struct perf_events {
	struct perf_event_attr attr;
	const struct event_name *name;
	int program_fd;
	int n_cpus;
	int *fds;	      /* -1: that CPU is not online */
	uint64_t *counts;     /* of each CPU's event, when last read */
	uint64_t *enabled;    /* ns, likewise */
	uint64_t gone_counts; /* of CPUs that went offline */
	uint64_t gone_enabled;
	uint64_t frequency, period;
	uint64_t idle_before, idle; /* ns, of all CPUs: when we started; since then */
};

static const struct event_name *find_event(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i].name, name))
			return &names[i];
	}
	return NULL;
}

static bool is_clock(const struct event_name *name)
{
	return name->type == PERF_TYPE_SOFTWARE && (name->config == PERF_COUNT_SW_CPU_CLOCK ||
						    name->config == PERF_COUNT_SW_TASK_CLOCK);
}

static int say_why(struct error *e, const struct event_name *name, int err)
{
	if (err == EACCES || err == EPERM)
		return error__set(e, err,
				  "not permitted to sample the CPUs: needs CAP_PERFMON (or root); "
				  "where kernel.perf_event_paranoid is 3, CAP_SYS_ADMIN; see "
				  "--check");
	if (name->type == PERF_TYPE_HARDWARE &&
	    (err == ENOENT || err == EOPNOTSUPP || err == ENODEV || err == EINVAL))
		return error__set(e, EOPNOTSUPP,
				  "this machine does not count %s (virtual machines often do not); "
				  "use --event=cpu-clock, the default",
				  name->name);
	return error__set(e, err, "cannot sample %s: perf_event_open: %s", name->name,
			  strerror(err));
}

/* How long all CPUs together had nothing to do since boot, ns (proc(5), /proc/stat). */
static uint64_t idle_ns(void)
{
	unsigned long long idle = 0, waiting = 0;
	FILE *f = fopen("/proc/stat", "re");

	if (!f)
		return 0;
	if (fscanf(f, "cpu %*u %*u %*u %llu %llu", &idle, &waiting) != 2)
		idle = waiting = 0;
	fclose(f);
	return (idle + waiting) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Returns 0, -ENODEV (not online) or -errno. */
static int open_cpu(struct perf_events *pe, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, &pe->attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	int err;

	if (fd < 0)
		return errno == ENXIO ? -ENODEV : -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, pe->program_fd) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		err = -errno;
		close(fd);
		return err;
	}
	pe->fds[cpu] = fd;
	pe->counts[cpu] = pe->enabled[cpu] = 0;
	return 0;
}

static void read_cpu(struct perf_events *pe, int cpu)
{
	uint64_t values[2]; /* the count, ns enabled */

	if (pe->fds[cpu] < 0 || read(pe->fds[cpu], values, sizeof(values)) != sizeof(values))
		return;
	pe->counts[cpu] = values[0];
	pe->enabled[cpu] = values[1];
}

static void close_cpu(struct perf_events *pe, int cpu)
{
	if (pe->fds[cpu] < 0)
		return;
	read_cpu(pe, cpu);
	pe->gone_counts += pe->counts[cpu];
	pe->gone_enabled += pe->enabled[cpu];
	close(pe->fds[cpu]);
	pe->fds[cpu] = -1;
}

struct perf_events *perf_events__new(const struct perf_events_options *options, struct error *e)
{
	const struct event_name *name = find_event(options->event ? options->event : "cpu-clock");
	struct perf_events *pe;
	int n_cpus, opened = 0, err = 0;

	if (!name) {
		errno = EINVAL;
		error__set(e, EINVAL,
			   "there is no event '%s'; cpu-clock, task-clock, page-faults, "
			   "context-switches, cycles, instructions, cache-misses and "
			   "branch-misses are some",
			   options->event);
		return NULL;
	}
	n_cpus = libbpf_num_possible_cpus();
	pe = calloc(1, sizeof(*pe));
	if (pe && n_cpus > 0) {
		pe->fds = malloc(sizeof(int) * (size_t)n_cpus);
		pe->counts = calloc((size_t)n_cpus, sizeof(*pe->counts));
		pe->enabled = calloc((size_t)n_cpus, sizeof(*pe->enabled));
	}
	if (!pe || !pe->fds || !pe->counts || !pe->enabled) {
		error__set(e, ENOMEM, "out of memory");
		err = -ENOMEM;
		goto out;
	}
	pe->n_cpus = n_cpus;
	pe->name = name;
	pe->program_fd = options->program_fd;
	pe->frequency = options->frequency;
	pe->period = options->period;
	pe->attr = (struct perf_event_attr){
		.type = name->type,
		.size = sizeof(pe->attr),
		.config = name->config,
		.freq = options->frequency != 0,
		.disabled = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
	};
	if (options->frequency)
		pe->attr.sample_freq = options->frequency;
	else
		pe->attr.sample_period = options->period;
	for (int cpu = 0; cpu < n_cpus; cpu++)
		pe->fds[cpu] = -1;
	pe->idle_before = idle_ns();
	for (int cpu = 0; cpu < n_cpus && !err; cpu++) {
		err = open_cpu(pe, cpu);
		if (!err)
			opened++;
		else if (err == -ENODEV)
			err = 0;
	}
	if (!err && !opened)
		err = -ENODEV;
	if (err)
		say_why(e, name, -err);
out:
	if (err) {
		perf_events__free(pe);
		errno = -err;
		return NULL;
	}
	return pe;
}

void perf_events__free(struct perf_events *pe)
{
	if (!pe)
		return;
	for (int cpu = 0; cpu < pe->n_cpus; cpu++)
		close_cpu(pe, cpu);
	free(pe->fds);
	free(pe->counts);
	free(pe->enabled);
	free(pe);
}

/* Whether the CPU is online: where it says nothing of itself it cannot be taken away. */
static bool is_online(int cpu)
{
	char path[96], digit = '1';
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	f = fopen(path, "re");
	if (!f)
		return true;
	if (fread(&digit, 1, 1, f) != 1)
		digit = '1';
	fclose(f);
	return digit == '1';
}

int perf_events__follow_cpus(struct perf_events *pe)
{
	for (int cpu = 0; cpu < pe->n_cpus; cpu++) {
		int err;

		if (pe->fds[cpu] >= 0) {
			uint64_t before = pe->enabled[cpu];

			/* the event of a CPU that went does not come back with it */
			read_cpu(pe, cpu);
			if (is_online(cpu) && pe->enabled[cpu] > before)
				continue;
			close_cpu(pe, cpu);
		}
		err = open_cpu(pe, cpu);
		if (err && err != -ENODEV)
			return err;
	}
	return 0;
}

void perf_events__stop(struct perf_events *pe)
{
	for (int cpu = 0; cpu < pe->n_cpus; cpu++) {
		if (pe->fds[cpu] >= 0)
			ioctl(pe->fds[cpu], PERF_EVENT_IOC_DISABLE, 0);
	}
	if (!pe->idle)
		pe->idle = idle_ns() - pe->idle_before;
}

/* The kernel makes a clock no finer (perf_swevent_start_hrtimer). */
#define MIN_CLOCK_NS 10000

/* Of a clock. */
static uint64_t ticks_in(const struct perf_events *pe, uint64_t ns)
{
	if (pe->period)
		return ns / (pe->period > MIN_CLOCK_NS ? pe->period : MIN_CLOCK_NS);
	return (uint64_t)((double)ns * (double)pe->frequency / 1e9);
}

bool perf_events__expected(struct perf_events *pe, uint64_t *ret_ticks, uint64_t *ret_idle)
{
	uint64_t counts = pe->gone_counts, enabled = pe->gone_enabled;

	for (int cpu = 0; cpu < pe->n_cpus; cpu++) {
		read_cpu(pe, cpu);
		if (pe->fds[cpu] >= 0) {
			counts += pe->counts[cpu];
			enabled += pe->enabled[cpu];
		}
	}
	*ret_idle = 0;
	if (is_clock(pe->name)) {
		*ret_ticks = ticks_in(pe, enabled);
		*ret_idle = ticks_in(pe, pe->idle);
	} else if (pe->period) {
		*ret_ticks = counts / pe->period;
	} else {
		return false;
	}
	if (*ret_idle > *ret_ticks)
		*ret_idle = *ret_ticks;
	return true;
}
