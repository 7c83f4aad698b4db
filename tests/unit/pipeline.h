/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pipeline: text in gdb's form through reader, filter, shortener, aggregate and writer, as main.c
 * wires them. For tests and fuzzers.
 */
#ifndef PMP_TEST_PIPELINE_H
#define PMP_TEST_PIPELINE_H

#include "fold/aggregate.h"
#include "read/gdb.h"
#include "write/writer.h"

#include <errno.h>
#include <stdlib.h>

struct pipeline {
	enum shorten_dialect dialect;
	size_t lines;
	const char *tids;
	size_t chunk; /* bytes fed at once, 0: all */
	int (*write)(struct strbuf *out, const struct report *report);
};

static inline int pipeline_add(const struct stack *stack, void *arg)
{
	int ret = aggregate__add(arg, stack);

	return ret < 0 ? ret : 0;
}

/* Append what is printed for the text. Returns 0 or -errno. */
static inline int pipeline_run(const struct pipeline *p, const char *text, size_t len,
			       struct strbuf *out)
{
	struct shortener *shortener = shortener__new(p->dialect);
	struct filter *filter = filter__new(p->tids, NULL);
	struct aggregate *aggregate = NULL;
	struct gdb_reader *reader = NULL;
	struct report report;
	int err = -EINVAL;

	if (!shortener || !filter)
		goto out;
	aggregate = aggregate__new(shortener, filter, p->lines);
	reader = gdb_reader__new(pipeline_add, aggregate);
	if (!aggregate || !reader)
		goto out;
	for (size_t i = 0, n = p->chunk ? p->chunk : len; i < len; i += n) {
		err = gdb_reader__feed(reader, text + i, len - i < n ? len - i : n);
		if (err)
			goto out;
	}
	err = gdb_reader__finish(reader);
	if (!err)
		err = aggregate__report(aggregate, &report);
	if (!err)
		err = p->write(out, &report);
out:
	gdb_reader__free(reader);
	aggregate__free(aggregate);
	filter__free(filter);
	shortener__free(shortener);
	return err;
}

#endif
