// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/perf_map.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/object_file.h"

#define MAX_BYTES (128u << 20)

struct entry {
	uint64_t start, end;
	size_t name; /* in the text: the later, the newer */
};

struct perf_map {
	char *text;
	struct entry *entries; /* ascending; none overlap */
	size_t n, capacity;
};

static bool read_hex(const char **at, const char *end, uint64_t *ret)
{
	const char *p = *at;
	uint64_t value = 0;
	size_t digits = 0;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (; p < end && isxdigit((unsigned char)*p); p++, digits++) {
		int c = tolower((unsigned char)*p);

		value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*at = p;
	*ret = value;
	return digits > 0 && digits <= 16;
}

static int add(struct perf_map *m, uint64_t start, uint64_t size, size_t name)
{
	if (m->n == m->capacity) {
		size_t capacity = m->capacity ? m->capacity * 2 : 1024;
		struct entry *entries = reallocarray(m->entries, capacity, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		m->entries = entries;
		m->capacity = capacity;
	}
	m->entries[m->n++] = (struct entry){start, start + size, name};
	return 0;
}

/* By start, the newest of those last. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Code that was made where other code was before: what was before ends there. */
static void settle(struct perf_map *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct entry e = m->entries[i];

		while (n && m->entries[n - 1].end > e.start) {
			struct entry *before = &m->entries[n - 1];

			if (before->name > e.name) {
				e.start = before->end;
			} else if (before->start < e.start) {
				before->end = e.start;
			} else {
				n--;
			}
		}
		if (e.start < e.end)
			m->entries[n++] = e;
	}
	m->n = n;
}

struct perf_map *perf_map__from_text(const char *text, size_t len)
{
	struct perf_map *m = calloc(1, sizeof(*m));
	const char *end;

	if (m)
		m->text = malloc(len + 1);
	if (!m || !m->text)
		goto fail;
	memcpy(m->text, text, len);
	m->text[len] = '\0';
	end = m->text + len;
	for (char *line = m->text, *next; line < end; line = next) {
		const char *at = line;
		char *stop = memchr(line, '\n', (size_t)(end - line));
		uint64_t start, size;

		if (!stop)
			stop = m->text + len;
		next = stop + 1;
		*stop = '\0';
		if (!read_hex(&at, stop, &start) || !read_hex(&at, stop, &size) || *at != ' ' ||
		    !at[1] || !size || start + size < start)
			continue;
		if (add(m, start, size, (size_t)(at + 1 - m->text)))
			goto fail;
	}
	if (m->n)
		qsort(m->entries, m->n, sizeof(m->entries[0]), compare);
	settle(m);
	return m;
fail:
	perf_map__free(m);
	errno = ENOMEM;
	return NULL;
}

/* The process' number in its own namespace, and its user. */
static bool read_status(pid_t pid, long *ret_pid, long *ret_uid)
{
	bool has_uid = false, has_pid = false;
	char *line = NULL, name[64];
	size_t size = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	f = fopen(name, "re");
	if (!f)
		return false;
	while (getline(&line, &size, f) > 0) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "Uid:", 4)) /* real, effective, saved, of the file system */
			has_uid = sscanf(line + 4, "%*d %ld", ret_uid) == 1;
		else if (!strncmp(line, "NSpid:", 6) && last)
			has_pid = sscanf(last, "%ld", ret_pid) == 1;
	}
	free(line);
	fclose(f);
	return has_uid && has_pid;
}

static int read_bytes(int fd, size_t len, char **ret_text)
{
	char *text = malloc(len + 1);
	size_t at = 0;

	if (!text)
		return -ENOMEM;
	while (at < len) {
		ssize_t n = read(fd, text + at, len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	memset(text + at, 0, len + 1 - at);
	*ret_text = text;
	return 0;
}

struct perf_map *perf_map__new(pid_t pid)
{
	struct object_file_id id;
	struct perf_map *m = NULL;
	char path[64], *text;
	long own_pid, uid;
	struct stat st;
	int fd, err = ENOENT;

	if (!read_status(pid, &own_pid, &uid)) {
		errno = ENOENT;
		return NULL;
	}
	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", own_pid);
	fd = object_file__open_path(pid, path, &id);
	if (fd < 0) {
		errno = ENOENT;
		return NULL;
	}
	if (!fstat(fd, &st) && (st.st_uid == 0 || (long)st.st_uid == uid)) {
		err = st.st_size > MAX_BYTES ? EFBIG : 0;
		if (!err)
			err = -read_bytes(fd, (size_t)st.st_size, &text);
	}
	close(fd);
	if (!err) {
		m = perf_map__from_text(text, (size_t)st.st_size);
		err = m ? 0 : ENOMEM;
		free(text);
	}
	errno = err;
	return m;
}

void perf_map__free(struct perf_map *m)
{
	if (!m)
		return;
	free(m->entries);
	free(m->text);
	free(m);
}

const char *perf_map__find(const struct perf_map *m, uint64_t addr)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->entries[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || addr >= m->entries[low - 1].end)
		return NULL;
	return m->text + m->entries[low - 1].name;
}
