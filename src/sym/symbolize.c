// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/symbolize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/strbuf.h"
#include "proc/object.h"
#include "sym/debugfile.h"
#include "sym/demangle.h"
#include "sym/elfsym.h"
#include "sym/ksyms.h"

struct symbolizer {
	char *debug_dir;
	bool annotate, by_process, off_cpu;
	uint64_t sched_start, sched_end; /* the scheduler's own code; 0: not known */
	bool ksyms_tried;
	struct ksyms *ksyms; /* NULL: not read, or not readable */
	struct strbuf text;
	size_t *ends; /* of the header and of each frame in `text` */
	struct text *frames;
	size_t capacity;
};

/* A symbol's name as it is printed, found by the address of its raw name. */
struct printed {
	const char *raw;
	UT_hash_handle hh;
	char text[];
};

/* What an object's slot holds. */
struct names {
	struct elfsym *symbols;
	struct printed *printed;
};

struct symbolizer *symbolizer__new(const struct symbolizer_options *options)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (!options)
		return s;
	s->annotate = options->annotate;
	s->by_process = options->by_process;
	s->off_cpu = options->off_cpu;
	if (options->debug_dir) {
		s->debug_dir = strdup(options->debug_dir);
		if (!s->debug_dir) {
			free(s);
			return NULL;
		}
	}
	return s;
}

void symbolizer__free(struct symbolizer *s)
{
	if (!s)
		return;
	ksyms__free(s->ksyms);
	strbuf__free(&s->text);
	free(s->ends);
	free(s->frames);
	free(s->debug_dir);
	free(s);
}

static void names_free(void *data)
{
	struct names *names = data;
	struct printed *p, *next;

	HASH_ITER (hh, names->printed, p, next) {
		HASH_DEL(names->printed, p);
		free(p);
	}
	elfsym__free(names->symbols);
	free(names);
}

static struct names *names_of(struct symbolizer *s, struct object *obj)
{
	struct names *names = object__slot(obj, OBJECT_SLOT_SYMBOLS);
	struct elf_file *debug = NULL;
	int err;

	if (names)
		return names;
	names = calloc(1, sizeof(*names));
	if (!names)
		return NULL;
	err = debugfile__find(object__file(obj), object__path(obj), s->debug_dir, &debug);
	if (!err || err == -ENOENT)
		names->symbols = elfsym__new(object__file(obj), debug);
	elf_file__free(debug);
	if (!names->symbols) {
		free(names);
		return NULL;
	}
	object__set_slot(obj, OBJECT_SLOT_SYMBOLS, names, names_free);
	return names;
}

static struct printed *print_name(const char *raw)
{
	struct strbuf name = STRBUF_INIT, text = STRBUF_INIT;
	struct printed *p = NULL;
	int err = -ENOENT;

	/* no compiler makes a name with a blank, and one would shift a trace's fields */
	if (!strchr(raw, ' '))
		err = demangle(raw, &name);
	if (err == -ENOENT || err == -E2BIG) {
		size_t len = strnlen(raw, DEMANGLE_MAX + 1);

		if (len > DEMANGLE_MAX)
			err = strbuf__append_str(&text, "??");
		else
			err = strbuf__append_untrusted(&text, raw, len, '?');
	} else if (!err) {
		err = strbuf__append_untrusted(&text, name.data, name.len, ' ');
	}
	if (!err && !text.failed)
		p = malloc(sizeof(*p) + text.len + 1);
	if (p) {
		p->raw = raw;
		memcpy(p->text, text.data, text.len + 1);
	}
	strbuf__free(&name);
	strbuf__free(&text);
	return p;
}

static int name_of(struct symbolizer *s, struct object *obj, uint64_t addr, const char **ret_name)
{
	struct names *names = names_of(s, obj);
	struct printed *p = NULL;
	const char *raw;
	uint64_t start;

	if (!names)
		return -ENOMEM;
	if (elfsym__find(names->symbols, addr, &raw, &start)) {
		*ret_name = "??";
		return 0;
	}
	HASH_FIND_PTR(names->printed, &raw, p);
	if (!p) {
		p = print_name(raw);
		if (!p)
			return -ENOMEM;
		HASH_ADD_PTR(names->printed, raw, p);
		if (!p->hh.tbl) {
			free(p);
			return -ENOMEM;
		}
	}
	*ret_name = p->text;
	return 0;
}

