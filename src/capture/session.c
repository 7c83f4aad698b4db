// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/session.h"

#include "base/strbuf.h"
#include "capture/guard.h"
#include "capture/self.h"
#include "capture/snapshot.h"
#include "capture/target.h"
#include "capture/tasks.h"
#include "proc/find.h"
#include "proc/object_cache.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct process {
	pid_t pid;
	uint64_t start_ticks; /* another process may get the pid meanwhile */
	struct target *target;
	bool ended;
};

struct session {
	const struct plan *plan;
	struct tasks *tasks;
	struct snapshot *snapshot;
	struct object_cache *cache; /* processes of one command map the same files */
	struct process *processes;
	size_t n_processes;
	struct losses losses;
	struct strbuf each; /* -v: a line for each stack that is not whole */
};

struct session *session__new(const struct plan *plan, struct error *e)
{
	const struct tasks_options options = {
		.kernel_stacks = plan->kernel,
		.plain = plan->plain_iterator,
	};
	struct session *s = calloc(1, sizeof(*s));

	if (s) {
		s->plan = plan;
		s->snapshot = snapshot__new(plan->max_frames);
		s->cache = object_cache__new();
	}
	if (!s || !s->snapshot || !s->cache) {
		error__set(e, ENOMEM, "out of memory");
		session__free(s);
		errno = ENOMEM;
		return NULL;
	}
	self__set_priority(SELF_CAPTURING);
	self__allow_many_files();
	s->tasks = tasks__new(&options, e);
	if (!s->tasks) {
		int err = errno;

		session__free(s);
		errno = err;
		return NULL;
	}
	return s;
}

void session__free(struct session *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_processes; i++)
		target__free(s->processes[i].target);
	free(s->processes);
	object_cache__free(s->cache);
	snapshot__free(s->snapshot);
	tasks__free(s->tasks);
	strbuf__free(&s->each);
	free(s);
}

static bool knows(const struct session *s, pid_t pid, uint64_t start_ticks)
{
	for (size_t i = 0; i < s->n_processes; i++) {
		if (s->processes[i].pid == pid && s->processes[i].start_ticks == start_ticks)
			return true;
	}
	return false;
}

/* Add those that are not known yet. */
static int add_processes(struct session *s, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct process process = {.pid = pids[i]}, *grown;

		process.ended = find__start_time(pids[i], &process.start_ticks) != 0;
		if (knows(s, pids[i], process.start_ticks))
			continue;
		grown = reallocarray(s->processes, s->n_processes + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->processes = grown;
		process.target = target__new(pids[i], s->cache);
		if (!process.target)
			return -ENOMEM;
		s->processes[s->n_processes++] = process;
	}
	return 0;
}

/* --comm takes processes that started since, too. */
static int add_new_processes(struct session *s)
{
	pid_t *pids = NULL;
	size_t n;
	int err;

	if (!s->plan->comm)
		return 0;
	err = find__comm(s->plan->comm, &pids, &n);
	if (!err)
		err = add_processes(s, pids, n);
	free(pids);
	return err;
}

struct take {
	struct session *session;
	struct process *process;
	struct error *e;
};

/* Everything that may wait for the target's memory lock happens in here. */
static int take_guarded(void *arg)
{
	const struct take *take = arg;
	struct session *s = take->session;
	struct process *process = take->process;
	uint64_t ticks;

	if (process->ended || find__start_time(process->pid, &ticks) ||
	    ticks != process->start_ticks)
		return error__set(take->e, ESRCH, "process %d has ended", (int)process->pid);
	return snapshot__take(s->snapshot, s->tasks, process->target, &s->losses, take->e);
}

