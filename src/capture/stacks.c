// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/stacks.h"

#include "capture/frame_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct user_stack {
	UT_hash_handle hh;
	uint32_t n;
	bool reached;	  /* by frame pointers: the outermost frame is a thread's start */
	uint32_t words[]; /* the status, then the numbers of the frames */
};

struct kernel_stack {
	UT_hash_handle hh;
	uint64_t id;
	uint32_t n;
	bool cut;
	uint64_t frames[];
};

struct thread {
	UT_hash_handle hh;
	uint64_t id;
	pid_t pid, tid;
	char comm[PMP_COMM_LEN + 1];
};

/* An id of the kernel's, while its generation lasts. */
struct id {
	UT_hash_handle hh;
	uint64_t id;
	uint32_t generation;
	struct user_stack *stack;
	struct id *next; /* of the same generation */
};

struct generation_ids {
	UT_hash_handle hh;
	uint32_t generation;
	struct id *first;
};

struct line_key {
	const struct user_stack *user;
	const struct kernel_stack *kernel;
	const struct thread *thread;
	const char *process; /* with by_process */
	uint32_t pid;	     /* with by_process */
	uint32_t runnable;
};

struct line {
	UT_hash_handle hh;
	struct line_key key;
	struct pmp_count count;
};

/* Names of processes, which outlive them. */
struct name {
	UT_hash_handle hh;
	char text[PMP_COMM_LEN + 1];
};

struct stacks {
	struct processes *processes;
	struct stacks_options options;
	struct frame_table *frames;
	struct user_stack *users;
	struct kernel_stack *kernels;
	struct thread *threads;
	struct id *ids;
	struct generation_ids *generations;
	struct id *left; /* ids of generations that are over, but still of use */
	struct line *lines;
	struct name *names;
	struct stacks_totals totals;
	/* the stack under way */
	struct raw_frame raw[PMP_USER_FRAMES];
	uint32_t words[PMP_USER_FRAMES + 1];
};

struct stacks *stacks__new(struct processes *processes, const struct stacks_options *options)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->processes = processes;
	s->options = *options;
	s->frames = frame_table__new();
	if (!s->frames) {
		free(s);
		return NULL;
	}
	return s;
}

#define FREE_ALL(head, type)                                                                       \
	do {                                                                                       \
		type *item_, *next_;                                                               \
		HASH_ITER (hh, head, item_, next_) {                                               \
			HASH_DEL(head, item_);                                                     \
			free(item_);                                                               \
		}                                                                                  \
	} while (0)

void stacks__free(struct stacks *s)
{
	if (!s)
		return;
	FREE_ALL(s->lines, struct line);
	FREE_ALL(s->ids, struct id);
	FREE_ALL(s->generations, struct generation_ids);
	FREE_ALL(s->users, struct user_stack);
	FREE_ALL(s->kernels, struct kernel_stack);
	FREE_ALL(s->threads, struct thread);
	FREE_ALL(s->names, struct name);
	frame_table__free(s->frames);
	free(s);
}

static int intern_user_stack(struct stacks *s, uint32_t n, struct user_stack **ret_stack)
{
	size_t len = (n + 1) * sizeof(s->words[0]);
	struct user_stack *stack;

	HASH_FIND(hh, s->users, s->words, len, stack);
	if (!stack) {
		stack = calloc(1, sizeof(*stack) + len);
		if (!stack)
			return -ENOMEM;
		stack->n = n;
		memcpy(stack->words, s->words, len);
		if (s->words[0] == PMP_STATUS_FRAME_POINTERS && n)
			stack->reached = frame_table__is_start(s->frames, s->words[n]);
		HASH_ADD_KEYPTR(hh, s->users, stack->words, len, stack);
		if (!stack->hh.tbl) {
			free(stack);
			return -ENOMEM;
		}
	}
	*ret_stack = stack;
	return 0;
}

static struct id *find_id(const struct stacks *s, uint64_t id)
{
	struct id *known;

	HASH_FIND(hh, s->ids, &id, sizeof(id), known);
	return known;
}

static int remember_id(struct stacks *s, uint64_t number, uint32_t generation,
		       struct user_stack *stack)
{
	struct id *id = calloc(1, sizeof(*id));
	struct generation_ids *ids;

	HASH_FIND(hh, s->generations, &generation, sizeof(generation), ids);
	if (!ids) {
		ids = calloc(1, sizeof(*ids));
		if (ids) {
			ids->generation = generation;
			HASH_ADD(hh, s->generations, generation, sizeof(generation), ids);
			if (!ids->hh.tbl) {
				free(ids);
				ids = NULL;
			}
		}
	}
	if (id && ids) {
		id->id = number;
		id->generation = generation;
		id->stack = stack;
		HASH_ADD(hh, s->ids, id, sizeof(id->id), id);
		if (id->hh.tbl) {
			id->next = ids->first;
			ids->first = id;
			return 0;
		}
	}
	free(id);
	return -ENOMEM;
}

