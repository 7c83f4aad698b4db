// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/profile.h"

#include "base/clock.h"
#include "capture/processes.h"
#include "capture/profile_losses.h"
#include "capture/sampler.h"
#include "capture/self.h"
#include "capture/stacks.h"
#include "capture/unwind_maps.h"
#include "capture/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS     1000000ull
#define SECOND 1000000000ull

/* How long news may lie in the ring buffer unread: unless it fills up, nobody is woken for them. */
#define POLL_MS	  200
#define FOLLOW_NS SECOND /* CPUs that come and go */
#define SHOW_NS	  SECOND
#define ENDED_NS  (10 * SECOND) /* processes whose end nobody told us of */

/* Unwind tables of what is loaded during the run: 2 MiB, and 16 where any process may start. */
#define SPARE_ROWS	(256u << 10)
#define SPARE_ROWS_MANY (2u << 20)

struct profile {
	const struct plan *plan;
	const struct profile_sink *sink;
	struct unwind_maps *maps;
	struct processes *processes;
	struct stacks *stacks;
	struct sampler *sampler;
	struct waits *waits;
	uint64_t epoch; /* ns since the epoch when CLOCK_MONOTONIC was 0 */
	uint64_t begin, end;
	struct profile_losses losses;
};

/* A wait may go on for longer than its generation: its id stays. */
static bool forget_id(void *arg, uint64_t id)
{
	struct profile *p = arg;

	if (p->waits && waits__refer_to(p->waits, id))
		return false;
	if (p->sampler)
		sampler__forget(p->sampler, id);
	return true;
}

static void forget_generation(void *arg, uint32_t generation)
{
	struct profile *p = arg;

	if (p->waits)
		waits__note_ids(p->waits);
	stacks__forget(p->stacks, generation, forget_id, p);
}

struct profile *profile__new(const struct plan *plan)
{
	const struct stacks_options stacks_options = {.by_process = plan->by_process};
	struct profile *p = calloc(1, sizeof(*p));
	struct processes_options options = {
		.comm = plan->comm,
		.max_wait = plan->max_wait,
		.forget = forget_generation,
		.arg = p,
	};

	if (!p)
		return NULL;
	p->plan = plan;
	p->maps = unwind_maps__new(plan->unwind == PLAN_UNWIND_EH_FRAME,
				   plan->all || plan->comm ? SPARE_ROWS_MANY : SPARE_ROWS);
	if (p->maps)
		p->processes = processes__new(p->maps, &options);
	if (p->processes)
		p->stacks = stacks__new(p->processes, &stacks_options);
	if (p->stacks)
		return p;
	profile__free(p);
	errno = ENOMEM;
	return NULL;
}

void profile__free(struct profile *p)
{
	if (!p)
		return;
	waits__free(p->waits);
	/* frames hold objects, and objects their places in the maps */
	stacks__free(p->stacks);
	processes__free(p->processes);
	sampler__free(p->sampler);
	unwind_maps__free(p->maps);
	free(p);
}

static int add_thread(struct profile *p, const struct pmp_thread_event *event, size_t size)
{
	struct raw_sample thread = {.pid = (pid_t)event->event.pid, .end = STACK_WHOLE};
	char name[PMP_COMM_LEN + 1] = "";
	int err = stacks__add_thread(p->stacks, event, size);

	if (err)
		return err;
	memcpy(name, event->comm, sizeof(event->comm));
	thread.tid = (pid_t)event->tid;
	thread.thread_name = name;
	if (!p->sink->wants(p->sink->arg, &thread))
		sampler__ignore_thread(p->sampler, event->id);
	return 0;
}

