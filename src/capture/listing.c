// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/listing.h"

#include "proc/find.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct listed {
	pid_t tid;
	bool met;
};

struct listing {
	pid_t pid;
	struct listed *threads; /* by tid */
	size_t n;
	size_t n_met; /* listed or not */
};

static int compare(const void *a, const void *b)
{
	pid_t x = ((const struct listed *)a)->tid, y = ((const struct listed *)b)->tid;

	return (x > y) - (x < y);
}

struct listing *listing__new(pid_t pid)
{
	struct listing *l = calloc(1, sizeof(*l));
	pid_t *tids = NULL;
	int err = l ? find__threads(pid, &tids, &l->n) : -ENOMEM;

	if (!err) {
		l->pid = pid;
		l->threads = calloc(l->n ? l->n : 1, sizeof(*l->threads));
		if (!l->threads)
			err = -ENOMEM;
	}
	if (err) {
		listing__free(l);
		l = NULL;
	} else {
		for (size_t i = 0; i < l->n; i++)
			l->threads[i].tid = tids[i];
		qsort(l->threads, l->n, sizeof(*l->threads), compare);
	}
	free(tids);
	errno = -err;
	return l;
}

void listing__free(struct listing *l)
{
	if (!l)
		return;
	free(l->threads);
	free(l);
}

size_t listing__count(const struct listing *l)
{
	return l->n;
}

void listing__meet(struct listing *l, pid_t tid)
{
	const struct listed key = {.tid = tid};
	struct listed *listed = bsearch(&key, l->threads, l->n, sizeof(key), compare);

	if (listed)
		listed->met = true;
	l->n_met++;
}

size_t listing__missing(const struct listing *l)
{
	size_t missing = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!l->threads[i].met)
			missing += find__is_thread(l->pid, l->threads[i].tid);
	}
	return missing;
}

bool listing__falls_short(const struct listing *l)
{
	pid_t *tids = NULL;
	size_t now = 0;

	if (l->n_met * 10 >= l->n * 9)
		return false;
	if (find__threads(l->pid, &tids, &now))
		return false; /* it has ended */
	free(tids);
	return l->n_met * 10 < now * 9;
}