static int user_frame(struct symbolizer *s, const struct raw_frame *frame, size_t number)
{
	/* a return address: the call before it tells which function, a noreturn one is the last */
	uint64_t addr = frame->exact ? frame->pc : frame->pc - 1;
	const char *name = "??", *from = "";
	int err;

	if (frame->signal)
		return strbuf__printf(&s->text, "#%-2zu <signal handler called>", number);
	if (frame->object) {
		err = name_of(s, frame->object, addr - frame->bias, &name);
		if (err)
			return err;
		from = frame->from;
	}
	strbuf__printf(&s->text, "#%-2zu 0x%016" PRIx64 " in ", number, frame->pc);
	strbuf__append_str(&s->text, name);
	strbuf__append_str(&s->text, " ()");
	if (*from) {
		strbuf__append_str(&s->text, " from ");
		strbuf__append_untrusted(&s->text, from, strlen(from), ' ');
	}
	return 0;
}

/*
 * A frame that is not gdb's form, but one that every pt-pmp shortens to the bare name: a name in
 * the second field is taken as it is, and "@@" keeps the last library's name from being added.
 *
 * So the name cannot have a blank, "@@" or an '@' at its end in it; nor "0x", which would make it
 * an address; nor, for what is made of the stack, a separator of frames (',' and ';').
 */
static void bare_frame(struct symbolizer *s, size_t number, const char *name, const char *suffix,
		       const char *what, uint64_t addr)
{
	size_t start;
	char *p;

	strbuf__printf(&s->text, "#%-2zu ", number);
	start = s->text.len;
	strbuf__append_untrusted(&s->text, *name ? name : "??", *name ? strlen(name) : 2, '_');
	if (s->text.failed)
		return;
	for (p = s->text.data + start; *p; p++) {
		if (*p == ',' || *p == ';' ||
		    (*p == 'x' && p > s->text.data + start && p[-1] == '0') ||
		    (*p == '@' && (!p[1] || p[1] == '@')))
			*p = '_';
	}
	strbuf__printf(&s->text, "%s@@%s 0x%016" PRIx64, suffix, what, addr);
}

static void read_kernel_symbols(struct symbolizer *s)
{
	if (s->ksyms_tried)
		return;
	s->ksyms_tried = true;
	s->ksyms = ksyms__new(NULL);
	if (!s->ksyms || !s->off_cpu)
		return;
	s->sched_start = ksyms__address(s->ksyms, "__sched_text_start");
	s->sched_end = ksyms__address(s->ksyms, "__sched_text_end");
}

static bool in_scheduler(const struct symbolizer *s, uint64_t pc)
{
	return pc >= s->sched_start && pc < s->sched_end;
}

/* How many frames at the start are the scheduler's, and of what it called. */
static size_t scheduler_frames(const struct symbolizer *s, const uint64_t *frames, size_t n)
{
	size_t i = 0;

	while (i < n && !in_scheduler(s, frames[i]))
		i++;
	if (i == n)
		return 0;
	while (i < n && in_scheduler(s, frames[i]))
		i++;
	return i;
}

static void kernel_frame(struct symbolizer *s, uint64_t pc, bool exact, size_t number)
{
	const char *name = NULL;

	if (s->ksyms)
		name = ksyms__find(s->ksyms, exact ? pc : pc - 1);
	if (!name)
		name = "??";
	bare_frame(s, number, name, s->annotate ? "_[k]" : "", "kernel", pc);
}

