// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/sampler.h"

#include "base/clock.h"
#include "capture/bpf_errors.h"
#include "capture/perf_events.h"
#include "capture/self.h"
#include "profile.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS 1000000ull

#define RING_SIZE      (4u << 20)
#define RING_SIZE_FAST (16u << 20) /* over FAST_RATE samples a second */
#define FAST_RATE      2000
#define KNOWN_IDS      (128u << 10)
#define COUNT_KEYS     (32u << 10)
#define BATCH	       1024
/* Counts wait in the kernel so long at most: a process that ended is forgotten a while later. */
#define COUNTS_MAX_AGE (1000 * MS)
/* A program that still adds to the counts that were in use is done by then. */
#define COUNTS_REST (50 * MS)
/* Records that come faster than they are handed on would keep us for good: then a pause. */
#define READ_MAX (100 * MS)

struct sampler {
	const struct plan *plan;
	struct sampler_sink sink;
	struct profile_bpf *skel;
	bool fp;
	struct ring_buffer *ring;
	struct perf_events *events;
	struct bpf_link *links[4];
	size_t n_links;
	int sink_err;
	uint64_t read_until;  /* records are handed on until then; 0: until there are none */
	bool behind;	      /* there were more */
	uint64_t polled_at;   /* what was sent before has been handed on */
	uint64_t settled_at;  /* so has what was counted before */
	uint64_t switched_at; /* when the counts in use became so */
	bool other_is_full;   /* those that were in use before were not emptied yet */
	struct pmp_count_key *keys;
	struct pmp_count *values;
	int n_cpus;
	struct pmp_stats *stats; /* room for each CPU's */
};

static int on_record(void *arg, void *data, size_t size)
{
	struct sampler *s = arg;

	if (size < sizeof(struct pmp_event))
		return -EBADMSG;
	/* libbpf would go on after an error of ours: it is kept */
	if (!s->sink_err)
		s->sink_err = s->sink.record(s->sink.arg, data, size);
	if (s->sink_err || !s->read_until || clock__ns(CLOCK_MONOTONIC) < s->read_until)
		return s->sink_err;
	s->behind = true;
	return -EAGAIN;
}

/* Whether sched_switch hands over the state that the thread is left in, as its fourth argument. */
static bool has_prev_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t = NULL;
	int id = btf ? btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) : -1;
	bool has = false;

	if (id > 0)
		t = btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
	if (t && btf_is_ptr(t))
		t = btf__type_by_id(btf, t->type);
	/* the first one is the tracepoint's own data */
	if (t && btf_is_func_proto(t))
		has = btf_vlen(t) >= 5;
	btf__free(btf);
	return has;
}

static uint32_t ring_size(const struct plan *plan)
{
	return plan->frequency > FAST_RATE ? RING_SIZE_FAST : RING_SIZE;
}

static void set_up(struct profile_bpf *skel, const struct plan *plan, bool fp,
		   const struct unwind_maps_room *room)
{
	bool cpu = plan->mode == PLAN_MODE_CPU, many = plan->all || plan->comm;
	size_t frames = plan->max_frames < PMP_USER_FRAMES ? plan->max_frames : PMP_USER_FRAMES;

	bpf_program__set_autoload(skel->progs.on_cpu, cpu && !fp);
	bpf_program__set_autoload(skel->progs.on_cpu_fp, cpu && fp);
	bpf_program__set_autoload(skel->progs.off_cpu, !cpu && !fp);
	bpf_program__set_autoload(skel->progs.off_cpu_fp, !cpu && fp);
	bpf_map__set_max_entries(skel->maps.rows, (uint32_t)room->rows);
	bpf_map__set_max_entries(skel->maps.rules, (uint32_t)room->rules);
	bpf_map__set_max_entries(skel->maps.mappings, (uint32_t)room->mappings);
	bpf_map__set_max_entries(skel->maps.events, ring_size(plan));
	bpf_map__set_max_entries(skel->maps.known, KNOWN_IDS);
	bpf_map__set_max_entries(skel->maps.counts_a, COUNT_KEYS);
	bpf_map__set_max_entries(skel->maps.counts_b, COUNT_KEYS);
	bpf_map__set_max_entries(skel->maps.processes, many ? 32768 : 1024);
	bpf_map__set_max_entries(skel->maps.waits, cpu ? 1 : 32768);
	bpf_map__set_max_entries(skel->maps.unwanted, plan->tids ? 16384 : 1);
	skel->rodata->max_frames = (uint32_t)frames;
	skel->rodata->ring_size = ring_size(plan);
	skel->rodata->tell_threads = plan->tids != NULL;
	skel->rodata->tell_samples = plan->format == PLAN_FORMAT_SAMPLES;
	skel->rodata->with_kernel = plan->kernel;
	skel->rodata->take_all = plan->all;
	if (plan->comm)
		strncpy((char *)skel->rodata->take_comm, plan->comm, PMP_COMM_LEN - 1);
	if (!cpu) {
		skel->rodata->has_prev_state = has_prev_state();
		skel->rodata->states = plan->states;
		skel->rodata->min_ns = plan->min_us * 1000;
		skel->rodata->max_ns = plan->max_us ? plan->max_us * 1000 : UINT64_MAX;
	}
}

