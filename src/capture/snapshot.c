// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/snapshot.h"

#include "base/clock.h"
#include "capture/listing.h"
#include "proc/find.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Records wait here until the pass is over, so that the pass is short; then they are unwound. */
#define BATCH_BYTES (16u << 20)

#define SAMPLE_PERIOD_NS 1000000 /* each CPU looks once a millisecond whom it runs */
#define ROUND_NS	 2000000
#define MAX_NS		 100000000

enum thread_state {
	THREAD_MOVED,	 /* ran while it was read, or its registers were on a CPU */
	THREAD_ON_CPU,	 /* on a CPU: nothing of it is known */
	THREAD_TO_CHECK, /* memory beyond the record was read: exact if it has not run since */
	THREAD_EXACT,
	THREAD_GONE,
};

struct thread {
	UT_hash_handle hh; /* by kernel_tid */
	uint32_t kernel_tid;
	pid_t tid;
	char name[PMP_COMM_LEN + 1];
	uint64_t thread_pointer;
	uint64_t switches;
	enum thread_state state;
	bool seen; /* in this round */
	bool wanted;
	enum stack_end end;
	size_t frames, n_frames; /* within s->frames */
	size_t kernel, n_kernel; /* within s->kernel */
};

struct snapshot {
	size_t max_frames;
	struct raw_frame *scratch; /* max_frames of them */

	struct thread *threads; /* uthash keeps the order in which they came: by tid */
	struct raw_frame *frames;
	size_t n_frames, frames_capacity;
	uint64_t *kernel;
	size_t n_kernel, kernel_capacity;
	struct raw_sample *samples;
	size_t n_samples;

	/* while it is taken */
	struct listing *listing;
	struct target *target;
	struct tasks *tasks;
	struct losses *losses;
	bool first;    /* threads that are not known yet are taken in */
	bool walk_all; /* threads come and go: the quick walk misses some */
	struct strbuf batch;
};

struct snapshot *snapshot__new(size_t max_frames)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->max_frames = max_frames;
	s->scratch = calloc(max_frames, sizeof(*s->scratch));
	if (!s->scratch) {
		free(s);
		errno = ENOMEM;
		return NULL;
	}
	return s;
}

static void forget(struct snapshot *s)
{
	struct thread *thread, *next;

	HASH_ITER (hh, s->threads, thread, next) {
		HASH_DEL(s->threads, thread);
		free(thread);
	}
	free(s->samples);
	s->samples = NULL;
	s->n_samples = s->n_frames = s->n_kernel = 0;
	strbuf__reset(&s->batch);
	listing__free(s->listing);
	s->listing = NULL;
}

void snapshot__free(struct snapshot *s)
{
	if (!s)
		return;
	forget(s);
	strbuf__free(&s->batch);
	free(s->scratch);
	free(s->frames);
	free(s->kernel);
	free(s);
}

/* Append `n` items to a growing array; returns where they begin, or -ENOMEM. */
static int64_t append(void **array, size_t *used, size_t *capacity, const void *items, size_t n,
		      size_t size)
{
	size_t at = *used, want = *capacity ? *capacity : 1024;
	void *grown;

	while (want < at + n)
		want *= 2;
	if (want != *capacity) {
		grown = reallocarray(*array, want, size);
		if (!grown)
			return -ENOMEM;
		*array = grown;
		*capacity = want;
	}
	if (n)
		memcpy((char *)*array + at * size, items, n * size);
	*used += n;
	return (int64_t)at;
}

/* Unwind a record and keep the result as the thread's stack. */
static int unwind(struct snapshot *s, struct thread *thread, const struct task_record *record)
{
	const struct pmp_task *task = record->task;
	size_t n = 0;
	bool live = false;
	int64_t at;

	/* what a record that moved holds is still the best guess, if nothing better comes */
	thread->end = target__unwind(s->target, record, s->max_frames, s->scratch, &n, &live);
	at = append((void **)&s->frames, &s->n_frames, &s->frames_capacity, s->scratch, n,
		    sizeof(*s->frames));
	if (at < 0)
		return (int)at;
	thread->frames = (size_t)at;
	thread->n_frames = n;
	at = append((void **)&s->kernel, &s->n_kernel, &s->kernel_capacity, record->kernel,
		    task->n_kernel, sizeof(*s->kernel));
	if (at < 0)
		return (int)at;
	thread->kernel = (size_t)at;
	thread->n_kernel = task->n_kernel;
	thread->switches = task->switches;
	if (task->flags & PMP_TASK_MOVED)
		thread->state = THREAD_MOVED;
	else if (!live)
		thread->state = THREAD_EXACT;
	else
		/* it runs on: what was read live is not of the sample's moment */
		thread->state = task->flags & PMP_TASK_SAMPLE ? THREAD_MOVED : THREAD_TO_CHECK;
	return 0;
}