static int add_user_stack(struct stacks *s, const struct pmp_stack_event *event)
{
	const uint64_t *frames = (const void *)(event + 1);
	uint32_t status = event->status & ~(uint32_t)PMP_STATUS_UNVERIFIED, n = event->n;
	struct user_stack *stack;
	int err = 0;

	if (status >= PMP_N_STATUS)
		return -EBADMSG;
	if (find_id(s, event->id))
		return 0; /* two CPUs met it at once */
	if (event->status & PMP_STATUS_UNVERIFIED) {
		err = processes__verify(s->processes, (pid_t)event->event.pid,
					event->event.generation, event->event.time);
		if (err == -ENOMEM)
			return err;
		/* no frame of it can be trusted to be what it seems */
		if (err) {
			status = PMP_STATUS_STALE;
			n = 0;
		}
		err = 0;
	}
	s->words[0] = status;
	for (uint32_t i = 0; i < n && !err; i++)
		err = frame_table__intern(s->frames, s->processes, (pid_t)event->event.pid,
					  event->event.generation, frames[i], &s->words[i + 1]);
	if (err)
		return err;
	err = intern_user_stack(s, n, &stack);
	return err ? err : remember_id(s, event->id, event->event.generation, stack);
}

static struct kernel_stack *find_kernel(const struct stacks *s, uint64_t id)
{
	struct kernel_stack *k;

	HASH_FIND(hh, s->kernels, &id, sizeof(id), k);
	return k;
}

static int add_kernel_stack(struct stacks *s, const struct pmp_stack_event *event)
{
	struct kernel_stack *k;

	if (find_kernel(s, event->id))
		return 0;
	k = calloc(1, sizeof(*k) + event->n * sizeof(k->frames[0]));
	if (!k)
		return -ENOMEM;
	k->id = event->id;
	k->n = event->n;
	k->cut = event->status;
	memcpy(k->frames, event + 1, event->n * sizeof(k->frames[0]));
	HASH_ADD(hh, s->kernels, id, sizeof(k->id), k);
	if (k->hh.tbl)
		return 0;
	free(k);
	return -ENOMEM;
}

int stacks__add_stack(struct stacks *s, const struct pmp_stack_event *event, size_t size)
{
	bool user = event->event.type == PMP_EVENT_USER_STACK;

	if (size < sizeof(*event) || event->n > (user ? PMP_USER_FRAMES : PMP_KERNEL_FRAMES) ||
	    size < sizeof(*event) + event->n * sizeof(uint64_t))
		return -EBADMSG;
	return user ? add_user_stack(s, event) : add_kernel_stack(s, event);
}

static struct thread *find_thread(const struct stacks *s, uint64_t id)
{
	struct thread *t;

	HASH_FIND(hh, s->threads, &id, sizeof(id), t);
	return t;
}

int stacks__add_thread(struct stacks *s, const struct pmp_thread_event *event, size_t size)
{
	struct thread *t;

	if (size < sizeof(*event))
		return -EBADMSG;
	if (find_thread(s, event->id))
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->id = event->id;
	t->pid = (pid_t)event->event.pid;
	t->tid = (pid_t)event->tid;
	memcpy(t->comm, event->comm, sizeof(event->comm));
	HASH_ADD(hh, s->threads, id, sizeof(t->id), t);
	if (t->hh.tbl)
		return 0;
	free(t);
	return -ENOMEM;
}

static const char *intern_name(struct stacks *s, pid_t pid, uint32_t generation)
{
	const char *text = processes__name(s->processes, pid, generation);
	struct name *name;

	HASH_FIND_STR(s->names, text, name);
	if (name)
		return name->text;
	name = calloc(1, sizeof(*name));
	if (!name)
		return NULL;
	strncpy(name->text, text, sizeof(name->text) - 1);
	HASH_ADD_STR(s->names, text, name);
	if (name->hh.tbl)
		return name->text;
	free(name);
	return NULL;
}

/* Returns 0, -ENOENT (an id is not known) or -ENOMEM. */
static int find_line_key(struct stacks *s, const struct pmp_count_key *key,
			 struct line_key *ret_key)
{
	struct line_key found = {.runnable = key->runnable};
	const struct id *id = NULL;

	if (key->user) {
		id = find_id(s, key->user);
		if (!id)
			return -ENOENT;
		found.user = id->stack;
	}
	if (key->kernel) {
		found.kernel = find_kernel(s, key->kernel);
		if (!found.kernel)
			return -ENOENT;
	}
	if (key->thread) {
		found.thread = find_thread(s, key->thread);
		if (!found.thread)
			return -ENOENT;
	}
	if (s->options.by_process) {
		found.pid = key->pid;
		found.process = intern_name(s, (pid_t)key->pid, id ? id->generation : 0);
		if (!found.process)
			return -ENOMEM;
	}
	*ret_key = found;
	return 0;
}

