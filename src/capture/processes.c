// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/processes.h"

#include "base/clock.h"
#include "capture/comms.h"
#include "capture/generations.h"
#include "capture/guard.h"
#include "proc/find.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/object_cache.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define MS 1000000ull
/* Until nothing that the kernel took with an old generation is still on its way to us. */
#define RETIRE_NS (5000 * MS)
/* A process that has had its mappings for so long is not one that changes them all the time. */
#define SETTLED_NS (1000 * MS)
/* A process whose mappings are what they were although it asked: not at once again. */
#define FIRST_PAUSE_NS (20 * MS)
#define LAST_PAUSE_NS  (2000 * MS)
/* One that could not be read, which may have taken max_wait: not so soon again. */
#define RETRY_NS (30000 * MS)

struct process {
	UT_hash_handle hh;
	pid_t pid;
	struct comms comms;
	struct objects *objects;
	struct generation *now;
	uint64_t look_at; /* 0: no look is due */
	uint64_t pause;
	uint64_t looked_at; /* when the mappings were last read, without fail */
	uint64_t failed_at; /* 0: when they were last tried to be read, they were */
	bool unreadable;
	uint64_t ended_at; /* 0: it has not */
};

struct processes {
	struct processes_options options;
	struct unwind_maps *maps;
	struct object_cache *cache;
	struct process *all;
	struct generations *generations;
	int fd; /* -1: the kernel's map is not there yet */
	struct processes_losses losses;
	/* the look under way */
	struct code_place *places;
	size_t n_places, capacity;
	bool stale;	    /* something was mapped anew meanwhile */
	struct comms other; /* of one that is not known */
};

struct processes *processes__new(struct unwind_maps *maps, const struct processes_options *options)
{
	struct processes *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->options = *options;
	ps->maps = maps;
	ps->fd = -1;
	ps->cache = object_cache__new();
	ps->generations = generations__new(maps);
	if (!ps->cache || !ps->generations) {
		processes__free(ps);
		errno = ENOMEM;
		return NULL;
	}
	return ps;
}

static void leave_generation(struct process *p)
{
	generation__leave(p->now, clock__ns(CLOCK_MONOTONIC));
	p->now = NULL;
}

static void end(struct process *p)
{
	p->ended_at = clock__ns(CLOCK_MONOTONIC);
	leave_generation(p);
	objects__free(p->objects);
	p->objects = NULL;
}

/* It has ended, and no news of that will come. */
static void drop(struct processes *ps, struct process *p)
{
	uint32_t pid = (uint32_t)p->pid;

	if (ps->fd >= 0)
		bpf_map_delete_elem(ps->fd, &pid);
	end(p);
}

static void free_process(struct processes *ps, struct process *p)
{
	comms__forget(&p->comms, UINT64_MAX);
	HASH_DEL(ps->all, p);
	leave_generation(p);
	objects__free(p->objects);
	free(p);
}

static void drop_places(struct processes *ps)
{
	for (size_t i = 0; i < ps->n_places; i++)
		object__unref(ps->places[i].object);
	ps->n_places = 0;
}

void processes__free(struct processes *ps)
{
	struct process *p, *next;

	if (!ps)
		return;
	HASH_ITER (hh, ps->all, p, next)
		free_process(ps, p);
	generations__free(ps->generations);
	drop_places(ps);
	free(ps->places);
	object_cache__free(ps->cache);
	free(ps);
}

static struct process *find_process(const struct processes *ps, pid_t pid)
{
	struct process *p;

	HASH_FIND(hh, ps->all, &pid, sizeof(pid), p);
	return p;
}

static struct process *new_process(struct processes *ps, pid_t pid)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD(hh, ps->all, pid, sizeof(pid), p);
	if (!p->hh.tbl) {
		free(p);
		return NULL;
	}
	comms__read(&p->comms, p->pid);
	return p;
}