static struct thread *find_thread(struct snapshot *s, uint32_t kernel_tid)
{
	struct thread *thread;

	HASH_FIND(hh, s->threads, &kernel_tid, sizeof(kernel_tid), thread);
	return thread;
}

static int unwind_batch(struct snapshot *s)
{
	const char *at = s->batch.data, *end = at + s->batch.len;
	int err = 0;

	while (!err && at < end) {
		const struct pmp_task *task = (const void *)at;
		struct task_record record = {.task = task};
		struct thread *thread = find_thread(s, task->kernel_tid);

		at += sizeof(*task);
		record.kernel = (const void *)at;
		at += task->n_kernel * sizeof(uint64_t);
		record.stack = (const void *)at;
		at += task->stack_len;
		if (thread)
			err = unwind(s, thread, &record);
	}
	strbuf__reset(&s->batch);
	return err;
}

static int add_to_batch(struct snapshot *s, const struct task_record *record)
{
	size_t len = sizeof(*record->task) + record->task->n_kernel * sizeof(uint64_t) +
		     record->task->stack_len;
	int err = 0;

	if (s->batch.len && s->batch.len + len > BATCH_BYTES)
		err = unwind_batch(s);
	if (err)
		return err;
	strbuf__append(&s->batch, record->task, sizeof(*record->task));
	strbuf__append(&s->batch, record->kernel, record->task->n_kernel * sizeof(uint64_t));
	strbuf__append(&s->batch, record->stack, record->task->stack_len);
	return s->batch.failed ? -ENOMEM : 0;
}

static struct thread *add_thread(struct snapshot *s, const struct pmp_task *task)
{
	struct thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->kernel_tid = task->kernel_tid;
	thread->tid = (pid_t)task->tid;
	memcpy(thread->name, task->comm, PMP_COMM_LEN);
	thread->thread_pointer = task->thread_pointer;
	HASH_ADD(hh, s->threads, kernel_tid, sizeof(thread->kernel_tid), thread);
	if (!thread->hh.tbl) {
		free(thread);
		return NULL;
	}
	listing__meet(s->listing, thread->tid);
	return thread;
}

static int take_record(const struct task_record *record, void *arg)
{
	const struct pmp_task *task = record->task;
	struct snapshot *s = arg;
	struct thread *thread = find_thread(s, task->kernel_tid);

	if (task->flags & (PMP_TASK_EXITING | PMP_TASK_NO_MEMORY)) {
		listing__meet(s->listing, (pid_t)task->tid);
		if (s->first)
			s->losses->gone++;
		else if (thread)
			thread->state = THREAD_GONE;
		return 0;
	}
	if (!thread && s->first) {
		thread = add_thread(s, task);
		if (!thread)
			return -ENOMEM;
	}
	if (!thread || thread->state == THREAD_EXACT)
		return 0;
	thread->seen = true;
	thread->switches = task->switches;
	if (task->flags & PMP_TASK_ON_CPU) {
		thread->state = THREAD_ON_CPU;
		return 0;
	}
	thread->state = THREAD_MOVED; /* until it is unwound */
	return add_to_batch(s, record);
}

static int take_sample(const struct task_record *record, void *arg)
{
	struct snapshot *s = arg;
	struct thread *thread = find_thread(s, record->task->kernel_tid);
	int err;

	if (!thread || thread->state == THREAD_EXACT || thread->state == THREAD_GONE)
		return 0;
	thread->wanted = false; /* the sampler took the mark away */
	thread->seen = true;
	err = unwind(s, thread, record);
	if (!err && thread->state == THREAD_EXACT)
		s->losses->sampled++;
	return err;
}

