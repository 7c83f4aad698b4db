/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output: the finished text leaves the program: all of it, or an error and nothing.
 */
#ifndef PMP_OUTPUT_H
#define PMP_OUTPUT_H

#include "base/error.h"
#include "base/strbuf.h"

struct output;

/*
 * Before anything else is opened: see that descriptors 0 to 2 are taken, so that no file of ours
 * becomes the standard output of a caller that closed it. Returns 0 or -errno with `e` set.
 */
int output__prepare(struct error *e);

/*
 * Get ready to write to `path`, or to standard output if it is NULL: what cannot be written is
 * found out now. NULL with errno and `e` set.
 */
struct output *output__open(const char *path, struct error *e);

/*
 * Write `text` behind what was written before. What is no regular file (a pipe, a device) is
 * written to at once, as it is. Returns 0 or -errno with `e` set.
 */
int output__append(struct output *o, const struct strbuf *text, struct error *e);

/*
 * That was all. A regular file appears, or is replaced, only now that all of it is on disk; it
 * keeps its owner and its mode, and a symbolic link goes on pointing to it. Returns 0 or -errno
 * with `e` set.
 */
int output__finish(struct output *o, struct error *e);

/* Both at once. */
int output__put(struct output *o, const struct strbuf *text, struct error *e);

void output__close(struct output *o);

/* Write all of `len` bytes, waiting where the descriptor is non-blocking. Returns 0 or -errno. */
int output__write_all(int fd, const char *bytes, size_t len);

/* Open what is not a regular file for writing, without waiting for a reader of a pipe. Returns a
 * descriptor or -errno (-ENXIO: a pipe that nobody reads). */
int output__open_special(const char *path);

#endif
