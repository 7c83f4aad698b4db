// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/profile_losses.h"

#include <errno.h>

struct cause {
	uint64_t n;
	const char *what;
};

/* With `all` a line each, else those that there are, behind what was said before. */
static void append_causes(struct strbuf *out, const struct cause *causes, size_t n, bool all)
{
	const char *separator = "; ";

	if (all)
		strbuf__append_char(out, '\n');
	for (size_t i = 0; i < n; i++) {
		if (all) {
			strbuf__printf(out, "bpf-pmp: %9llu %s\n", (unsigned long long)causes[i].n,
				       causes[i].what);
		} else if (causes[i].n) {
			strbuf__printf(out, "%s%llu %s", separator, (unsigned long long)causes[i].n,
				       causes[i].what);
			separator = ", ";
		}
	}
	if (!all)
		strbuf__append_char(out, '\n');
}

static uint64_t whole(const struct profile_losses *l)
{
	return l->stacks.by_status[PMP_STATUS_WHOLE] + l->stacks.kernel_only;
}

static uint64_t lost(const struct profile_losses *l)
{
	return l->stats.unsent + l->stats.uncounted + l->stacks.unnamed + l->stats.waits_full +
	       l->stats.unbegun;
}

/*
 * Ticks of a CPU at work that did not come. A tick more or less per CPU is where the measurement
 * was cut, and the clocks that it is made with are not that exact.
 */
static uint64_t ticks_missed(const struct profile_losses *l)
{
	uint64_t expected = l->expected - l->expected_idle, taken = l->stats.ticks - l->stats.idle;
	uint64_t slack = l->expected / 100 + 4, missed;

	if (!l->expected_known || taken + slack >= expected || l->stats.ticks >= l->expected)
		return 0;
	/* how many of them were idle may not be known, or not exactly; but no more than all */
	missed = l->expected - l->stats.ticks;
	if (missed <= slack)
		return 0;
	return missed < expected - taken ? missed : expected - taken;
}

static void append_stacks(struct strbuf *out, const struct profile_losses *l, bool all)
{
	const uint64_t *by = l->stacks.by_status;
	const struct cause causes[] = {
		{by[PMP_STATUS_TRUNCATED], "truncated (more frames than --max-frames, or 512)"},
		{by[PMP_STATUS_GUESSED], "guessed (by frame pointer where there is no unwind "
					 "information, or over a return address that is 0 "
					 "or follows no call)"},
		{l->stacks.reached, "guessed (by frame pointers: callers may be missing)"},
		{by[PMP_STATUS_FRAME_POINTERS] - l->stacks.reached,
		 "broken (by frame pointers: ends before the thread's start)"},
		{by[PMP_STATUS_NO_CFI], "broken (no unwind information, no frame pointer)"},
		{by[PMP_STATUS_UNSUPPORTED], "broken (unwind information too complex)"},
		{by[PMP_STATUS_UNREADABLE], "broken (stack memory that is not there)"},
		{by[PMP_STATUS_IMPLAUSIBLE], "broken (makes no sense)"},
		{by[PMP_STATUS_NO_MAPPING], "broken (led to where no code is known)"},
		{by[PMP_STATUS_STALE], "broken (code replaced just before)"},
		{by[PMP_STATUS_UNKNOWN_PROCESS],
		 "broken (process not read: too new, or not permitted)"},
		{l->stacks.frameless,
		 "broken (no user stack: a thread that ends, or the kernel's)"},
		{by[PMP_STATUS_NOT_64_BIT], "broken (not 64-bit code)"},
		{l->stacks.kernel_cut, "with kernel frames cut off"},
		{l->stats.unsent, "lost (no room to send their stack)"},
		{l->stats.uncounted, "lost (no room to count them)"},
		{l->stacks.unnamed, "lost (their stack did not come)"},
		{l->stats.waits_full, "lost (too many threads wait)"},
		{l->stats.unbegun, "lost (begin not known)"},
		{ticks_missed(l), "ticks did not come (the machine is overloaded, or throttles)"},
	};
	uint64_t n = l->stacks.n + lost(l);
	const char *what = l->mode == PLAN_MODE_OFFCPU ? "wait" : "sample";

	strbuf__printf(out, "bpf-pmp: %llu %s%s, %llu complete (%.2f%%)", (unsigned long long)n,
		       what, n == 1 ? "" : "s", (unsigned long long)whole(l),
		       n ? 100.0 * (double)whole(l) / (double)n : 100.0);
	if (all)
		strbuf__printf(out, "; %zu different stacks, in %.3f s", l->stacks.distinct,
			       l->seconds);
	append_causes(out, causes, sizeof(causes) / sizeof(causes[0]), all);
}

