// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/find.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COMM_LEN       15	   /* TASK_COMM_LEN less its NUL */
#define FILE_MAX_BYTES (64 * 1024) /* of a command line: more is cut, with an ellipsis */
#define PF_KTHREAD     0x00200000

struct stat_fields {
	char state;
	unsigned int flags;
	uint64_t start_ticks;
};

/* Append the file /proc/PID/NAME, up to FILE_MAX_BYTES of it. Returns 0 or -errno. */
static int read_file(pid_t pid, const char *name, struct strbuf *out)
{
	char path[64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (out->len < FILE_MAX_BYTES) {
		ssize_t n;

		err = strbuf__reserve(out, 4096);
		if (err)
			break;
		n = read(fd, out->data + out->len, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : 0;
			break;
		}
		out->len += (size_t)n;
		out->data[out->len] = '\0';
	}
	close(fd);
	return err;
}

static int read_stat_file(pid_t pid, const char *name, struct stat_fields *ret)
{
	struct strbuf text = STRBUF_INIT;
	unsigned long long start;
	const char *p;
	int err = read_file(pid, name, &text);

	if (!err) {
		/* the command may hold anything: the fields begin after the last parenthesis */
		p = text.data ? strrchr(text.data, ')') : NULL;
		if (!p ||
		    sscanf(p + 1,
			   " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d"
			   " %*d %*d %llu",
			   &ret->state, &ret->flags, &start) != 3)
			err = -EINVAL;
		else
			ret->start_ticks = start;
	}
	strbuf__free(&text);
	return err;
}

static int read_stat(pid_t pid, struct stat_fields *ret)
{
	return read_stat_file(pid, "stat", ret);
}

/* The executable's file name, without " (deleted)". Returns a string to free, or NULL. */
static char *executable(pid_t pid)
{
	static const char deleted[] = " (deleted)";
	char link[64], path[4096 + sizeof(deleted)];
	ssize_t n;
	char *name;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, path, sizeof(path) - 1); /* the kernel gives no more than a page */
	if (n < 0)
		return NULL;
	path[n] = '\0';
	if ((size_t)n >= sizeof(deleted) && !strcmp(path + n - (sizeof(deleted) - 1), deleted))
		path[n - (ssize_t)(sizeof(deleted) - 1)] = '\0';
	name = strrchr(path, '/');
	return strdup(name ? name + 1 : path);
}

static bool has_comm(pid_t pid, const char *name)
{
	struct strbuf comm = STRBUF_INIT;
	bool same = false;

	if (strlen(name) <= COMM_LEN && read_file(pid, "comm", &comm) == 0 && comm.len)
		same = comm.len - 1 == strlen(name) && !memcmp(comm.data, name, comm.len - 1);
	strbuf__free(&comm);
	return same;
}

