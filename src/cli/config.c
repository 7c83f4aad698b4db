// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/config.h"

#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_MAX (1U << 20) /* bytes of a file */

struct config {
	struct config_entry *entries;
	size_t n_entries, capacity;
	char **files; /* the names that the entries point to */
	size_t n_files;
};

struct config *config__new(void)
{
	return calloc(1, sizeof(struct config));
}

void config__free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_entries; i++) {
		free((char *)c->entries[i].name);
		free((char *)c->entries[i].value);
	}
	for (size_t i = 0; i < c->n_files; i++)
		free(c->files[i]);
	free(c->entries);
	free(c->files);
	free(c);
}

/* `name` and `value` may be NULL; they and the lengths delimit parts of a line. */
static int add_entry(struct config *c, const struct config_entry *where, const char *name,
		     size_t name_len, const char *value, size_t value_len)
{
	struct config_entry entry = *where;

	if (c->n_entries == c->capacity) {
		size_t capacity = c->capacity ? 2 * c->capacity : 16;
		struct config_entry *entries = reallocarray(c->entries, capacity, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		c->entries = entries;
		c->capacity = capacity;
	}
	entry.name = name ? strndup(name, name_len) : NULL;
	entry.value = value ? strndup(value, value_len) : NULL;
	if ((name && !entry.name) || (value && !entry.value)) {
		free((char *)entry.name);
		free((char *)entry.value);
		return -ENOMEM;
	}
	c->entries[c->n_entries++] = entry;
	return 0;
}

static const char *add_file(struct config *c, const char *file)
{
	char **files = reallocarray(c->files, c->n_files + 1, sizeof(*files));

	if (!files)
		return NULL;
	c->files = files;
	files[c->n_files] = strdup(file);
	return files[c->n_files] ? files[c->n_files++] : NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_version_check(const char *name, size_t len)
{
	static const char *const names[] = {"version-check", "noversion-check", "no-version-check"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], name, len))
			return true;
	return false;
}

/* Drop the comment, and the blanks at both ends. */
static void trim(const char **start, const char **end)
{
	const char *s = *start, *stop = *end;

	for (const char *p = s; p < stop; p++)
		if (*p == '#' && (p == s || is_blank(p[-1])))
			stop = p;
	while (s < stop && is_blank(*s))
		s++;
	while (s < stop && is_blank(stop[-1]))
		stop--;
	*start = s;
	*end = stop;
}

static int parse_line(struct config *c, const struct config_entry *where, const char *line,
		      size_t len, bool *arguments)
{
	const char *name = line, *end = line + len, *value, *name_end;

	trim(&name, &end);
	if (name == end)
		return 0;
	if (*arguments)
		return add_entry(c, where, NULL, 0, name, (size_t)(end - name));
	if (end - name == 2 && !memcmp(name, "--", 2)) {
		*arguments = true;
		return 0;
	}
	while (name < end && *name == '-')
		name++;
	for (name_end = name; name_end < end && *name_end != '=' && !is_blank(*name_end);)
		name_end++;
	if (is_version_check(name, (size_t)(name_end - name)))
		return 0;
	value = name_end;
	while (value < end && is_blank(*value))
		value++;
	if (value == end) {
		value = NULL;
	} else if (*value == '=') {
		value++;
		while (value < end && is_blank(*value))
			value++;
	}
	return add_entry(c, where, name, (size_t)(name_end - name), value,
			 value ? (size_t)(end - value) : 0);
}

int config__parse(struct config *c, const char *file, bool shared, const char *text, size_t len)
{
	struct config_entry where = {.file = add_file(c, file), .line = 1, .shared = shared};
	struct strbuf line = STRBUF_INIT;
	unsigned int breaks = 0; /* in the line at hand */
	bool arguments = false;
	int err = where.file ? 0 : -ENOMEM;
	size_t i = 0;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		i = 3;
	while (i < len && !err) {
		char byte = text[i++];

		if (byte == '\n') {
			err = parse_line(c, &where, line.data ? line.data : "", line.len,
					 &arguments);
			where.line += breaks + 1;
			breaks = 0;
			strbuf__reset(&line);
			continue;
		}
		/* as in `read` without -r */
		if (byte == '\\') {
			if (i == len)
				break;
			byte = text[i++];
			if (byte == '\n') {
				breaks++;
				continue;
			}
		}
		if (byte)
			err = strbuf__append_char(&line, byte);
	}
	if (!err && line.len)
		err = parse_line(c, &where, line.data, line.len, &arguments);
	strbuf__free(&line);
	return err;
}