static int add_place(const struct code_place *place, void *arg)
{
	struct processes *ps = arg;

	/* what lies there is not what was listed: who meets it asks again */
	if (place->err == -ESTALE) {
		ps->stale = true;
		return 0;
	}
	if (ps->n_places == ps->capacity) {
		size_t capacity = ps->capacity ? ps->capacity * 2 : 64;
		struct code_place *places = reallocarray(ps->places, capacity, sizeof(*places));

		if (!places)
			return -ENOMEM;
		ps->places = places;
		ps->capacity = capacity;
	}
	ps->places[ps->n_places++] = *place;
	object__ref(place->object);
	return place->object ? unwind_maps__prepare(ps->maps, place->object) : 0;
}

struct reading {
	pid_t tid;
	struct maps *maps;
};

/* May have to wait for the process' memory lock. */
static int read_maps(void *arg)
{
	struct reading *r = arg;

	r->maps = maps__read(r->tid);
	if (r->maps)
		return 0;
	return errno == ENOENT ? -ESRCH : -errno;
}

static int read_places_once(struct processes *ps, struct process *p)
{
	pid_t tid = find__live_thread(p->pid);
	struct reading *r;
	int err;

	if (tid < 0)
		return (int)tid;
	if (!p->objects)
		p->objects = objects__new(p->pid, ps->cache);
	r = calloc(1, sizeof(*r)); /* left alone should it time out */
	if (!p->objects || !r) {
		free(r);
		return -ENOMEM;
	}
	r->tid = tid;
	err = guard__run(read_maps, r, ps->options.max_wait);
	if (err == -ETIMEDOUT)
		return err;
	objects__set_thread(p->objects, tid);
	if (!err)
		err = objects__set_maps(p->objects, r->maps);
	if (!err)
		err = objects__each_code(p->objects, add_place, ps);
	if (!err)
		objects__forget_old(p->objects);
	maps__free(r->maps);
	free(r);
	return err;
}

/* A process may load and unload libraries faster than we can look. */
#define MAX_READS 4

static int read_places(struct processes *ps, struct process *p)
{
	int err;

	for (int i = 0; i < MAX_READS; i++) {
		drop_places(ps);
		ps->stale = false;
		err = read_places_once(ps, p);
		if (err || !ps->stale)
			break;
	}
	return err;
}

/* What the kernel is to know of the process. It may have ended: then it is not made anew. */
static int publish(struct processes *ps, struct process *p, bool first)
{
	struct pmp_process value = {.asked = 0};
	uint32_t pid = (uint32_t)p->pid;
	int err;

	if (ps->fd < 0)
		return 0;
	if (p->now) {
		err = generations__put(ps->generations, p->now, &value);
		if (err == -ENOSPC)
			ps->losses.no_room++;
		else if (err)
			return err;
	}
	err = bpf_map_update_elem(ps->fd, &pid, &value, first ? BPF_ANY : BPF_EXIST);
	return err == -ENOENT ? 0 : err;
}

struct touching {
	pid_t pid;
	size_t n;
	uint64_t addrs[];
};

/* May have to wait for the process' memory lock, or for a page. */
static int touch(void *arg)
{
	const struct touching *t = arg;
	pid_t pid = t->pid;
	uint64_t got;

	for (size_t i = 0; i < t->n; i++)
		memory__read(&pid, t->addrs[i], &got, sizeof(got));
	return 0;
}

/*
 * The kernel reads what a mapping holds without waiting for pages: read it once from here, so that
 * it is there.
 */
static void touch_checks(struct processes *ps, const struct process *p)
{
	struct touching *t = calloc(1, sizeof(*t) + ps->n_places * sizeof(t->addrs[0]));
	uint64_t addr, word;

	if (!t)
		return;
	t->pid = p->pid;
	for (size_t i = 0; i < ps->n_places; i++) {
		const struct code_place *place = &ps->places[i];

		if (place->object &&
		    !elf_file__fingerprint(object__file(place->object), &addr, &word))
			t->addrs[t->n++] = place->bias + addr;
	}
	/* left alone should it time out; what could not be touched is found out to be missing */
	if (guard__run(touch, t, ps->options.max_wait) == -ETIMEDOUT)
		ps->losses.stuck++;
	else
		free(t);
}

