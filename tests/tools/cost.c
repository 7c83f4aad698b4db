// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cost: runs a command and appends what it cost to a file:
 *
 *	cost [-m] [-t SECONDS] FILE COMMAND [ARGUMENT...]
 *
 *	WALL_MS CPU_MS BPF_MS PEAK_KIB MAPS_KIB STATUS WAITED_MS
 *
 * CPU is user and system time of the command and of all its descendants, also those that it did not
 * wait for. BPF is the run time of the command's BPF programs, as the kernel measures it: these
 * programs are held until the command has ended, so nothing of it is missed. The peak is the largest
 * resident set of one of the processes, or what all have together, as seen every 50 ms, whichever is
 * larger. The maps' memory is the largest sum of `memlock` of the command's BPF maps. With -m memory
 * is looked at every 2 ms, and BPF not at all. After SECONDS everything is killed, and the status is
 * 124. WAITED is how long all of its threads waited for a CPU, as seen when memory was looked at.
 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROGRAMS 256
#define MAX_TASKS    1024
#define LOOK_EVERY   (50 * 1000) /* us */
#define LOOK_OFTEN   (2 * 1000)
#define MAX_CHILDREN 64

struct bpf_use {
	__u32 ids[MAX_PROGRAMS];
	int fds[MAX_PROGRAMS];
	size_t n;
	unsigned long long maps; /* bytes */
};

/* The time that each thread has spent on run queues, by when it was last seen. */
struct waits {
	struct {
		int tid;
		unsigned long long ns;
	} tasks[MAX_TASKS];
	size_t n;
};

struct usage {
	double cpu_ms;
	long peak_kib;
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double timeval_ms(const struct timeval *t)
{
	return (double)t->tv_sec * 1e3 + (double)t->tv_usec / 1e3;
}

static void hold(struct bpf_use *use, __u32 id)
{
	int fd;

	for (size_t i = 0; i < use->n; i++) {
		if (use->ids[i] == id)
			return;
	}
	if (use->n == MAX_PROGRAMS)
		return;
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0)
		return;
	use->ids[use->n] = id;
	use->fds[use->n++] = fd;
}

/* Sets what this file descriptor is: the program's id, or 0; the map's memory, or 0. */
static void read_fdinfo(const char *path, __u32 *ret_program, unsigned long long *ret_map)
{
	unsigned long long memlock = 0;
	bool map = false, link = false;
	__u32 program = 0, id;
	char line[256];
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "memlock: %llu", &memlock);
		map |= sscanf(line, "map_id: %u", &id) == 1;
		link |= sscanf(line, "link_id: %u", &id) == 1;
		sscanf(line, "prog_id: %u", &program);
	}
	if (f)
		fclose(f);
	*ret_program = program;
	*ret_map = map && !link ? memlock : 0;
}

static void look(struct bpf_use *use, pid_t pid)
{
	unsigned long long maps = 0, map;
	struct dirent *entry;
	char path[320];
	__u32 program;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, entry->d_name);
		if (entry->d_name[0] == '.')
			continue;
		read_fdinfo(path, &program, &map);
		if (program)
			hold(use, program);
		maps += map;
	}
	if (dir)
		closedir(dir);
	if (maps > use->maps)
		use->maps = maps;
}

static void note_wait(struct waits *waits, int tid, unsigned long long ns)
{
	size_t i = 0;

	while (i < waits->n && waits->tasks[i].tid != tid)
		i++;
	if (i == MAX_TASKS)
		return;
	waits->tasks[i].tid = tid;
	waits->tasks[i].ns = ns;
	if (i == waits->n)
		waits->n++;
}

static void look_at_waits(struct waits *waits, pid_t pid)
{
	unsigned long long ns;
	struct dirent *entry;
	char path[320];
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, entry->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%*u %llu", &ns) == 1)
			note_wait(waits, atoi(entry->d_name), ns);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
}