/* Returns 0 with the file's bytes, -ENOENT if it is to be passed over, or another -errno. */
static int read_regular(const char *path, struct strbuf *ret_text)
{
	struct stat st;
	ssize_t n = 1;
	int fd, err = 0;

	/* asked before the open, which is not without effect on every device */
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return -ENOENT;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -ENOENT;
	while (!err && n) {
		char buffer[4096];

		n = read(fd, buffer, sizeof(buffer));
		if (n < 0) {
			err = errno == EINTR ? 0 : -errno;
			continue;
		}
		err = strbuf__append(ret_text, buffer, (size_t)n);
		if (!err && ret_text->len > CONFIG_MAX)
			err = -EFBIG;
	}
	close(fd);
	return err;
}

int config__read(struct config *c, const char *path, bool shared, struct error *e)
{
	struct strbuf text = STRBUF_INIT;
	int err = read_regular(path, &text);

	if (!err)
		err = config__parse(c, path, shared, text.data ? text.data : "", text.len);
	else if (err == -ENOENT || (err == -EACCES && shared))
		err = 0; /* the one for all tools may hold passwords, for those who may read it */
	else if (err == -EFBIG)
		error__set(e, EFBIG, "%s is larger than 1 MiB, too much for a config file", path);
	else
		error__set(e, -err, "cannot read the config file %s: %s", path, strerror(-err));
	strbuf__free(&text);
	return err;
}

static int read_list(struct config *c, const char *list, struct error *e)
{
	int err = 0;

	while (*list && !err) {
		size_t len = strcspn(list, ",");
		char *path = strndup(list, len);

		err = path ? 0 : -ENOMEM;
		if (!err && *path)
			err = config__read(c, path, false, e);
		free(path);
		list += len + (list[len] == ',');
	}
	return err;
}

static int read_pair(struct config *c, const char *folder, const char *prefix, struct error *e)
{
	static const char *const names[] = {"percona-toolkit.conf", "pt-pmp.conf"};
	struct strbuf path = STRBUF_INIT;
	int err = 0;

	for (size_t i = 0; i < 2 && !err; i++) {
		strbuf__reset(&path);
		err = strbuf__printf(&path, "%s/%s%s", folder, prefix, names[i]);
		if (!err)
			err = config__read(c, path.data, i == 0, e);
	}
	strbuf__free(&path);
	return err;
}

int config__load(struct config *c, int argc, char *const argv[], const char *etc, const char *home,
		 int *ret_words, struct error *e)
{
	static const char option[] = "--config";
	const size_t len = sizeof(option) - 1;
	const char *first = argc > 1 ? argv[1] : "";
	int words = 0, err;

	if (!strncmp(first, option, len) && first[len] == '=') {
		words = 1;
		err = read_list(c, first + len + 1, e);
	} else if (!strcmp(first, option)) {
		if (argc == 2)
			return error__set(e, EINVAL, "--config needs a value (FILE,FILE,...)");
		words = 2;
		err = read_list(c, argv[2], e);
	} else {
		err = read_pair(c, etc, "", e);
		if (!err && home && *home)
			err = read_pair(c, home, ".", e);
	}
	if (!err)
		*ret_words = words;
	return err;
}

const struct config_entry *config__entry(const struct config *c, size_t i)
{
	return c && i < c->n_entries ? &c->entries[i] : NULL;
}

int config__blame(const struct config_entry *entry, int err, struct error *e)
{
	return error__set(e, -err, "%s:%u: %s", entry->file, entry->line, error__text(e, err));
}