/* Look at the mappings, and tell the kernel if they have changed. */
static int look_at(struct processes *ps, struct process *p, bool first)
{
	uint64_t now = clock__ns(CLOCK_MONOTONIC);
	struct generation *g;
	int err;

	p->look_at = 0;
	if (p->ended_at)
		return 0;
	ps->losses.looks++;
	err = read_places(ps, p);
	if (err && err != -ESRCH && !p->unreadable) {
		p->unreadable = true;
		ps->losses.unreadable++;
	}
	if (err == -ETIMEDOUT)
		ps->losses.stuck++;
	if (err == -ESRCH && find__live_thread(p->pid) == -ESRCH) {
		drop(ps, p);
	} else if (err) {
		p->failed_at = clock__ns(CLOCK_MONOTONIC);
		p->look_at = p->failed_at + RETRY_NS;
	}
	if (err)
		return err;
	p->failed_at = 0;
	p->looked_at = now;
	touch_checks(ps, p);
	if (!generation__has(p->now, ps->places, ps->n_places)) {
		g = generations__make(ps->generations, ps->places, ps->n_places, now);
		if (!g)
			return -ENOMEM;
		ps->n_places = 0; /* their references are the generation's now */
		leave_generation(p);
		p->now = g;
		p->pause = 0;
		return publish(ps, p, first);
	}
	/* nothing is new: it is the kernel that met an odd address; let it ask again, but later */
	p->pause = p->pause ? p->pause * 2 : FIRST_PAUSE_NS;
	if (p->pause > LAST_PAUSE_NS)
		p->pause = LAST_PAUSE_NS;
	p->look_at = clock__ns(CLOCK_MONOTONIC) + p->pause;
	return 0;
}

int processes__add(struct processes *ps, pid_t pid)
{
	struct process *p = find_process(ps, pid);

	if (p)
		return 0;
	p = new_process(ps, pid);
	return p ? look_at(ps, p, true) : -ENOMEM;
}

int processes__load(struct processes *ps, int processes_fd)
{
	const struct pmp_process unknown = {.asked = 1};
	const uint32_t nobody = PMP_NOBODY;
	struct process *p, *next;
	int err;

	ps->fd = processes_fd;
	err = bpf_map_update_elem(ps->fd, &nobody, &unknown, BPF_ANY);
	if (err)
		return err;
	HASH_ITER (hh, ps->all, p, next) {
		err = p->ended_at ? 0 : publish(ps, p, true);
		if (err)
			return err;
	}
	return 0;
}

void processes__drop_ended(struct processes *ps)
{
	struct process *p, *next;

	HASH_ITER (hh, ps->all, p, next) {
		if (!p->ended_at && find__live_thread(p->pid) == -ESRCH)
			drop(ps, p);
	}
}

/* Failures to read a process are its own: they are counted. */
static int only_memory(int err)
{
	return err == -ENOMEM ? err : 0;
}

static int on_fork(struct processes *ps, const struct pmp_event *event)
{
	struct process *parent = find_process(ps, (pid_t)event->other_pid);
	struct process *p = find_process(ps, (pid_t)event->pid);
	struct generation *g = generations__find(ps->generations, event->generation);

	if (p)
		free_process(ps, p); /* of another with this pid before */
	p = new_process(ps, (pid_t)event->pid);
	if (!p)
		return -ENOMEM;
	/* it has ended already */
	if (!*p->comms.now && parent)
		memcpy(p->comms.now, parent->comms.now, sizeof(p->comms.now));
	p->now = generation__take(g);
	/* the parent's changed in between, or was not known */
	if (!g || (parent && parent->now != g))
		return only_memory(look_at(ps, p, false));
	return 0;
}