static int hand_out_tick(struct profile *p, const struct pmp_sample_event *event, size_t size)
{
	const struct pmp_count one = {.n = 1};
	struct profile_tick tick;
	struct raw_sample sample;
	char comm[PMP_COMM_LEN + 1] = "";
	struct raw_sample thread = {.thread_name = comm, .end = STACK_WHOLE};
	int err;

	if (size < sizeof(*event))
		return -EBADMSG;
	memcpy(comm, event->comm, sizeof(event->comm));
	/* taken before the kernel knew that its thread is not wanted */
	thread.pid = (pid_t)event->event.pid;
	thread.tid = (pid_t)event->tid;
	if (p->plan->tids && !p->sink->wants(p->sink->arg, &thread))
		return 0;
	err = stacks__count(p->stacks, &event->key, &one);
	if (!err)
		err = stacks__sample(p->stacks, &event->key, &sample);
	if (err)
		return err == -ENOENT ? 0 : err;
	tick = (struct profile_tick){
		.time = p->epoch + event->event.time,
		.cpu = event->cpu,
		.comm = comm,
		.pid = (pid_t)event->event.pid,
		.tid = (pid_t)event->tid,
	};
	sample.pid = tick.pid;
	sample.tid = tick.tid;
	sample.thread_name = comm;
	return p->sink->tick(p->sink->arg, &tick, &sample);
}

static int on_record(void *arg, const struct pmp_event *event, size_t size)
{
	struct profile *p = arg;

	switch (event->type) {
	case PMP_EVENT_USER_STACK:
	case PMP_EVENT_KERNEL_STACK:
		return stacks__add_stack(p->stacks, (const void *)event, size);
	case PMP_EVENT_THREAD:
		return add_thread(p, (const void *)event, size);
	case PMP_EVENT_SAMPLE:
		return hand_out_tick(p, (const void *)event, size);
	case PMP_EVENT_LOOK:
	case PMP_EVENT_FORK:
	case PMP_EVENT_EXEC:
	case PMP_EVENT_EXIT:
		return processes__news(p->processes, event);
	}
	return -EBADMSG;
}

static int on_count(void *arg, const struct pmp_count_key *key, const struct pmp_count *count)
{
	struct profile *p = arg;

	return stacks__count(p->stacks, key, count);
}

static int add_processes(struct profile *p, const pid_t *pids, size_t n, struct error *e)
{
	bool pick = p->plan->all || p->plan->comm;

	for (size_t i = 0; i < n; i++) {
		int err = processes__add(p->processes, pids[i]);

		if (err == -ENOMEM)
			return err;
		if (!err || pick)
			continue;
		if (err == -ETIMEDOUT)
			return error__set(
				e, ETIMEDOUT,
				"process %d could not be read within %g s: a thread of it "
				"keeps its memory locked, or the machine is overloaded "
				"(see --max-wait)",
				(int)pids[i], p->plan->max_wait);
		if (err == -EACCES || err == -EPERM)
			return error__set(e, EPERM,
					  "not permitted to read process %d: needs CAP_SYS_PTRACE "
					  "(or root); see --check",
					  (int)pids[i]);
		return error__set(e, -err, "cannot read process %d: %s", (int)pids[i],
				  err == -ESRCH ? "it has ended" : strerror(-err));
	}
	return 0;
}

static int start(struct profile *p, const pid_t *pids, size_t n, struct error *e)
{
	const struct sampler_sink sink = {.record = on_record, .count = on_count, .arg = p};
	int err;

	p->sampler = sampler__new(p->plan, p->maps, &sink, e);
	if (!p->sampler)
		return -errno;
	err = processes__load(p->processes, sampler__processes_fd(p->sampler));
	if (!err)
		err = sampler__follow_processes(p->sampler, e);
	/* those that had ended by then */
	if (!err)
		processes__drop_ended(p->processes);
	p->begin = clock__ns(CLOCK_MONOTONIC);
	if (!err)
		err = sampler__start(p->sampler, e);
	if (err || p->plan->mode != PLAN_MODE_OFFCPU)
		return err;
	p->waits = waits__new(p->plan, p->processes, p->stacks, sampler__waits_fd(p->sampler), e);
	if (!p->waits)
		return -errno;
	for (size_t i = 0; i < n && !err; i++)
		err = waits__find_begun(p->waits, pids[i], e);
	p->begin = clock__ns(CLOCK_MONOTONIC);
	sampler__begin(p->sampler, p->begin);
	return err;
}

static void show_progress(struct profile *p, uint64_t now, uint64_t until)
{
	struct profile_progress progress = {.left = (double)(until - now) / 1e9};
	struct pmp_stats stats;

	if (!p->sink->progress || sampler__stats(p->sampler, &stats))
		return;
	progress.samples = stats.samples;
	progress.lost = stats.unsent + stats.uncounted;
	p->sink->progress(p->sink->progress_arg, &progress);
}

