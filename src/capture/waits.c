// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/waits.h"

#include "capture/guard.h"
#include "capture/snapshot.h"
#include "capture/target.h"
#include "capture/tasks.h"
#include "proc/object_cache.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As many waits as there may be, some times over. */
#define MAX_STEPS (256u << 10)

/* A thread as the iterator has it. */
struct state {
	uint32_t kernel_tid;
	pid_t tid;
	uint64_t switches;
	uint32_t state; /* as the kernel has it; 0: runnable */
	bool blocked;
};

struct states {
	struct state *all;
	size_t n, capacity;
};

struct waits {
	const struct plan *plan;
	const struct processes *processes;
	struct stacks *stacks;
	int fd;
	struct tasks *tasks;
	struct snapshot *snapshot;
	struct object_cache *cache;
	uint64_t last_id;
	struct waits_totals totals;
	uint64_t *ids; /* of the open waits when they were last noted, ascending */
	size_t n_ids, capacity;
	bool ids_known;
	struct {
		struct pmp_stack_event event;
		uint64_t frames[PMP_USER_FRAMES];
	} record;
};

/* What a snapshot is taken with: by a thread of its own, which may have to wait for the process'
 * memory lock. */
struct take {
	struct snapshot *snapshot;
	struct tasks *tasks;
	struct target *target;
	struct losses losses;
	struct error e;
};

static int make_tools(struct waits *w, struct error *e)
{
	const struct tasks_options options = {
		.kernel_stacks = w->plan->kernel,
		.plain = w->plan->plain_iterator,
	};

	w->snapshot = snapshot__new(PMP_USER_FRAMES);
	w->cache = object_cache__new();
	if (!w->snapshot || !w->cache)
		return error__set(e, ENOMEM, "out of memory");
	w->tasks = tasks__new(&options, e);
	return w->tasks ? 0 : -errno;
}

struct waits *waits__new(const struct plan *plan, const struct processes *processes,
			 struct stacks *stacks, int waits_fd, struct error *e)
{
	struct waits *w = calloc(1, sizeof(*w));
	int err;

	if (!w) {
		error__set(e, ENOMEM, "out of memory");
		return NULL;
	}
	w->plan = plan;
	w->processes = processes;
	w->stacks = stacks;
	w->fd = waits_fd;
	err = make_tools(w, e);
	if (!err)
		return w;
	waits__free(w);
	errno = -err;
	return NULL;
}

void waits__free(struct waits *w)
{
	if (!w)
		return;
	snapshot__free(w->snapshot);
	tasks__free(w->tasks);
	object_cache__free(w->cache);
	free(w->ids);
	free(w);
}