static struct profile_bpf *load(const struct plan *plan, bool fp,
				const struct unwind_maps_room *room)
{
	struct profile_bpf *skel = profile_bpf__open();
	int err;

	if (!skel)
		return NULL;
	set_up(skel, plan, fp, room);
	err = profile_bpf__load(skel);
	if (err) {
		profile_bpf__destroy(skel);
		errno = -err;
		return NULL;
	}
	return skel;
}

/* The programs see processes by the pids of our pid namespace: let them find out which. */
static int learn_reader(struct profile_bpf *skel)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	int err = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.learn_reader), &options);

	return err < 0 ? err : 0;
}

struct sampler *sampler__new(const struct plan *plan, struct unwind_maps *maps,
			     const struct sampler_sink *sink, struct error *e)
{
	const struct unwind_maps_room room = unwind_maps__room(maps);
	struct sampler *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s) {
		error__set(e, ENOMEM, "out of memory");
		return NULL;
	}
	s->plan = plan;
	s->sink = *sink;
	s->fp = plan->unwind == PLAN_UNWIND_FP;
	bpf_errors__keep_quiet();
	s->skel = load(plan, s->fp, &room);
	/* not for want of rights: then the other would fail just the same, and say less */
	if (!s->skel && !s->fp && errno != EPERM && errno != ENOENT) {
		s->fp = true;
		s->skel = load(plan, true, &room);
	}
	if (!s->skel) {
		err = bpf_errors__say(e, errno);
		goto out;
	}
	err = learn_reader(s->skel);
	if (!err)
		err = unwind_maps__load(maps, &room, bpf_map__fd(s->skel->maps.rows),
					bpf_map__fd(s->skel->maps.rules),
					bpf_map__fd(s->skel->maps.mappings));
	s->n_cpus = libbpf_num_possible_cpus();
	if (!err && s->n_cpus <= 0)
		err = -ENODEV;
	if (err)
		goto out;
	s->keys = calloc(BATCH, sizeof(*s->keys));
	s->values = calloc(BATCH, sizeof(*s->values));
	s->stats = calloc((size_t)s->n_cpus, sizeof(*s->stats));
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.events), on_record, s, NULL);
	if (!s->keys || !s->values || !s->stats || !s->ring)
		err = -ENOMEM;
	else
		err = self__keep_bpf_maps();
out:
	if (err) {
		if (!e || !e->text)
			error__set(e, -err, "cannot set up the capture: %s", strerror(-err));
		sampler__free(s);
		errno = -err;
		return NULL;
	}
	return s;
}

void sampler__free(struct sampler *s)
{
	if (!s)
		return;
	sampler__stop(s);
	perf_events__free(s->events);
	ring_buffer__free(s->ring);
	profile_bpf__destroy(s->skel);
	free(s->keys);
	free(s->values);
	free(s->stats);
	free(s);
}

bool sampler__by_frame_pointers(const struct sampler *s)
{
	return s->fp;
}

int sampler__processes_fd(const struct sampler *s)
{
	return bpf_map__fd(s->skel->maps.processes);
}

int sampler__waits_fd(const struct sampler *s)
{
	return bpf_map__fd(s->skel->maps.waits);
}

static int attach(struct sampler *s, struct bpf_program *program, struct error *e)
{
	struct bpf_link *link = bpf_program__attach(program);

	if (!link)
		return error__set(e, errno, "cannot attach to %s: %s",
				  bpf_program__section_name(program), strerror(errno));
	s->links[s->n_links++] = link;
	return 0;
}

int sampler__follow_processes(struct sampler *s, struct error *e)
{
	int err = attach(s, s->skel->progs.on_exec, e);

	if (!err)
		err = attach(s, s->skel->progs.on_exit, e);
	if (!err)
		err = attach(s, s->skel->progs.on_fork, e);
	return err;
}

int sampler__start(struct sampler *s, struct error *e)
{
	struct perf_events_options options = {
		.event = s->plan->event,
		.frequency = s->plan->event_count ? 0 : s->plan->frequency,
		.period = s->plan->event_count,
	};

	if (s->plan->mode == PLAN_MODE_OFFCPU)
		return attach(s, s->fp ? s->skel->progs.off_cpu_fp : s->skel->progs.off_cpu, e);
	options.program_fd = bpf_program__fd(s->fp ? s->skel->progs.on_cpu_fp
						   : s->skel->progs.on_cpu);
	s->events = perf_events__new(&options, e);
	return s->events ? 0 : -errno;
}