static int loop(struct profile *p, const volatile sig_atomic_t *interrupted)
{
	const uint64_t until = p->begin + (uint64_t)(p->plan->duration * 1e9);
	uint64_t now = p->begin, follow_at = now + FOLLOW_NS, show_at = now + SHOW_NS;
	uint64_t ended_at = now + ENDED_NS;
	bool may_start = p->plan->all || p->plan->comm;
	int err = 0;

	while (!err && !*interrupted) {
		uint64_t left;

		now = clock__ns(CLOCK_MONOTONIC);
		if (now >= until)
			break;
		if (!may_start && !processes__alive(p->processes)) {
			p->losses.ended_after = (double)(now - p->begin) / 1e9;
			break;
		}
		left = (until - now + MS - 1) / MS;
		err = sampler__poll(p->sampler, left < POLL_MS ? (int)left : POLL_MS);
		now = clock__ns(CLOCK_MONOTONIC);
		if (!err)
			err = sampler__drain_counts(p->sampler, now);
		if (!err)
			err = processes__tick(p->processes, now, sampler__settled(p->sampler));
		if (!err && now >= follow_at) {
			err = sampler__follow_cpus(p->sampler);
			follow_at = now + FOLLOW_NS;
		}
		if (now >= ended_at) {
			processes__drop_ended(p->processes);
			ended_at = now + ENDED_NS;
		}
		if (now >= show_at && now < until) {
			show_progress(p, now, until);
			show_at = now + SHOW_NS;
		}
	}
	return err;
}

static int finish(struct profile *p)
{
	int err;

	/* what ends while we detach, which takes a while, is no longer open, nor counted by us */
	p->end = clock__ns(CLOCK_MONOTONIC);
	sampler__stop(p->sampler);
	err = sampler__drain_all(p->sampler);
	if (!err && p->waits)
		err = waits__count_open(p->waits, p->begin, p->end);
	return err;
}

static int hand_out_stack(const struct raw_sample *sample, bool runnable, void *arg)
{
	struct profile *p = arg;
	struct raw_sample copy = *sample;

	copy.preempted = runnable;
	return p->sink->stack(p->sink->arg, &copy);
}

int profile__run(struct profile *p, const pid_t *pids, size_t n_pids,
		 const struct profile_sink *sink, const volatile sig_atomic_t *interrupted,
		 struct error *e)
{
	int err;

	p->sink = sink;
	p->epoch = clock__ns(CLOCK_REALTIME) - clock__ns(CLOCK_MONOTONIC);
	self__allow_many_files();
	self__set_priority(SELF_STARTING);
	err = add_processes(p, pids, n_pids, e);
	if (!err)
		err = start(p, pids, n_pids, e);
	self__set_priority(SELF_CAPTURING);
	if (!err) {
		err = loop(p, interrupted);
		if (!err)
			err = finish(p);
	}
	/* names can wait */
	self__set_priority(SELF_AS_STARTED);
	if (err && !(e && e->text))
		error__set(e, -err, "the capture failed: %s",
			   err == -EBADMSG ? "the kernel handed over a record that makes no sense"
					   : strerror(-err));
	return err;
}

int profile__each(struct profile *p)
{
	bool times = p->plan->mode == PLAN_MODE_OFFCPU;

	if (p->plan->format == PLAN_FORMAT_SAMPLES)
		return 0;
	return stacks__each(p->stacks, times, hand_out_stack, p);
}

int profile__describe(struct profile *p, struct strbuf *ret_text)
{
	struct profile_losses *l = &p->losses;

	if (sampler__stats(p->sampler, &l->stats))
		return -EIO;
	l->mode = p->plan->mode;
	l->seconds = (double)(p->end - p->begin) / 1e9;
	l->fell_back = sampler__by_frame_pointers(p->sampler) &&
		       p->plan->unwind == PLAN_UNWIND_EH_FRAME;
	l->expected_known = sampler__expected(p->sampler, &l->expected, &l->expected_idle);
	l->stacks = *stacks__totals(p->stacks);
	l->processes = *processes__losses(p->processes);
	l->tables_left_out = unwind_maps__left_out(p->maps);
	if (p->waits)
		l->waits = *waits__totals(p->waits);
	return profile_losses__describe(l, p->plan->verbose, ret_text);
}
