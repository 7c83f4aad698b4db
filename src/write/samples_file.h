/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * samples_file: the file of --save-samples. It is appended to, a whole iteration at a time, and
 * what it held before counts too, as with pt-pmp.
 */
#ifndef PMP_SAMPLES_FILE_H
#define PMP_SAMPLES_FILE_H

#include "base/error.h"
#include "base/strbuf.h"

#include <stddef.h>
#include <sys/types.h>

struct samples_file;

/* Open or make it, before the capture: a file that cannot be written is found out early. `path`
 * is borrowed. NULL with errno and `e` set. */
struct samples_file *samples_file__open(const char *path, struct error *e);
void samples_file__close(struct samples_file *f);

/* The next bytes of what it held when it was opened; 0 at its end, or -errno. */
ssize_t samples_file__read(struct samples_file *f, char *buffer, size_t size);

/* Append all of `text`; a regular file that takes only a part of it is cut back to what it was.
 * Returns 0 or -errno with `e` set. */
int samples_file__append(struct samples_file *f, const struct strbuf *text, struct error *e);

#endif