static int add_state(const struct task_record *record, void *arg)
{
	const struct pmp_task *task = record->task;
	struct states *s = arg;

	if (s->n == s->capacity) {
		size_t capacity = s->capacity ? s->capacity * 2 : 256;
		struct state *all = reallocarray(s->all, capacity, sizeof(*all));

		if (!all)
			return -ENOMEM;
		s->all = all;
		s->capacity = capacity;
	}
	s->all[s->n++] = (struct state){
		.kernel_tid = task->kernel_tid,
		.tid = (pid_t)task->tid,
		.switches = task->switches,
		.state = task->state,
		.blocked = task->state && !(task->flags & (PMP_TASK_ON_CPU | PMP_TASK_EXITING |
							   PMP_TASK_NO_MEMORY)),
	};
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct state *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int read_states(struct waits *w, pid_t pid, struct states *ret_states)
{
	const struct tasks_pass pass = {.walk_all = true};
	int err;

	ret_states->n = 0;
	err = tasks__each(w->tasks, pid, &pass, add_state, ret_states);
	if (!err && ret_states->n)
		qsort(ret_states->all, ret_states->n, sizeof(*ret_states->all), by_tid);
	return err;
}

static const struct state *find_state(const struct states *s, pid_t tid)
{
	const struct state key = {.tid = tid};

	return s->n ? bsearch(&key, s->all, s->n, sizeof(*s->all), by_tid) : NULL;
}

/* Ids that the kernel does not make: it knows nothing of these stacks. */
static uint64_t next_id(struct waits *w)
{
	return ++w->last_id;
}

static enum pmp_status status_of(enum stack_end end)
{
	switch (end) {
	case STACK_WHOLE:
		return PMP_STATUS_WHOLE;
	case STACK_TRUNCATED:
		return PMP_STATUS_TRUNCATED;
	case STACK_GUESSED:
		return PMP_STATUS_GUESSED;
	default:
		return PMP_STATUS_NO_CFI;
	}
}

/*
 * Names come from what `processes` read, the stack from what was read now. Where the two are not
 * of the same mind, the frame would be called something else, or nothing.
 */
static bool has_names(const struct waits *w, uint32_t generation, const struct raw_frame *f)
{
	struct code_place place;

	return !f->object || (!processes__find_code(w->processes, generation,
						    f->exact ? f->pc : f->pc - 1, &place) &&
			      place.object && place.bias == f->bias);
}

static int add_user_stack(struct waits *w, const struct raw_sample *sample, uint64_t *ret_id)
{
	struct pmp_stack_event *event = &w->record.event;
	size_t n = sample->n_user < PMP_USER_FRAMES ? sample->n_user : PMP_USER_FRAMES;

	*event = (struct pmp_stack_event){
		.event = {.type = PMP_EVENT_USER_STACK,
			  .pid = (uint32_t)sample->pid,
			  .generation = processes__generation(w->processes, sample->pid)},
		.id = next_id(w),
		.status = status_of(sample->end),
		.n = (uint32_t)n,
	};
	if (!event->event.generation) {
		event->status = PMP_STATUS_UNKNOWN_PROCESS;
		event->n = 0;
	}
	for (size_t i = 0; i < event->n; i++) {
		const struct raw_frame *f = &sample->user[i];

		if (!has_names(w, event->event.generation, f)) {
			event->status = PMP_STATUS_STALE;
			event->n = (uint32_t)i;
			break;
		}
		w->record.frames[i] = (f->pc & PMP_FRAME_PC) | (f->exact ? PMP_FRAME_EXACT : 0) |
				      (f->signal ? PMP_FRAME_SIGNAL : 0);
	}
	*ret_id = event->id;
	return stacks__add_stack(w->stacks, event, sizeof(*event) + event->n * sizeof(uint64_t));
}

static int add_kernel_stack(struct waits *w, const struct raw_sample *sample, uint64_t *ret_id)
{
	struct pmp_stack_event *event = &w->record.event;

	if (!sample->n_kernel || sample->n_kernel > PMP_KERNEL_FRAMES)
		return 0;
	*event = (struct pmp_stack_event){
		.event = {.type = PMP_EVENT_KERNEL_STACK},
		.id = next_id(w),
		.status = sample->n_kernel == PMP_KERNEL_FRAMES,
		.n = (uint32_t)sample->n_kernel,
	};
	memcpy(w->record.frames, sample->kernel, sample->n_kernel * sizeof(uint64_t));
	*ret_id = event->id;
	return stacks__add_stack(w->stacks, event,
				 sizeof(*event) + sample->n_kernel * sizeof(uint64_t));
}

static int add_thread(struct waits *w, const struct raw_sample *sample, uint64_t *ret_id)
{
	struct pmp_thread_event event = {
		.event = {.type = PMP_EVENT_THREAD, .pid = (uint32_t)sample->pid},
		.id = next_id(w),
		.tid = (uint32_t)sample->tid,
	};

	strncpy(event.comm, sample->thread_name, sizeof(event.comm) - 1);
	*ret_id = event.id;
	return stacks__add_thread(w->stacks, &event, sizeof(event));
}

static int put_wait(struct waits *w, const struct raw_sample *sample, const struct state *state)
{
	struct pmp_wait wait = {
		.key = {.pid = (uint32_t)sample->pid},
		.switches = state->switches,
		.from_before = 1,
	};
	int err = add_user_stack(w, sample, &wait.key.user);

	if (!err)
		err = add_kernel_stack(w, sample, &wait.key.kernel);
	if (!err && w->plan->tids)
		err = add_thread(w, sample, &wait.key.thread);
	if (err)
		return err;
	/* it may have begun a new wait since, which the kernel has put there */
	err = bpf_map_update_elem(w->fd, &state->kernel_tid, &wait, BPF_NOEXIST);
	if (!err)
		w->totals.found++;
	return err && err != -EEXIST ? err : 0;
}

/* Whether the wait that was put there began before, and nothing has happened to it. */
static bool still_waits(const struct states *after, const struct state *before)
{
	const struct state *now = find_state(after, before->tid);

	return now && now->blocked && now->kernel_tid == before->kernel_tid &&
	       now->switches == before->switches;
}

static int drop_if_over(struct waits *w, const struct state *before, const struct states *after)
{
	struct pmp_wait wait;

	if (still_waits(after, before) || bpf_map_lookup_elem(w->fd, &before->kernel_tid, &wait) ||
	    !wait.from_before)
		return 0;
	w->totals.found--;
	if (bpf_map_delete_elem(w->fd, &before->kernel_tid) && errno != ENOENT)
		return -errno;
	return 0;
}

#define TASK_INTERRUPTIBLE 1

static bool is_counted(const struct waits *w, const struct state *state)
{
	return w->plan->states & (state->state & TASK_INTERRUPTIBLE ? PLAN_STATE_INTERRUPTIBLE
								    : PLAN_STATE_UNINTERRUPTIBLE);
}

static int run_take(void *arg)
{
	struct take *t = arg;

	return snapshot__take(t->snapshot, t->tasks, t->target, &t->losses, &t->e);
}

/* -ETIMEDOUT: what it was taken with is in use still, and stays; there is new. */
static int take_snapshot(struct waits *w, struct target **target, struct error *e)
{
	struct take *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->snapshot = w->snapshot;
	t->tasks = w->tasks;
	t->target = *target;
	err = guard__run(run_take, t, w->plan->max_wait);
	if (err == -ETIMEDOUT) {
		*target = NULL;
		w->snapshot = NULL;
		w->tasks = NULL;
		w->cache = NULL;
		return make_tools(w, e) ?: err;
	}
	if (err && err != -ESRCH && err != -EPERM && t->e.text)
		error__set(e, -err, "%s", t->e.text);
	error__clear(&t->e);
	free(t);
	return err;
}

int waits__find_begun(struct waits *w, pid_t pid, struct error *e)
{
	struct target *target = target__new(pid, w->cache);
	struct states before = {.n = 0}, after = {.n = 0};
	const struct raw_sample *samples;
	size_t n;
	int err = target ? 0 : -ENOMEM;

	if (!err)
		err = read_states(w, pid, &before);
	if (!err)
		err = take_snapshot(w, &target, e);
	if (err == -ETIMEDOUT)
		w->totals.stuck++;
	if (err == -ESRCH || err == -EPERM || err == -ETIMEDOUT) {
		err = 0;
		goto out;
	}
	if (err)
		goto out;
	samples = snapshot__samples(w->snapshot, &n);
	for (size_t i = 0; i < n && !err; i++) {
		const struct state *state = find_state(&before, samples[i].tid);

		if (state && state->blocked && is_counted(w, state))
			err = put_wait(w, &samples[i], state);
	}
	if (!err)
		err = read_states(w, pid, &after);
	for (size_t i = 0; i < before.n && !err; i++) {
		if (before.all[i].blocked)
			err = drop_if_over(w, &before.all[i], &after);
	}
out:
	free(before.all);
	free(after.all);
	target__free(target);
	if (err && !(e && e->text))
		error__set(e, -err, "cannot read the threads of process %d: %s", (int)pid,
			   strerror(-err));
	return err;
}

static int count_open(struct waits *w, const struct pmp_wait *wait, uint64_t begin, uint64_t end)
{
	const uint64_t max_ns = w->plan->max_us ? w->plan->max_us * 1000 : UINT64_MAX;
	struct pmp_count count = {.n = 1};
	uint64_t since = wait->since > begin ? wait->since : begin;

	if (end <= since)
		return 0;
	count.ns = end - since;
	if (wait->key.runnable) {
		w->totals.preempted_ns += count.ns;
		if (!(w->plan->states & PLAN_STATE_RUNNABLE))
			return 0;
	}
	if (count.ns < w->plan->min_us * 1000 || count.ns > max_ns)
		return 0;
	w->totals.open++;
	w->totals.open_ns += count.ns;
	w->totals.throughout += wait->from_before;
	return stacks__count(w->stacks, &wait->key, &count);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void waits__note_ids(struct waits *w)
{
	uint32_t tid, next, *last = NULL;
	struct pmp_wait wait;
	size_t n = 0;

	w->n_ids = 0;
	w->ids_known = true;
	while (!bpf_map_get_next_key(w->fd, last, &next)) {
		/* where the last one has gone meanwhile, it begins anew */
		if (++n > MAX_STEPS) {
			w->ids_known = false;
			return;
		}
		tid = next;
		last = &tid;
		if (bpf_map_lookup_elem(w->fd, &tid, &wait) || !wait.key.user)
			continue;
		if (w->n_ids == w->capacity) {
			size_t capacity = w->capacity ? w->capacity * 2 : 256;
			uint64_t *ids = reallocarray(w->ids, capacity, sizeof(*ids));

			if (!ids) {
				w->ids_known = false;
				return;
			}
			w->ids = ids;
			w->capacity = capacity;
		}
		w->ids[w->n_ids++] = wait.key.user;
	}
	if (w->n_ids)
		qsort(w->ids, w->n_ids, sizeof(*w->ids), by_number);
}

bool waits__refer_to(const struct waits *w, uint64_t id)
{
	return !w->ids_known ||
	       (w->n_ids && bsearch(&id, w->ids, w->n_ids, sizeof(*w->ids), by_number));
}

int waits__count_open(struct waits *w, uint64_t begin, uint64_t end)
{
	uint32_t tid, next, *last = NULL;
	struct pmp_wait wait;
	int err = 0;

	while (!err && !bpf_map_get_next_key(w->fd, last, &next)) {
		tid = next;
		last = &tid;
		if (!bpf_map_lookup_elem(w->fd, &tid, &wait))
			err = count_open(w, &wait, begin, end);
	}
	return err;
}

const struct waits_totals *waits__totals(const struct waits *w)
{
	return &w->totals;
}
