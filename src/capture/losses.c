// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/losses.h"

#include <errno.h>

void losses__count(struct losses *l, enum stack_end end)
{
	l->threads++;
	switch (end) {
	case STACK_WHOLE:
		l->whole++;
		break;
	case STACK_TRUNCATED:
		l->truncated++;
		break;
	case STACK_BROKEN:
		l->broken++;
		break;
	case STACK_GUESSED:
		l->guessed++;
		break;
	case STACK_TORN:
		l->torn++;
		break;
	case STACK_RUNNING:
		l->running++;
		break;
	}
}

int losses__none(const struct losses *l)
{
	return l->whole == l->threads && !l->missing && !l->kernel_cut;
}

int losses__describe(const struct losses *l, int all, struct strbuf *ret_text)
{
	const struct {
		size_t count;
		const char *what;
		int loss;
	} counts[] = {
		{l->truncated, "truncated (more frames than --max-frames)", 1},
		{l->broken, "broken (no unwind information, or memory that cannot be read)", 1},
		{l->guessed,
		 "guessed (by frame pointer where there is no unwind information, or ends in "
		 "address 0)",
		 1},
		{l->torn, "torn (ran while it was read)", 1},
		{l->running,
		 l->no_sampling ? "running (on a CPU, and sampling it is not permitted)"
				: "running (on a CPU throughout, never sampled there)",
		 1},
		{l->missing, "missing (there, but not met)", 1},
		{l->kernel_cut, "with kernel frames cut off", 1},
		{l->gone, "gone (ended before it was read)", 0},
		{l->retried, "read more than once", 0},
		{l->sampled, "taken on their CPU", 0},
		{l->samples_dropped, "samples dropped and taken again", 0},
	};
	const char *separator = "; ";

	if (l->snapshots > 1)
		strbuf__printf(ret_text, "%zu snapshots, ", l->snapshots);
	strbuf__printf(ret_text, "%zu thread%s, %zu whole", l->threads, l->threads == 1 ? "" : "s",
		       l->whole);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (!(all || (counts[i].loss && counts[i].count)))
			continue;
		strbuf__printf(ret_text, "%s%zu %s", separator, counts[i].count, counts[i].what);
		separator = ", ";
	}
	if (all)
		strbuf__printf(ret_text, "%s%zu listed by /proc", separator, l->listed);
	return ret_text->failed ? -ENOMEM : 0;
}