static bool has_executable(pid_t pid, const char *name)
{
	char *exe = executable(pid);
	bool same = exe && !strcmp(exe, name);

	free(exe);
	return same;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

struct pid_list {
	pid_t *pids;
	size_t n, capacity;
};

static int add_pid(struct pid_list *list, pid_t pid)
{
	if (list->n == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 64;
		pid_t *grown = reallocarray(list->pids, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->pids = grown;
		list->capacity = capacity;
	}
	list->pids[list->n++] = pid;
	return 0;
}

/* `name` NULL: every one. */
static int find(const char *name, bool by_executable, pid_t **ret_pids, size_t *ret_n)
{
	struct pid_list list = {NULL};
	struct dirent *entry;
	struct stat_fields stat;
	int err = 0;
	DIR *dir;

	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (!isdigit((unsigned char)entry->d_name[0]) || pid <= 0 || pid == getpid())
			continue;
		if (name && !has_comm(pid, name) && !(by_executable && has_executable(pid, name)))
			continue;
		if (read_stat(pid, &stat) || strchr("ZXx", stat.state) || (stat.flags & PF_KTHREAD))
			continue;
		err = add_pid(&list, pid);
		if (err)
			break;
	}
	closedir(dir);
	if (err) {
		free(list.pids);
		return err;
	}
	if (list.n)
		qsort(list.pids, list.n, sizeof(*list.pids), compare_pids);
	*ret_pids = list.pids;
	*ret_n = list.n;
	return 0;
}

int find__binary(const char *name, pid_t **ret_pids, size_t *ret_n)
{
	return find(name, true, ret_pids, ret_n);
}

int find__comm(const char *name, pid_t **ret_pids, size_t *ret_n)
{
	return find(name, false, ret_pids, ret_n);
}

int find__all(pid_t **ret_pids, size_t *ret_n)
{
	return find(NULL, false, ret_pids, ret_n);
}

/* The thread group that `pid` belongs to, or -errno. */
static pid_t thread_group(pid_t pid)
{
	struct strbuf text = STRBUF_INIT;
	pid_t tgid = -ESRCH;
	const char *p;

	if (read_file(pid, "status", &text) == 0) {
		p = text.data ? strstr(text.data, "\nTgid:") : NULL;
		if (p)
			tgid = (pid_t)strtol(p + 6, NULL, 10);
	}
	strbuf__free(&text);
	return tgid;
}

/* ELFCLASS32 or ELFCLASS64 of the executable, or -errno. */
static int executable_class(pid_t pid)
{
	unsigned char ident[EI_NIDENT];
	char path[64];
	int fd, class = -ENOEXEC;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (pread(fd, ident, sizeof(ident), 0) == (ssize_t)sizeof(ident) &&
	    !memcmp(ident, ELFMAG, SELFMAG))
		class = ident[EI_CLASS];
	close(fd);
	return class;
}

int find__check(pid_t pid, struct error *e)
{
	struct stat_fields stat;
	pid_t tgid = thread_group(pid);

	if (tgid < 0 || read_stat(pid, &stat))
		return error__set(e, ESRCH, "no process has the PID %d", (int)pid);
	if (tgid != pid)
		return error__set(e, EINVAL, "%d is a thread of process %d; give -p %d", (int)pid,
				  (int)tgid, (int)tgid);
	if (stat.flags & PF_KTHREAD)
		return error__set(e, EINVAL, "process %d is a kernel thread: it has no user stack",
				  (int)pid);
	if (strchr("Xx", stat.state) || (stat.state == 'Z' && find__live_thread(pid) < 0))
		return error__set(
			e, ESRCH,
			"process %d is a zombie: it has ended, and waits for its parent to notice",
			(int)pid);
	if (executable_class(pid) == ELFCLASS32)
		return error__set(e, EOPNOTSUPP,
				  "process %d is a 32-bit program; only 64-bit ones can be unwound",
				  (int)pid);
	return 0;
}

/* When the machine booted, in seconds since the epoch; 0 if it cannot be told. */
static time_t boot_time(void)
{
	unsigned long long seconds = 0;
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen("/proc/stat", "re");

	while (f && getline(&line, &size, f) >= 0) {
		if (sscanf(line, "btime %llu", &seconds) == 1)
			break;
	}
	free(line);
	if (f)
		fclose(f);
	return (time_t)seconds;
}

static void append_command_line(pid_t pid, struct strbuf *out)
{
	struct strbuf text = STRBUF_INIT;
	size_t len;

	if (read_file(pid, "cmdline", &text) || !text.len) {
		strbuf__append_str(out, "(command line not readable)");
	} else {
		len = text.len - (text.data[text.len - 1] == '\0');
		for (size_t i = 0; i < len; i++) {
			if (text.data[i] == '\0')
				text.data[i] = ' ';
		}
		strbuf__append_untrusted(out, text.data, len, ' ');
		if (text.len >= FILE_MAX_BYTES)
			strbuf__append_str(out, "...");
	}
	strbuf__free(&text);
}

int find__describe(pid_t pid, struct strbuf *ret_text)
{
	struct stat_fields fields;
	struct passwd *user;
	char path[64], since[64] = "?";
	struct stat st;
	struct tm tm;
	time_t start;
	int err = read_stat(pid, &fields);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st))
		return -errno;
	start = boot_time() + (time_t)(fields.start_ticks / (uint64_t)sysconf(_SC_CLK_TCK));
	if (localtime_r(&start, &tm))
		strftime(since, sizeof(since), "%b %e %H:%M", &tm);
	user = getpwuid(st.st_uid);
	strbuf__printf(ret_text, "PID %d ", (int)pid);
	if (user)
		strbuf__append_untrusted(ret_text, user->pw_name, strlen(user->pw_name), ' ');
	else
		strbuf__printf(ret_text, "%u", (unsigned int)st.st_uid);
	strbuf__printf(ret_text, ", since %s, ", since);
	append_command_line(pid, ret_text);
	return ret_text->failed ? -ENOMEM : 0;
}

int find__start_time(pid_t pid, uint64_t *ret_ticks)
{
	struct stat_fields fields;
	int err = read_stat(pid, &fields);

	if (!err)
		*ret_ticks = fields.start_ticks;
	return err;
}

int find__threads(pid_t pid, pid_t **ret_tids, size_t *ret_n)
{
	struct pid_list list = {NULL};
	struct dirent *entry;
	char path[64];
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			err = add_pid(&list, tid);
	}
	closedir(dir);
	if (err) {
		free(list.pids);
		return err;
	}
	*ret_tids = list.pids;
	*ret_n = list.n;
	return 0;
}

bool find__is_thread(pid_t pid, pid_t tid)
{
	struct stat_fields fields;
	char name[32];

	snprintf(name, sizeof(name), "task/%d/stat", (int)tid);
	return read_stat_file(pid, name, &fields) == 0 && !strchr("ZXx", fields.state);
}

pid_t find__live_thread(pid_t pid)
{
	struct stat_fields fields;
	pid_t *tids = NULL, live = -ESRCH;
	size_t n = 0;

	if (read_stat(pid, &fields) == 0 && !strchr("ZXx", fields.state))
		return pid;
	if (find__threads(pid, &tids, &n))
		return -ESRCH;
	for (size_t i = 0; i < n && live < 0; i++) {
		if (find__is_thread(pid, tids[i]))
			live = tids[i];
	}
	free(tids);
	return live;
}