static void append_ticks(struct strbuf *out, const struct profile_losses *l)
{
	strbuf__printf(out, "bpf-pmp: %llu ticks on all CPUs", (unsigned long long)l->stats.ticks);
	if (l->expected_known)
		strbuf__printf(out, " (%llu expected)", (unsigned long long)l->expected);
	strbuf__printf(out, ", %llu of them idle", (unsigned long long)l->stats.idle);
	if (l->expected_known)
		strbuf__printf(out, " (%llu expected)", (unsigned long long)l->expected_idle);
	strbuf__printf(out, ", %llu in what is sampled\n", (unsigned long long)l->stats.samples);
}

static void append_waits(struct strbuf *out, const struct profile_losses *l)
{
	strbuf__printf(out,
		       "bpf-pmp: %llu waits had begun before; %llu were open at the end (%.6f s), "
		       "%llu of them throughout; %.6f s runnable but preempted%s\n",
		       (unsigned long long)l->waits.found, (unsigned long long)l->waits.open,
		       (double)l->waits.open_ns / 1e9, (unsigned long long)l->waits.throughout,
		       (double)(l->stats.preempted_ns + l->waits.preempted_ns) / 1e9,
		       " (see --state)");
}

static void append_processes(struct strbuf *out, const struct profile_losses *l, bool all)
{
	const struct {
		uint64_t n;
		const char *what;
		bool loss;
	} causes[] = {
		/* their samples are broken ones: that has been said */
		{l->processes.unreadable, "processes could not be read", false},
		{l->processes.stuck, "times a process kept its memory locked", false},
		{l->waits.stuck,
		 "processes kept their memory locked: what they waited for before is not known",
		 true},
		{l->processes.no_room, "states of mappings found no room", true},
		{l->tables_left_out, "unwind tables found no room", true},
		{l->stats.asks_lost, "news of processes were lost", true},
	};

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (all || (causes[i].n && causes[i].loss))
			strbuf__printf(out, "bpf-pmp: %llu %s\n", (unsigned long long)causes[i].n,
				       causes[i].what);
	}
}

int profile_losses__describe(const struct profile_losses *l, bool all, struct strbuf *ret_text)
{
	bool is_whole = whole(l) == l->stacks.n && !lost(l) && !ticks_missed(l) &&
			!l->stacks.kernel_cut;

	if (l->fell_back)
		strbuf__append_str(ret_text,
				   "bpf-pmp: this kernel did not take the programs that unwind by "
				   ".eh_frame (they need 5.17): stacks are walked by frame "
				   "pointers, and may lack callers\n");
	if (l->ended_after > 0)
		strbuf__printf(
			ret_text,
			"bpf-pmp: every process had ended after %.1f s; what was taken until "
			"then is printed\n",
			l->ended_after);
	if (all || !is_whole)
		append_stacks(ret_text, l, all);
	if (all && l->mode == PLAN_MODE_CPU)
		append_ticks(ret_text, l);
	if (all && l->mode == PLAN_MODE_OFFCPU)
		append_waits(ret_text, l);
	append_processes(ret_text, l, all);
	return ret_text->failed ? -ENOMEM : 0;
}