/* The kernel's part, from frame number 0 on. Returns how many frames it has. */
static size_t kernel_frames(struct symbolizer *s, const struct raw_sample *sample, size_t n)
{
	size_t first = 0;

	if (!sample->n_kernel)
		return n;
	read_kernel_symbols(s);
	if (s->off_cpu)
		first = scheduler_frames(s, sample->kernel, sample->n_kernel);
	for (size_t i = first; i < sample->n_kernel; i++) {
		kernel_frame(s, sample->kernel[i], i == 0, n);
		s->ends[++n] = s->text.len;
	}
	return n;
}

static const char *end_name(enum stack_end end)
{
	switch (end) {
	case STACK_WHOLE:
		return NULL;
	case STACK_TRUNCATED:
		return "[truncated]";
	case STACK_BROKEN:
		return "[broken]";
	case STACK_GUESSED:
		return "[guessed]";
	case STACK_TORN:
		return "[torn]";
	case STACK_RUNNING:
		return "[running]";
	}
	return "[broken]";
}

static void header(struct symbolizer *s, const struct raw_sample *sample, unsigned int number)
{
	const char *name = sample->thread_name ? sample->thread_name : "";
	pid_t lwp = sample->tid ? sample->tid : sample->pid;
	size_t start;

	strbuf__printf(&s->text, "Thread %u (", number);
	if (sample->thread_pointer)
		strbuf__printf(&s->text, "Thread 0x%" PRIx64 " (LWP %d)", sample->thread_pointer,
			       (int)lwp);
	else
		strbuf__printf(&s->text, "LWP %d", (int)lwp);
	if (*name) {
		strbuf__append_str(&s->text, " \"");
		start = s->text.len;
		strbuf__append_untrusted(&s->text, name, strlen(name), ' ');
		for (size_t i = start; i < s->text.len; i++) {
			if (s->text.data[i] == '"')
				s->text.data[i] = '?';
		}
		strbuf__append_char(&s->text, '"');
	}
	strbuf__append_str(&s->text, "):");
}

static int reserve(struct symbolizer *s, size_t n)
{
	size_t *ends;
	struct text *frames;

	if (n <= s->capacity)
		return 0;
	ends = reallocarray(s->ends, n, sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	s->ends = ends;
	frames = reallocarray(s->frames, n, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	s->frames = frames;
	s->capacity = n;
	return 0;
}

int symbolizer__stack(struct symbolizer *s, const struct raw_sample *sample, unsigned int number,
		      struct stack *ret_stack)
{
	const char *end = end_name(sample->end);
	char pid[16];
	size_t n = 0;
	int err = reserve(s, sample->n_kernel + sample->n_user + 5);

	if (err)
		return err;
	strbuf__reset(&s->text);
	header(s, sample, number);
	s->ends[0] = s->text.len;
	if (sample->preempted) {
		bare_frame(s, n, "[preempted]", "", "kernel", 0);
		s->ends[++n] = s->text.len;
	}
	n = kernel_frames(s, sample, n);
	for (size_t i = 0; i < sample->n_user; i++) {
		err = user_frame(s, &sample->user[i], n);
		if (err)
			return err;
		s->ends[++n] = s->text.len;
	}
	if (end) {
		strbuf__printf(&s->text, "#%-2zu 0x%016x in %s ()", n, 0, end);
		s->ends[++n] = s->text.len;
	}
	if (s->by_process) {
		snprintf(pid, sizeof(pid), "%d", (int)sample->pid);
		bare_frame(s, n, pid, "", "process", 0);
		s->ends[++n] = s->text.len;
		bare_frame(s, n, sample->process_name ? sample->process_name : "", "", "process",
			   0);
		s->ends[++n] = s->text.len;
	}
	if (s->text.failed)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		s->frames[i] = (struct text){s->text.data + s->ends[i],
					     s->ends[i + 1] - s->ends[i]};
	*ret_stack = (struct stack){
		.header = {s->text.data, s->ends[0]},
		.frames = s->frames,
		.n_frames = n,
		.count = sample->count,
	};
	return 0;
}

bool symbolizer__kernel_names(const struct symbolizer *s)
{
	return !s->ksyms_tried || (s->ksyms && !ksyms__hidden(s->ksyms));
}
