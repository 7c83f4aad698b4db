// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"

#define MAX_TEXT (256u << 20)

struct maps {
	struct mapping *all;
	size_t n;
	char *text; /* the paths point into it */
};

static bool number(char **p, int base, char end, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;
	char *s = *p;

	for (; *s != end || s == *p; s++) {
		unsigned int digit;

		if (*s >= '0' && *s <= '9')
			digit = (unsigned int)(*s - '0');
		else if (base == 16 && *s >= 'a' && *s <= 'f')
			digit = (unsigned int)(*s - 'a') + 10;
		else
			return false;
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value) || value > max)
			return false;
	}
	*p = end ? s + 1 : s;
	*ret = value;
	return true;
}

/* The kernel escapes newlines only; a backslash stays as it is. */
static void unescape(char *path)
{
	char *out = path;

	while (*path) {
		if (strncmp(path, "\\012", 4) == 0) {
			*out++ = '\n';
			path += 4;
		} else {
			*out++ = *path++;
		}
	}
	*out = '\0';
}

static bool permissions(char **p, struct mapping *m)
{
	const char *s = *p;

	if ((s[0] != 'r' && s[0] != '-') || (s[1] != 'w' && s[1] != '-') ||
	    (s[2] != 'x' && s[2] != '-') || (s[3] != 'p' && s[3] != 's') || s[4] != ' ')
		return false;
	m->readable = s[0] == 'r';
	m->writable = s[1] == 'w';
	m->executable = s[2] == 'x';
	*p += 5;
	return true;
}

static bool parse_line(char *line, struct mapping *m)
{
	static const char deleted[] = " (deleted)";
	uint64_t dev_major, dev_minor;
	size_t len;

	*m = (struct mapping){.path = ""};
	if (!number(&line, 16, '-', UINT64_MAX, &m->start) ||
	    !number(&line, 16, ' ', UINT64_MAX, &m->end) || m->start >= m->end ||
	    !permissions(&line, m) || !number(&line, 16, ' ', UINT64_MAX, &m->offset) ||
	    !number(&line, 16, ':', UINT32_MAX, &dev_major) ||
	    !number(&line, 16, ' ', UINT32_MAX, &dev_minor))
		return false;
	m->dev_major = (uint32_t)dev_major;
	m->dev_minor = (uint32_t)dev_minor;
	len = strcspn(line, " ");
	if (line[len]) {
		if (!number(&line, 10, ' ', UINT64_MAX, &m->inode))
			return false;
	} else if (!number(&line, 10, '\0', UINT64_MAX, &m->inode)) {
		return false;
	}
	line += strspn(line, " ");
	len = strlen(line);
	if (len > strlen(deleted) && !strcmp(line + len - strlen(deleted), deleted)) {
		m->deleted = true;
		line[len - strlen(deleted)] = '\0';
	}
	unescape(line);
	m->path = line;
	return true;
}

static int add(struct maps *m, const struct mapping *mapping, size_t *capacity)
{
	if (m->n && mapping->start < m->all[m->n - 1].end)
		return -EINVAL;
	if (m->n == *capacity) {
		size_t want = *capacity ? *capacity * 2 : 64;
		struct mapping *all = reallocarray(m->all, want, sizeof(*all));

		if (!all)
			return -ENOMEM;
		m->all = all;
		*capacity = want;
	}
	m->all[m->n++] = *mapping;
	return 0;
}

/* Takes the text, which must be NUL-terminated at `len`. */
static struct maps *parse(char *text, size_t len)
{
	struct maps *m = calloc(1, sizeof(*m));
	size_t capacity = 0;
	int err = -ENOMEM;

	if (!m) {
		free(text);
		goto fail;
	}
	m->text = text;
	for (char *line = text, *end = text + len; line < end;) {
		char *eol = memchr(line, '\n', (size_t)(end - line));
		struct mapping mapping;

		if (!eol)
			eol = end;
		*eol = '\0';
		if (parse_line(line, &mapping)) {
			err = add(m, &mapping, &capacity);
			if (err)
				goto fail;
		}
		line = eol + 1;
	}
	return m;
fail:
	maps__free(m);
	errno = -err;
	return NULL;
}

struct maps *maps__parse(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return parse(copy, len);
}

struct maps *maps__read(pid_t pid)
{
	struct strbuf text = STRBUF_INIT;
	struct maps *m = NULL;
	char name[64];
	int fd, err = 0;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		if (errno == ENOENT)
			errno = ESRCH;
		return NULL;
	}
	for (;;) {
		ssize_t n;

		if (text.len > MAX_TEXT)
			err = -EFBIG;
		else
			err = strbuf__reserve(&text, 16384);
		if (err)
			goto out;
		n = read(fd, text.data + text.len, text.capacity - text.len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = -errno;
			goto out;
		}
		if (n == 0)
			break;
		text.len += (size_t)n;
		text.data[text.len] = '\0';
	}
	m = parse(text.data, text.len);
	if (!m)
		err = -errno;
	text = (struct strbuf)STRBUF_INIT;
out:
	close(fd);
	strbuf__free(&text);
	if (err)
		errno = -err;
	return m;
}

void maps__free(struct maps *m)
{
	if (!m)
		return;
	free(m->all);
	free(m->text);
	free(m);
}

const struct mapping *maps__find(const struct maps *m, uint64_t addr)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (addr >= m->all[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < m->n && addr >= m->all[low].start ? &m->all[low] : NULL;
}

const struct mapping *maps__all(const struct maps *m, size_t *ret_n)
{
	*ret_n = m->n;
	return m->all;
}