static double waited_ms(const struct waits *waits)
{
	double sum = 0;

	for (size_t i = 0; i < waits->n; i++)
		sum += (double)waits->tasks[i].ns / 1e6;
	return sum;
}

/*
 * Of a process and its descendants, together: what they share is in it once (Pss). Looks at their
 * waits, too.
 */
static long resident_kib(pid_t pid, int depth, struct waits *waits)
{
	char path[64], line[128];
	long kib = 0;
	int child;
	FILE *f;

	look_at_waits(waits, pid);
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	while (f && !kib && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Pss: %ld kB", &kib) != 1)
			kib = 0;
	}
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	while (f && depth < 8 && fscanf(f, "%d", &child) == 1)
		kib += resident_kib(child, depth + 1, waits);
	if (f)
		fclose(f);
	return kib;
}

static double run_ms(const struct bpf_use *use)
{
	double sum = 0;

	for (size_t i = 0; i < use->n; i++) {
		struct bpf_prog_info info = {0};
		__u32 len = sizeof(info);

		if (!bpf_obj_get_info_by_fd(use->fds[i], &info, &len))
			sum += (double)info.run_time_ns / 1e6;
	}
	return sum;
}

/* Take the end of any process. Returns its pid, 0 if none has ended, -1 if there are none. */
static pid_t reap(int options, struct usage *usage, int *ret_status)
{
	struct rusage r;
	pid_t pid = wait4(-1, ret_status, options, &r);

	if (pid > 0) {
		usage->cpu_ms += timeval_ms(&r.ru_utime) + timeval_ms(&r.ru_stime);
		if (r.ru_maxrss > usage->peak_kib)
			usage->peak_kib = r.ru_maxrss;
	}
	return pid;
}

int main(int argc, char *argv[])
{
	static struct waits waits;
	struct usage usage = {0};
	struct bpf_use use = {.n = 0};
	double began, limit = 0, wall;
	long resident;
	int stats, status = 0, ended_with = 0;
	bool over = false, closely = false;
	pid_t pid, ended;
	FILE *out;

	if (argc > 2 && !strcmp(argv[1], "-m")) {
		closely = true;
		argv++;
		argc--;
	}
	if (argc > 3 && !strcmp(argv[1], "-t")) {
		limit = strtod(argv[2], NULL) * 1e3;
		argv += 2;
		argc -= 2;
	}
	if (argc < 3) {
		fprintf(stderr, "usage: cost [-m] [-t SECONDS] FILE COMMAND [ARGUMENT...]\n");
		return 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME); /* while this is open */
	if (stats < 0) {
		perror("cost: run times of BPF programs");
		return 2;
	}
	began = now_ms();
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0) {
		perror("cost");
		return 2;
	}
	for (;;) {
		/* first, for what has ended still says how long it waited */
		resident = resident_kib(pid, 0, &waits);
		if (resident > usage.peak_kib)
			usage.peak_kib = resident;
		ended = reap(WNOHANG, &usage, &status);
		if (ended == pid)
			break;
		if (ended > 0)
			continue;
		if (!closely)
			look(&use, pid);
		if (limit > 0 && !over && now_ms() - began > limit) {
			over = true;
			kill(-pid, SIGKILL);
		}
		usleep(closely ? LOOK_OFTEN : LOOK_EVERY);
	}
	wall = now_ms() - began;
	ended_with = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	/* what it left behind */
	kill(-pid, SIGKILL);
	while (reap(0, &usage, &status) > 0)
		;
	out = fopen(argv[1], "ae");
	if (!out) {
		perror(argv[1]);
		return 2;
	}
	fprintf(out, "%.1f %.1f %.1f %ld %llu %d %.1f\n", wall, usage.cpu_ms, run_ms(&use),
		usage.peak_kib, use.maps / 1024, over ? 124 : ended_with, waited_ms(&waits));
	close(stats);
	return fclose(out) ? 2 : 0;
}
