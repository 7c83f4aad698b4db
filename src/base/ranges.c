// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct range {
	size_t start, len;
	uint64_t until; /* of those that rest */
};

struct list {
	struct range *all;
	size_t n, capacity;
};

struct ranges {
	size_t used;
	struct list free;    /* ascending, none touching the next */
	struct list resting; /* in the order of being given back */
};

static int insert(struct list *l, size_t at, const struct range *range)
{
	if (l->n == l->capacity) {
		size_t capacity = l->capacity ? l->capacity * 2 : 16;
		struct range *all = reallocarray(l->all, capacity, sizeof(*all));

		if (!all)
			return -ENOMEM;
		l->all = all;
		l->capacity = capacity;
	}
	memmove(l->all + at + 1, l->all + at, (l->n - at) * sizeof(*l->all));
	l->all[at] = *range;
	l->n++;
	return 0;
}

static void drop(struct list *l, size_t at)
{
	l->n--;
	memmove(l->all + at, l->all + at + 1, (l->n - at) * sizeof(*l->all));
}

struct ranges *ranges__new(size_t size)
{
	const struct range whole = {.len = size};
	struct ranges *r = calloc(1, sizeof(*r));

	if (r && size && insert(&r->free, 0, &whole)) {
		ranges__free(r);
		errno = ENOMEM;
		return NULL;
	}
	return r;
}

void ranges__free(struct ranges *r)
{
	if (!r)
		return;
	free(r->free.all);
	free(r->resting.all);
	free(r);
}

int ranges__take(struct ranges *r, size_t len, size_t *ret_start)
{
	for (size_t i = 0; i < r->free.n; i++) {
		struct range *f = &r->free.all[i];

		if (f->len < len)
			continue;
		*ret_start = f->start;
		f->start += len;
		f->len -= len;
		if (!f->len)
			drop(&r->free, i);
		r->used += len;
		return 0;
	}
	return -ENOSPC;
}

void ranges__give_back(struct ranges *r, size_t start, size_t len, uint64_t until)
{
	const struct range range = {.start = start, .len = len, .until = until};

	if (len)
		insert(&r->resting, r->resting.n, &range);
}

/* Returns 0 or -ENOMEM, and nothing has changed. */
static int set_free(struct ranges *r, const struct range *range)
{
	struct list *l = &r->free;
	size_t at = 0;

	while (at < l->n && l->all[at].start < range->start)
		at++;
	if (at > 0 && l->all[at - 1].start + l->all[at - 1].len == range->start) {
		l->all[at - 1].len += range->len;
		if (at < l->n && l->all[at].start == range->start + range->len) {
			l->all[at - 1].len += l->all[at].len;
			drop(l, at);
		}
	} else if (at < l->n && l->all[at].start == range->start + range->len) {
		l->all[at].start = range->start;
		l->all[at].len += range->len;
	} else if (insert(l, at, range)) {
		return -ENOMEM;
	}
	r->used -= range->len;
	return 0;
}

void ranges__settle(struct ranges *r, uint64_t now)
{
	size_t i = 0;

	while (i < r->resting.n) {
		if (r->resting.all[i].until < now && !set_free(r, &r->resting.all[i]))
			drop(&r->resting, i);
		else
			i++;
	}
}

size_t ranges__used(const struct ranges *r)
{
	return r->used;
}