static void note_not_whole(struct session *s, const struct raw_sample *sample)
{
	static const char *const ends[] = {
		[STACK_WHOLE] = "whole",   [STACK_TRUNCATED] = "truncated",
		[STACK_BROKEN] = "broken", [STACK_GUESSED] = "guessed",
		[STACK_TORN] = "torn",	   [STACK_RUNNING] = "running",
	};

	strbuf__printf(&s->each, "bpf-pmp: process %d, thread %d, ", (int)sample->pid,
		       (int)sample->tid);
	strbuf__append_untrusted(&s->each, sample->thread_name, strlen(sample->thread_name), ' ');
	strbuf__printf(&s->each, ": %s after %zu frames", ends[sample->end], sample->n_user);
	if (sample->n_user)
		strbuf__printf(&s->each, ", at 0x%llx",
			       (unsigned long long)sample->user[sample->n_user - 1].pc);
	strbuf__append_char(&s->each, '\n');
}

static int hand_out(struct session *s, const struct session_sink *sink)
{
	const struct raw_sample *samples;
	int err = 0;
	size_t n;

	samples = snapshot__samples(s->snapshot, &n);
	/* gdb prints the youngest thread first */
	for (size_t i = n; i > 0 && !err; i--) {
		const struct raw_sample *sample = &samples[i - 1];

		if (s->plan->verbose && sample->end != STACK_WHOLE)
			note_not_whole(s, sample);
		err = sink->sample(sink->arg, sample, (unsigned int)i);
	}
	return err;
}

static int take_one(struct session *s, struct process *process, const struct session_sink *sink,
		    struct error *e)
{
	/* on the heap, for a thread that was given up still uses it */
	struct take *take = malloc(sizeof(*take));
	struct error *own = calloc(1, sizeof(*own));
	int err;

	if (!take || !own) {
		free(take);
		free(own);
		return -ENOMEM;
	}
	*take = (struct take){.session = s, .process = process, .e = own};
	s->losses.snapshots++;
	err = guard__run(take_guarded, take, s->plan->max_wait);
	if (err == -ETIMEDOUT)
		return error__set(
			e, ETIMEDOUT,
			"process %d could not be read within %g s: a thread of it keeps its memory "
			"locked, or the machine is overloaded (see --max-wait)",
			(int)process->pid, s->plan->max_wait);
	if (err)
		error__set(e, -err, "%s", error__text(own, err));
	else
		err = hand_out(s, sink);
	if (err == -ESRCH) {
		process->ended = true;
		target__free(process->target);
		process->target = NULL;
		s->losses.snapshots--;
	}
	error__clear(own);
	free(own);
	free(take);
	return err;
}

static void wait_for_next(double seconds, const volatile sig_atomic_t *interrupted)
{
	struct timespec left = {.tv_sec = (time_t)seconds};

	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (!*interrupted && nanosleep(&left, &left) && errno == EINTR)
		;
}

int session__run(struct session *s, const pid_t *pids, size_t n_pids,
		 const struct session_sink *sink, const volatile sig_atomic_t *interrupted,
		 struct error *e)
{
	int err = add_processes(s, pids, n_pids);

	for (unsigned int i = 0; i < s->plan->iterations && !err && !*interrupted; i++) {
		size_t alive = 0;

		for (size_t p = 0; p < s->n_processes && !err; p++) {
			if (s->processes[p].ended && s->plan->comm)
				continue;
			err = take_one(s, &s->processes[p], sink, e);
			if (!err)
				alive++;
			else if (err == -ESRCH && s->plan->comm)
				err = 0;
		}
		if (!err && !alive)
			err = error__set(e, ESRCH, "every process has ended");
		/* also for a part of one: what was handed out has to be in the saved samples */
		if (alive) {
			int closed = sink->iteration(sink->arg);

			err = err ? err : closed;
		}
		if (!err && i + 1 < s->plan->iterations && !*interrupted) {
			wait_for_next(s->plan->interval, interrupted);
			err = add_new_processes(s);
		}
	}
	return err;
}

const struct losses *session__losses(const struct session *s)
{
	return &s->losses;
}

void session__print_losses(const struct session *s)
{
	struct strbuf text = STRBUF_INIT;

	if (!s->plan->verbose && losses__none(&s->losses))
		return;
	if (losses__describe(&s->losses, s->plan->verbose, &text) == 0)
		fprintf(stderr, "%sbpf-pmp: %s%s\n", s->each.data ? s->each.data : "", text.data,
			s->plan->verbose ? "" : " (-v for each)");
	strbuf__free(&text);
}