static void add_to_totals(struct stacks_totals *t, const struct line_key *key,
			  const struct pmp_count *count)
{
	t->n += count->n;
	t->ns += count->ns;
	if (!key->user && !key->kernel)
		t->frameless += count->n;
	else if (!key->user)
		t->kernel_only += count->n;
	else
		t->by_status[key->user->words[0]] += count->n;
	if (key->user && key->user->reached)
		t->reached += count->n;
	if (key->kernel && key->kernel->cut)
		t->kernel_cut += count->n;
}

int stacks__count(struct stacks *s, const struct pmp_count_key *key, const struct pmp_count *count)
{
	struct line_key found;
	struct line *line;
	int err = find_line_key(s, key, &found);

	if (err == -ENOENT) {
		s->totals.unnamed += count->n;
		return 0;
	}
	if (err)
		return err;
	add_to_totals(&s->totals, &found, count);
	HASH_FIND(hh, s->lines, &found, sizeof(found), line);
	if (!line) {
		line = calloc(1, sizeof(*line));
		if (!line)
			return -ENOMEM;
		line->key = found;
		HASH_ADD(hh, s->lines, key, sizeof(line->key), line);
		if (!line->hh.tbl) {
			free(line);
			return -ENOMEM;
		}
		s->totals.distinct++;
	}
	line->count.n += count->n;
	line->count.ns += count->ns;
	return 0;
}

/* Let go of those of a list that may go; those that may not are left in s->left. */
static void forget_list(struct stacks *s, struct id *id, bool (*forget_id)(void *arg, uint64_t id),
			void *arg)
{
	struct id *next;

	for (; id; id = next) {
		next = id->next;
		if (forget_id(arg, id->id)) {
			HASH_DEL(s->ids, id);
			free(id);
		} else {
			id->next = s->left;
			s->left = id;
		}
	}
}

void stacks__forget(struct stacks *s, uint32_t generation,
		    bool (*forget_id)(void *arg, uint64_t id), void *arg)
{
	struct generation_ids *ids;
	struct id *left = s->left;

	s->left = NULL;
	forget_list(s, left, forget_id, arg);
	HASH_FIND(hh, s->generations, &generation, sizeof(generation), ids);
	if (!ids)
		return;
	forget_list(s, ids->first, forget_id, arg);
	HASH_DEL(s->generations, ids);
	free(ids);
}

static enum stack_end end_of(enum pmp_status status)
{
	switch (status) {
	case PMP_STATUS_WHOLE:
		return STACK_WHOLE;
	case PMP_STATUS_TRUNCATED:
		return STACK_TRUNCATED;
	case PMP_STATUS_GUESSED:
		return STACK_GUESSED;
	default:
		return STACK_BROKEN;
	}
}

static void make_sample(struct stacks *s, const struct line_key *key, struct raw_sample *ret_sample)
{
	struct raw_sample sample = {.end = STACK_WHOLE, .count = 1};

	if (key->kernel) {
		sample.kernel = key->kernel->frames;
		sample.n_kernel = key->kernel->n;
	}
	if (key->user) {
		sample.n_user = key->user->n;
		sample.end = end_of((enum pmp_status)key->user->words[0]);
		if (key->user->reached)
			sample.end = STACK_GUESSED;
	}
	for (size_t i = 0; i < sample.n_user; i++)
		s->raw[i] = frame_table__get(s->frames, key->user->words[i + 1]);
	/* not a line without a word */
	if (!key->user && !key->kernel)
		sample.end = STACK_BROKEN;
	sample.user = s->raw;
	sample.pid = (pid_t)key->pid;
	sample.process_name = key->process;
	if (key->thread) {
		sample.pid = key->thread->pid;
		sample.tid = key->thread->tid;
		sample.thread_name = key->thread->comm;
	}
	*ret_sample = sample;
}

int stacks__sample(struct stacks *s, const struct pmp_count_key *key, struct raw_sample *ret_sample)
{
	struct line_key found;
	int err = find_line_key(s, key, &found);

	if (!err)
		make_sample(s, &found, ret_sample);
	return err;
}

int stacks__each(struct stacks *s, bool times, stacks_fn fn, void *arg)
{
	struct line *line, *next;
	struct raw_sample sample;
	int err = 0;

	HASH_ITER (hh, s->lines, line, next) {
		make_sample(s, &line->key, &sample);
		sample.count = times ? (line->count.ns + 500) / 1000 : line->count.n;
		err = fn(&sample, line->key.runnable, arg);
		if (err)
			break;
	}
	return err;
}

const struct stacks_totals *stacks__totals(const struct stacks *s)
{
	return &s->totals;
}