/* The second look at threads whose stack was read live, in part. */
static int check_record(const struct task_record *record, void *arg)
{
	const struct pmp_task *task = record->task;
	struct thread *thread = find_thread(arg, task->kernel_tid);

	if (!thread || thread->state != THREAD_TO_CHECK)
		return 0;
	if (task->switches == thread->switches &&
	    !(task->flags & (PMP_TASK_ON_CPU | PMP_TASK_MOVED | PMP_TASK_EXITING)))
		thread->state = THREAD_EXACT;
	else
		thread->state = THREAD_MOVED;
	return 0;
}

/* Threads that are not exact yet; as a side effect each is marked, and unmarked if it is. */
static size_t mark_wanted(struct snapshot *s)
{
	struct thread *thread, *next;
	size_t n = 0;

	HASH_ITER (hh, s->threads, thread, next) {
		bool want = thread->state != THREAD_EXACT && thread->state != THREAD_GONE;

		n += want;
		thread->seen = false;
		if (want && !thread->wanted)
			thread->wanted = tasks__want(s->tasks, thread->kernel_tid) == 0;
		else if (!want && thread->wanted)
			tasks__unwant(s->tasks, thread->kernel_tid);
		if (!want)
			thread->wanted = false;
	}
	return n;
}

static bool any_to_check(struct snapshot *s)
{
	struct thread *thread, *next;

	HASH_ITER (hh, s->threads, thread, next) {
		if (thread->state == THREAD_TO_CHECK)
			return true;
	}
	return false;
}

/* One pass over all threads, or the wanted ones: read, unwind, check what was read live. */
static int pass(struct snapshot *s, bool only_wanted)
{
	struct tasks_pass pass = {
		.only_wanted = only_wanted,
		.with_memory = true,
		.walk_all = s->walk_all,
	};
	pid_t pid = target__pid(s->target);
	int err = tasks__each(s->tasks, pid, &pass, take_record, s);

	if (!err)
		err = unwind_batch(s);
	pass.with_memory = false;
	if (!err && any_to_check(s))
		err = tasks__each(s->tasks, pid, &pass, check_record, s);
	return err;
}

/* A pass over all threads: whoever is met is taken in. */
static int take_in(struct snapshot *s)
{
	int err;

	s->listing = listing__new(target__pid(s->target));
	if (!s->listing)
		return -errno;
	s->losses->listed += listing__count(s->listing);
	s->first = true;
	err = pass(s, false);
	s->first = false;
	return err;
}

/* The first pass; once more, by the slow walk, if some were missed. */
static int first_pass(struct snapshot *s)
{
	struct losses before = *s->losses;
	int err = take_in(s);

	if (err || (!listing__missing(s->listing) && !listing__falls_short(s->listing)))
		return err;
	*s->losses = before;
	forget(s);
	s->walk_all = true;
	return take_in(s);
}

/* Marked, yet neither the iterator nor the sampler met it: it has ended, or the walk ended early.
 */
static void look_for_gone(struct snapshot *s)
{
	struct thread *thread, *next;

	HASH_ITER (hh, s->threads, thread, next) {
		if (!thread->wanted || thread->seen)
			continue;
		if (find__is_thread(target__pid(s->target), thread->tid))
			s->walk_all = true;
		else
			thread->state = THREAD_GONE;
	}
}

/* Read the rest again and again, for a bounded time. */
static int retry(struct snapshot *s)
{
	const struct timespec round = {.tv_nsec = ROUND_NS};
	uint64_t until = clock__ns(CLOCK_MONOTONIC) + MAX_NS;
	size_t left = mark_wanted(s);
	int err = 0;

	s->losses->retried += left;
	if (!left)
		return 0;
	/* without it, threads that do not leave their CPU stay unread, and are marked so */
	if (tasks__start_sampling(s->tasks, SAMPLE_PERIOD_NS, NULL))
		s->losses->no_sampling = true;
	while (!err && left && clock__ns(CLOCK_MONOTONIC) < until) {
		nanosleep(&round, NULL);
		err = tasks__drain_samples(s->tasks, take_sample, s);
		if (!err)
			err = pass(s, true);
		/* whom the sampler took since, the pass has not seen */
		if (!err)
			err = tasks__drain_samples(s->tasks, take_sample, s);
		if (!err) {
			look_for_gone(s);
			left = mark_wanted(s);
		}
	}
	tasks__stop_sampling(s->tasks);
	if (!err)
		err = tasks__drain_samples(s->tasks, take_sample, s);
	s->losses->samples_dropped = tasks__samples_dropped(s->tasks);
	return err;
}

