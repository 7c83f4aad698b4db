/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * config: pt-pmp's option files, as a list of options that are applied before the command line's,
 * so that the command line wins. The entries and their strings are owned by the config, so a plan
 * made from them must not outlive it.
 *
 * A line is `option=value`, `option value` or a bare `option`, by long name or letter, with or
 * without dashes. `#` at its start or after a blank begins a comment. `--` ends the options: the
 * lines after it, up to the end of the file, are arguments. As in pt-pmp a backslash takes the
 * next character as it is and joins a line that it ends with the next, and NUL bytes are dropped.
 * CR LF, a byte order mark and a missing final newline do no harm.
 */
#ifndef PMP_CONFIG_H
#define PMP_CONFIG_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct config;

struct config_entry {
	const char *name;  /* an option, without dashes; NULL: an argument */
	const char *value; /* of the option, NULL: it has none; else the argument */
	const char *file;
	unsigned int line; /* from 1 */
	bool shared;	   /* the file serves all tools: an unknown option is to be skipped */
};

/* Returns NULL with errno set. */
struct config *config__new(void);
void config__free(struct config *c);

/*
 * Append what `text`, the contents of `file`, says. version-check, which all of Percona's tools
 * take and ignore here, is left out. Returns 0 or -ENOMEM.
 */
int config__parse(struct config *c, const char *file, bool shared, const char *text, size_t len);

/*
 * Append what a file says; what is no regular file is passed over, as in pt-pmp, and so is a
 * `shared` one that may not be read. Never blocks on a FIFO. Returns 0, or -errno with `e` set:
 * -EACCES and the like, or -EFBIG over 1 MiB.
 */
int config__read(struct config *c, const char *path, bool shared, struct error *e);

/*
 * Append the files that apply: those of `--config A,B` if that is the first option, else
 * percona-toolkit.conf and pt-pmp.conf in the folder `etc`, and the two of the same names, with a
 * dot before them, in `home` (NULL or empty: none). *ret_words is how many words of argv, from
 * argv[1] on, --config took: 0 to 2. Returns 0, or -errno with `e` set.
 */
int config__load(struct config *c, int argc, char *const argv[], const char *etc, const char *home,
		 int *ret_words, struct error *e);

/* The i-th entry, in the order in which they apply; NULL: there are no more. */
const struct config_entry *config__entry(const struct config *c, size_t i);

/* Put `FILE:LINE: ` before the reason in `e`. `err` is a negative errno, which is returned. */
int config__blame(const struct config_entry *entry, int err, struct error *e);

#endif