static int on_exec(struct processes *ps, struct process *p)
{
	int err = comms__exec(&p->comms, generations__last(ps->generations),
			      clock__ns(CLOCK_MONOTONIC));

	if (err)
		return err;
	comms__read(&p->comms, p->pid);
	if (ps->options.comm && strcmp(p->comms.now, ps->options.comm)) {
		drop(ps, p);
		return 0;
	}
	p->pause = 0;
	/* the same places would be a coincidence, and the kernel has dropped them */
	leave_generation(p);
	return only_memory(look_at(ps, p, false));
}

int processes__news(struct processes *ps, const struct pmp_event *event)
{
	struct process *p = find_process(ps, (pid_t)event->pid);

	if (event->type == PMP_EVENT_FORK)
		return on_fork(ps, event);
	if (event->type == PMP_EVENT_EXIT) {
		if (p)
			end(p);
		return 0;
	}
	if (p && p->ended_at) {
		free_process(ps, p);
		p = NULL;
	}
	if (!p)
		p = new_process(ps, (pid_t)event->pid);
	if (!p)
		return -ENOMEM;
	if (event->type == PMP_EVENT_EXEC)
		return on_exec(ps, p);
	/* the news that it became another program may have been lost */
	if (!event->generation)
		comms__read(&p->comms, p->pid);
	/* it asked on the ground of what it has been given another of since */
	if (p->now && event->generation && event->generation != generation__number(p->now))
		return 0;
	if (p->look_at > clock__ns(CLOCK_MONOTONIC))
		return 0; /* processes__tick() comes to it */
	return only_memory(look_at(ps, p, false));
}

int processes__tick(struct processes *ps, uint64_t now, uint64_t settled)
{
	struct process *p, *next;
	int err;

	HASH_ITER (hh, ps->all, p, next) {
		/* those that nothing can still come for */
		comms__forget(&p->comms, settled > RETIRE_NS ? settled - RETIRE_NS : 0);
		if (p->ended_at && settled > p->ended_at + RETIRE_NS) {
			free_process(ps, p);
			continue;
		}
		if (!p->look_at || p->look_at > now || p->ended_at)
			continue;
		p->look_at = 0;
		err = publish(ps, p, false); /* it may ask again */
		if (err == -ENOMEM)
			return err;
	}
	generations__expire(ps->generations, settled, RETIRE_NS, ps->options.forget,
			    ps->options.arg);
	return 0;
}

int processes__find_code(const struct processes *ps, uint32_t generation, uint64_t pc,
			 struct code_place *ret_place)
{
	return generations__find_code(ps->generations, generation, pc, ret_place);
}

int processes__verify(struct processes *ps, pid_t pid, uint32_t generation, uint64_t time)
{
	struct process *p = find_process(ps, pid);
	int err = 0;

	/* one that is young may have come, gone and come again: that it is there now says nothing
	 */
	if (!p || p->ended_at || !p->now || generation__made_at(p->now) + SETTLED_NS > time)
		return -ESTALE;
	if (p->failed_at && clock__ns(CLOCK_MONOTONIC) < p->failed_at + RETRY_NS)
		return -ESTALE; /* to try it for each stack would take for ever */
	if (p->looked_at < time)
		err = look_at(ps, p, false);
	if (err == -ENOMEM)
		return err;
	return !err && p->now && generation__number(p->now) == generation ? 0 : -ESTALE;
}

uint32_t processes__generation(const struct processes *ps, pid_t pid)
{
	const struct process *p = find_process(ps, pid);

	return p && p->now ? generation__number(p->now) : 0;
}

const char *processes__name(struct processes *ps, pid_t pid, uint32_t generation)
{
	const struct process *p = find_process(ps, pid);

	if (p)
		return comms__in(&p->comms, generation);
	/* a thread of the kernel's asks for nothing */
	*ps->other.now = '\0';
	comms__read(&ps->other, pid);
	return ps->other.now;
}

size_t processes__alive(const struct processes *ps)
{
	struct process *p, *next;
	size_t n = 0;

	HASH_ITER (hh, ps->all, p, next)
		n += !p->ended_at;
	return n;
}

const struct processes_losses *processes__losses(const struct processes *ps)
{
	return &ps->losses;
}
