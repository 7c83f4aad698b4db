// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/tasks.h"

#include "capture/bpf_errors.h"
#include "capture/perf_events.h"
#include "capture/self.h"
#include "tasks.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Holds what one read() of an iterator gives, and the start of a record it cut. */
#define READ_SIZE (256 * 1024)

struct tasks {
	struct tasks_bpf *skel;
	bool sleepable;
	struct bpf_link *link;	   /* iterates over link_pid alone; NULL: the kernel cannot */
	struct bpf_link *link_all; /* iterates over all tasks; made at the first need */
	pid_t link_pid;
	struct ring_buffer *ring;
	task_fn sample_fn;
	void *sample_arg;
	struct perf_events *events; /* while threads are sampled */
	uint8_t *buffer;
};

static struct tasks_bpf *load(bool sleepable)
{
	struct tasks_bpf *skel = tasks_bpf__open();
	int err;

	if (!skel)
		return NULL;
	bpf_program__set_autoload(skel->progs.read_task_sleepable, sleepable);
	bpf_program__set_autoload(skel->progs.read_task_plain, !sleepable);
	err = tasks_bpf__load(skel);
	if (err) {
		tasks_bpf__destroy(skel);
		errno = -err;
		return NULL;
	}
	return skel;
}

static int handle_sample(void *arg, void *data, size_t size)
{
	const struct pmp_sample *sample = data;
	struct tasks *t = arg;
	struct task_record record;

	if (size < sizeof(*sample) || sample->task.stack_len > sizeof(sample->stack) ||
	    sample->task.n_kernel > PMP_KERNEL_FRAMES)
		return -EBADMSG;
	record = (struct task_record){
		.task = &sample->task,
		.kernel = sample->kernel,
		.stack = sample->stack,
	};
	return t->sample_fn(&record, t->sample_arg);
}

struct tasks *tasks__new(const struct tasks_options *options, struct error *e)
{
	struct tasks *t = calloc(1, sizeof(*t));
	int err = 0;

	if (!t) {
		error__set(e, ENOMEM, "out of memory");
		return NULL;
	}
	bpf_errors__keep_quiet();
	t->sleepable = !options->plain;
	t->skel = load(t->sleepable);
	/* not for want of rights: then the plain one would fail just the same, and say less */
	if (!t->skel && t->sleepable && errno != EPERM && errno != ENOENT) {
		t->sleepable = false;
		t->skel = load(false);
	}
	if (!t->skel) {
		err = bpf_errors__say(e, errno);
		goto out;
	}
	t->skel->bss->with_kernel = options->kernel_stacks;
	t->buffer = malloc(READ_SIZE);
	if (!t->buffer) {
		err = -ENOMEM;
		goto out;
	}
	t->ring = ring_buffer__new(bpf_map__fd(t->skel->maps.samples), handle_sample, t, NULL);
	err = t->ring ? self__keep_bpf_maps() : -errno;
out:
	if (err) {
		if (!e || !e->text)
			error__set(e, -err, "cannot set up the capture: %s", strerror(-err));
		tasks__free(t);
		errno = -err;
		return NULL;
	}
	return t;
}

void tasks__free(struct tasks *t)
{
	if (!t)
		return;
	tasks__stop_sampling(t);
	bpf_link__destroy(t->link);
	bpf_link__destroy(t->link_all);
	ring_buffer__free(t->ring);
	tasks_bpf__destroy(t->skel);
	free(t->buffer);
	free(t);
}

bool tasks__sleepable(const struct tasks *t)
{
	return t->sleepable;
}

static struct bpf_program *iterator(const struct tasks *t)
{
	return t->sleepable ? t->skel->progs.read_task_sleepable : t->skel->progs.read_task_plain;
}

/* Make t->link iterate over `pid` alone, where the kernel can do that (6.1 and later). */
static void attach_to_process(struct tasks *t, pid_t pid)
{
	union bpf_iter_link_info info = {.task.pid = (uint32_t)pid};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info,
		    .link_info_len = sizeof(info));

	if (t->link_pid == pid)
		return;
	bpf_link__destroy(t->link);
	t->link = bpf_program__attach_iter(iterator(t), &options);
	t->link_pid = pid;
	t->skel->bss->target_tgid = 0;
}

/* The link to iterate with, or NULL with errno. */
static struct bpf_link *choose_link(struct tasks *t, pid_t pid, bool walk_all)
{
	attach_to_process(t, pid);
	if (t->link && !walk_all)
		return t->link;
	if (!t->link_all)
		t->link_all = bpf_program__attach_iter(iterator(t), NULL);
	return t->link_all;
}

/* Hand out the whole records at the start of the buffer; returns how many bytes they had. */
static int hand_out(const uint8_t *buffer, size_t have, task_fn fn, void *arg, size_t *ret_used)
{
	size_t used = 0;

	while (have - used >= sizeof(struct pmp_task)) {
		const struct pmp_task *task = (const void *)(buffer + used);
		size_t len = sizeof(*task);
		struct task_record record;
		int err;

		if (task->n_kernel > PMP_KERNEL_FRAMES ||
		    task->stack_len > PMP_TASK_PAGES * PMP_PAGE)
			return -EBADMSG;
		record.task = task;
		record.kernel = (const void *)(buffer + used + len);
		len += task->n_kernel * sizeof(uint64_t);
		record.stack = buffer + used + len;
		len += task->stack_len;
		if (have - used < len)
			break;
		used += len;
		err = fn(&record, arg);
		if (err)
			return err;
	}
	*ret_used = used;
	return 0;
}

int tasks__each(struct tasks *t, pid_t pid, const struct tasks_pass *pass, task_fn fn, void *arg)
{
	struct bpf_link *link = choose_link(t, pid, pass->walk_all);
	size_t have = 0, used;
	int fd, err;

	if (!link)
		return -errno;
	t->skel->bss->filter_tgid = (uint32_t)pid;
	t->skel->bss->only_wanted = pass->only_wanted;
	t->skel->bss->with_memory = pass->with_memory;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, t->buffer + have, READ_SIZE - have);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : have ? -EBADMSG : 0;
			break;
		}
		have += (size_t)n;
		err = hand_out(t->buffer, have, fn, arg, &used);
		if (err)
			break;
		have -= used;
		memmove(t->buffer, t->buffer + used, have);
	}
	close(fd);
	return err;
}

int tasks__want(struct tasks *t, uint32_t kernel_tid)
{
	uint32_t one = 1;

	return bpf_map__update_elem(t->skel->maps.wanted, &kernel_tid, sizeof(kernel_tid), &one,
				    sizeof(one), BPF_ANY);
}

void tasks__unwant(struct tasks *t, uint32_t kernel_tid)
{
	bpf_map__delete_elem(t->skel->maps.wanted, &kernel_tid, sizeof(kernel_tid), 0);
}

int tasks__start_sampling(struct tasks *t, uint64_t period_ns, struct error *e)
{
	const struct perf_events_options options = {
		.period = period_ns,
		.program_fd = bpf_program__fd(t->skel->progs.sample_running),
	};

	if (!t->events)
		t->events = perf_events__new(&options, e);
	return t->events ? 0 : -errno;
}

void tasks__stop_sampling(struct tasks *t)
{
	perf_events__free(t->events);
	t->events = NULL;
}

int tasks__drain_samples(struct tasks *t, task_fn fn, void *arg)
{
	int err;

	t->sample_fn = fn;
	t->sample_arg = arg;
	err = ring_buffer__consume(t->ring);
	return err < 0 ? err : 0;
}

uint64_t tasks__samples_dropped(const struct tasks *t)
{
	return t->skel->bss->samples_dropped;
}