void sampler__begin(struct sampler *s, uint64_t now)
{
	s->skel->bss->begin_ns = now;
}

int sampler__poll(struct sampler *s, int milliseconds)
{
	uint64_t now = clock__ns(CLOCK_MONOTONIC);
	int err;

	s->behind = false;
	s->read_until = now + (uint64_t)milliseconds * MS + READ_MAX;
	err = ring_buffer__poll(s->ring, milliseconds);
	/* what was put there without waking us */
	if (err >= 0 && !s->sink_err) {
		now = clock__ns(CLOCK_MONOTONIC);
		err = ring_buffer__consume(s->ring);
	}
	s->read_until = 0;
	if (s->sink_err)
		return s->sink_err;
	if (err < 0)
		return err == -EINTR || s->behind ? 0 : err;
	s->polled_at = now;
	return 0;
}

/* Hand on what this map holds, and empty it. */
static int empty_counts(struct sampler *s, int fd)
{
	uint32_t batch = 0, n, *in = NULL;
	int err = 0, done = 0;

	while (!done && !err) {
		n = BATCH;
		done = bpf_map_lookup_and_delete_batch(fd, in, &batch, s->keys, s->values, &n,
						       NULL);
		in = &batch;
		if (done && errno != ENOENT)
			return -errno;
		for (uint32_t i = 0; i < n && !err; i++)
			err = s->sink.count(s->sink.arg, &s->keys[i], &s->values[i]);
	}
	return err;
}

static int counts_fd(const struct sampler *s, bool b)
{
	return bpf_map__fd(b ? s->skel->maps.counts_b : s->skel->maps.counts_a);
}

int sampler__drain_counts(struct sampler *s, uint64_t now)
{
	bool b = s->skel->bss->use_counts_b;
	int err;

	/* only counts from before what was read last have their stacks */
	if (s->other_is_full && s->polled_at > s->switched_at + COUNTS_REST) {
		err = empty_counts(s, counts_fd(s, !b));
		if (err)
			return err;
		s->other_is_full = false;
		s->settled_at = s->switched_at;
	}
	if (s->other_is_full)
		return 0;
	if (!s->skel->bss->new_keys) {
		s->settled_at = s->polled_at;
		return 0;
	}
	if (s->skel->bss->new_keys > COUNT_KEYS / 8 || now > s->switched_at + COUNTS_MAX_AGE) {
		s->skel->bss->new_keys = 0;
		s->skel->bss->use_counts_b = !b;
		s->switched_at = now;
		s->other_is_full = true;
	}
	return 0;
}

uint64_t sampler__settled(const struct sampler *s)
{
	return s->settled_at;
}

void sampler__stop(struct sampler *s)
{
	if (s->events)
		perf_events__stop(s->events);
	while (s->n_links)
		bpf_link__destroy(s->links[--s->n_links]);
}

int sampler__drain_all(struct sampler *s)
{
	int err = ring_buffer__consume(s->ring);

	if (s->sink_err)
		return s->sink_err;
	if (err < 0)
		return err;
	err = empty_counts(s, counts_fd(s, false));
	return err ? err : empty_counts(s, counts_fd(s, true));
}

int sampler__follow_cpus(struct sampler *s)
{
	return s->events ? perf_events__follow_cpus(s->events) : 0;
}

void sampler__forget(struct sampler *s, uint64_t id)
{
	bpf_map__delete_elem(s->skel->maps.known, &id, sizeof(id), 0);
}

void sampler__ignore_thread(struct sampler *s, uint64_t id)
{
	uint8_t one = 1;

	bpf_map__update_elem(s->skel->maps.unwanted, &id, sizeof(id), &one, sizeof(one), BPF_ANY);
}

int sampler__stats(const struct sampler *s, struct pmp_stats *ret_stats)
{
	struct pmp_stats sum = {0};
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.stats), &zero, s->stats))
		return -errno;
	for (int i = 0; i < s->n_cpus; i++) {
		const uint64_t *from = (const uint64_t *)&s->stats[i];
		uint64_t *to = (uint64_t *)&sum;

		for (size_t k = 0; k < sizeof(sum) / sizeof(*to); k++)
			to[k] += from[k];
	}
	*ret_stats = sum;
	return 0;
}

bool sampler__expected(struct sampler *s, uint64_t *ret_ticks, uint64_t *ret_idle)
{
	return s->events && perf_events__expected(s->events, ret_ticks, ret_idle);
}