/* The name of the process is its first thread's; NULL if that has left. */
static const char *process_name(const struct snapshot *s)
{
	pid_t pid = target__pid(s->target);
	struct thread *thread, *next;

	HASH_ITER (hh, s->threads, thread, next) {
		if (thread->tid == pid)
			return thread->name;
	}
	return NULL;
}

/* What was read of a thread that moved is shown, as torn; of one that ran all the time, nothing. */
static enum stack_end end_of(const struct thread *thread)
{
	if (thread->state == THREAD_EXACT)
		return thread->end;
	return thread->n_frames ? STACK_TORN : STACK_RUNNING;
}

static int make_samples(struct snapshot *s)
{
	const char *name = process_name(s);
	struct thread *thread, *next;
	size_t n = HASH_COUNT(s->threads);

	s->samples = calloc(n ? n : 1, sizeof(*s->samples));
	if (!s->samples)
		return -ENOMEM;
	HASH_ITER (hh, s->threads, thread, next) {
		enum stack_end end = end_of(thread);

		if (thread->wanted)
			tasks__unwant(s->tasks, thread->kernel_tid);
		if (thread->state == THREAD_GONE) {
			s->losses->gone++;
			continue;
		}
		losses__count(s->losses, end);
		s->losses->kernel_cut += thread->n_kernel == PMP_KERNEL_FRAMES;
		s->samples[s->n_samples++] = (struct raw_sample){
			.pid = target__pid(s->target),
			.process_name = name,
			.tid = thread->tid,
			.thread_name = thread->name,
			.thread_pointer = thread->thread_pointer,
			.kernel = s->kernel + thread->kernel,
			.n_kernel = thread->n_kernel,
			.user = s->frames + thread->frames,
			.n_user = thread->n_frames,
			.end = end,
			.count = 1,
		};
	}
	return 0;
}

/* Last, for files are opened here: what has to be done at once has been done. */
static void resolve(struct snapshot *s)
{
	struct thread *thread, *next;

	HASH_ITER (hh, s->threads, thread, next) {
		if (thread->state != THREAD_GONE)
			target__resolve(s->target, s->frames + thread->frames, thread->n_frames);
	}
}

/*
 * Most stacks cannot be read: is that because the process was being killed? Its memory goes first,
 * its threads within moments.
 */
static bool was_dying(const struct snapshot *s, const struct losses *before)
{
	const struct timespec pause = {.tv_nsec = 5000000};

	if (2 * (s->losses->broken - before->broken) <= s->n_samples)
		return false;
	for (int i = 0; i < 10; i++) {
		if (find__live_thread(target__pid(s->target)) < 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

int snapshot__take(struct snapshot *s, struct tasks *tasks, struct target *target,
		   struct losses *losses, struct error *e)
{
	struct losses before = *losses;
	int err;

	forget(s);
	s->walk_all = false;
	s->tasks = tasks;
	s->target = target;
	s->losses = losses;
	err = target__read_maps(target, e);
	if (err)
		return err;
	err = first_pass(s);
	if (!err)
		err = retry(s);
	if (!err)
		err = make_samples(s);
	if (!err)
		s->losses->missing += listing__missing(s->listing);
	if (!err && was_dying(s, &before)) {
		*losses = before;
		err = -ESRCH;
	}
	if (!err && !s->n_samples)
		err = -ESRCH;
	if (!err)
		resolve(s);
	if (err == -ESRCH)
		return error__set(e, ESRCH, "process %d ended while it was read",
				  (int)target__pid(target));
	if (err && !(e && e->text))
		return error__set(e, -err, "cannot read the threads of process %d: %s",
				  (int)target__pid(target), strerror(-err));
	return err;
}

const struct raw_sample *snapshot__samples(const struct snapshot *s, size_t *ret_n)
{
	*ret_n = s->n_samples;
	return s->samples;
}
