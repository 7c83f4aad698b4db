/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output: the finished text leaves the program: all of it, or an error and nothing.
 */
#ifndef PMP_OUTPUT_H
#define PMP_OUTPUT_H

#include "base/error.h"
#include "base/strbuf.h"

/*
 * Before anything else is opened: see that descriptors 0 to 2 are taken, so that no file of ours
 * becomes the standard output of a caller that closed it. Returns 0 or -errno with `e` set.
 */
int output__prepare(struct error *e);

/*
 * Write `text` to `path`, or to standard output if it is NULL. A regular file appears, or is
 * replaced, only once it is whole on disk. Returns 0 or -errno with `e` set.
 */
int output__put(const char *path, const struct strbuf *text, struct error *e);

/* Write all of `len` bytes. Returns 0 or -errno. */
int output__write_all(int fd, const char *bytes, size_t len);

#endif
