// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/symbolize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "sym/code_names.h"
#include "sym/kernel_names.h"
#include "sym/perf_maps.h"

#define FIRST_CAPACITY 64
#define MAX_JIT_NAME   4096

/* Names may be long, and inlined functions many: after so many bytes of a stack only the outermost
 * function at each address is named, and only by what is short. */
#define MAX_STACK_TEXT (4u << 20)
#define SHORT_TEXT     256

struct symbolizer {
	struct code_names *names;
	struct perf_maps *jit;
	bool annotate, by_process, off_cpu;
	uint64_t sched_start, sched_end; /* the scheduler's own code; 0: not known */
	bool sched_asked;
	struct kernel_names *kernel;
	struct strbuf text;
	size_t *ends; /* of the header and of each frame in `text` */
	struct text *frames;
	size_t n, capacity; /* frames in `text`; room for that many and one more end */
	size_t too_long;    /* stacks with more than MAX_STACK_TEXT */
};

struct symbolizer *symbolizer__new(const struct symbolizer_options *options)
{
	static const struct symbolizer_options defaults;
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (!options)
		options = &defaults;
	s->annotate = options->annotate;
	s->by_process = options->by_process;
	s->off_cpu = options->off_cpu;
	s->kernel = kernel_names__new(options->kernel, NULL);
	s->names = code_names__new(&options->names);
	s->jit = perf_maps__new();
	s->capacity = FIRST_CAPACITY;
	s->ends = calloc(s->capacity, sizeof(*s->ends));
	s->frames = calloc(s->capacity, sizeof(*s->frames));
	if (s->kernel && s->names && s->jit && s->ends && s->frames)
		return s;
	symbolizer__free(s);
	errno = ENOMEM;
	return NULL;
}

void symbolizer__free(struct symbolizer *s)
{
	if (!s)
		return;
	kernel_names__free(s->kernel);
	strbuf__free(&s->text);
	free(s->ends);
	free(s->frames);
	code_names__free(s->names);
	perf_maps__free(s->jit);
	free(s);
}

/* The frame that was appended is complete. */
static void end_frame(struct symbolizer *s)
{
	if (s->n + 1 == s->capacity) {
		size_t capacity = s->capacity * 2;
		size_t *ends = reallocarray(s->ends, capacity, sizeof(*ends));
		struct text *frames;

		if (ends)
			s->ends = ends;
		frames = ends ? reallocarray(s->frames, capacity, sizeof(*frames)) : NULL;
		if (!frames) {
			s->text.failed = true;
			return;
		}
		s->frames = frames;
		s->capacity = capacity;
	}
	s->ends[++s->n] = s->text.len;
}

/* "0x%016x in ": of every frame of every stack, so not by printf. */
static void append_address(struct symbolizer *s, uint64_t pc)
{
	char text[] = "0x0123456789abcdef in ";

	for (int i = 17; i > 1; i--, pc >>= 4)
		text[i] = "0123456789abcdef"[pc & 15];
	strbuf__append(&s->text, text, sizeof(text) - 1);
}

/* "#%-2zu ", likewise. */
static void append_number(struct symbolizer *s)
{
	char text[] = "#0  ";

	if (s->n >= 100) {
		strbuf__printf(&s->text, "#%zu ", s->n);
		return;
	}
	if (s->n >= 10) {
		text[1] = (char)('0' + s->n / 10);
		text[2] = (char)('0' + s->n % 10);
	} else {
		text[1] = (char)('0' + s->n);
	}
	strbuf__append(&s->text, text, sizeof(text) - 1);
}

static void named_frame(struct symbolizer *s, uint64_t pc, const struct named_frame *frame,
			const char *from)
{
	append_number(s);
	if (!frame->no_address)
		append_address(s, pc);
	strbuf__append_str(&s->text, frame->name);
	strbuf__append_str(&s->text, " ()");
	if (frame->file) {
		strbuf__append_str(&s->text, " at ");
		strbuf__append_str(&s->text, frame->file);
		strbuf__printf(&s->text, ":%d", frame->line);
	} else if (*from) {
		strbuf__append_str(&s->text, " from ");
		strbuf__append_untrusted(&s->text, from, strlen(from), ' ');
	}
	end_frame(s);
}

/* What is to be named, in the object. Of a return address the call before it tells which function,
 * a noreturn one is the last. */
static uint64_t named_addr(const struct raw_frame *raw)
{
	return (raw->exact ? raw->pc : raw->pc - 1) - raw->bias;
}

/* Code that is in no object: the program may have left its name. */
static void jit_frame(struct symbolizer *s, const struct raw_frame *raw, pid_t pid)
{
	const char *name = perf_maps__find(s->jit, raw->pid ? raw->pid : pid,
					   raw->exact ? raw->pc : raw->pc - 1);

	append_number(s);
	append_address(s, raw->pc);
	if (name)
		strbuf__append_untrusted(&s->text, name, strnlen(name, MAX_JIT_NAME), ' ');
	else
		strbuf__append_str(&s->text, "??");
	strbuf__append_str(&s->text, " ()");
	end_frame(s);
}

static const char *brief_text(const char *text, const char *otherwise)
{
	return strnlen(text, SHORT_TEXT + 1) > SHORT_TEXT ? otherwise : text;
}

static int named_frames(struct symbolizer *s, const struct raw_frame *raw, pid_t pid)
{
	const struct named_frame *frames;
	int n;

	if (!raw->object) {
		jit_frame(s, raw, pid);
		return 0;
	}
	n = code_names__find(s->names, raw->object, named_addr(raw), raw->exact, &frames);
	for (int i = 0; i < n; i++) {
		struct named_frame brief = frames[n - 1];

		if (s->text.len <= MAX_STACK_TEXT) {
			named_frame(s, raw->pc, &frames[i], raw->from);
			continue;
		}
		brief.name = brief_text(brief.name, "??");
		brief.file = brief.file ? brief_text(brief.file, NULL) : NULL;
		brief.no_address = false;
		named_frame(s, raw->pc, &brief, brief_text(raw->from, ""));
		break;
	}
	return n < 0 ? n : 0;
}

/* Functions that made a jump of their last call left no frame between these two. */
static int tail_calls(struct symbolizer *s, const struct raw_frame *callee,
		      const struct raw_frame *caller)
{
	const uint64_t *addrs;
	int n, err = 0;

	if (!caller->object || caller->object != callee->object || caller->bias != callee->bias ||
	    caller->exact || caller->signal || callee->signal)
		return 0;
	n = code_names__tail_calls(s->names, caller->object, caller->pc - caller->bias,
				   named_addr(callee), &addrs);
	for (int i = 0; i < n && !err; i++) {
		struct raw_frame between = *caller;

		between.pc = addrs[i] + caller->bias;
		err = named_frames(s, &between, 0);
	}
	return n < 0 ? n : err;
}

/* All that frame number `i` of the stack stands for: functions may be inlined there. */
static int user_frames(struct symbolizer *s, const struct raw_sample *sample, size_t i)
{
	const struct raw_frame *raw = &sample->user[i];
	int err = i ? tail_calls(s, raw - 1, raw) : 0;

	if (err)
		return err;
	if (!raw->signal)
		return named_frames(s, raw, sample->pid);
	append_number(s);
	strbuf__append_str(&s->text, "<signal handler called>");
	end_frame(s);
	return 0;
}

/*
 * A frame that is not gdb's form, but one that every pt-pmp shortens to the bare name: a name in
 * the second field is taken as it is, and "@@" keeps the last library's name from being added.
 *
 * So the name cannot have a blank, "@@" or an '@' at its end in it; nor "0x", which would make it
 * an address; nor, for what is made of the stack, a separator of frames (',' and ';').
 */
static void bare_frame(struct symbolizer *s, const char *name, const char *suffix, const char *what,
		       uint64_t addr)
{
	size_t start;
	char *p;

	append_number(s);
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
	strbuf__append_str(&s->text, suffix);
	strbuf__append_str(&s->text, "@@");
	strbuf__append_str(&s->text, what);
	strbuf__printf(&s->text, " 0x%016" PRIx64, addr);
	end_frame(s);
}

static void find_scheduler(struct symbolizer *s)
{
	if (s->sched_asked)
		return;
	s->sched_asked = true;
	s->sched_start = kernel_names__address(s->kernel, "__sched_text_start");
	s->sched_end = kernel_names__address(s->kernel, "__sched_text_end");
}

/* They are dropped by where they lie. */
static bool shows_scheduler(const struct symbolizer *s)
{
	return s->sched_asked && !s->sched_end;
}

static bool in_scheduler(const struct symbolizer *s, uint64_t pc)
{
	return pc >= s->sched_start && pc < s->sched_end;
}

/* How many frames at the start are the scheduler's, and of what it called. */
static size_t scheduler_frames(struct symbolizer *s, const uint64_t *frames, size_t n)
{
	size_t i = 0;

	find_scheduler(s);
	while (i < n && !in_scheduler(s, frames[i]))
		i++;
	if (i == n)
		return 0;
	while (i < n && in_scheduler(s, frames[i]))
		i++;
	return i;
}

static void kernel_frame(struct symbolizer *s, uint64_t pc, bool exact)
{
	const char *name = kernel_names__find(s->kernel, exact ? pc : pc - 1);

	bare_frame(s, name ? name : "??", s->annotate ? "_[k]" : "", "kernel", pc);
}

static void kernel_frames(struct symbolizer *s, const struct raw_sample *sample)
{
	size_t first = 0;

	if (!sample->n_kernel)
		return;
	if (s->off_cpu)
		first = scheduler_frames(s, sample->kernel, sample->n_kernel);
	for (size_t i = first; i < sample->n_kernel; i++)
		kernel_frame(s, sample->kernel[i], i == 0);
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

int symbolizer__stack(struct symbolizer *s, const struct raw_sample *sample, unsigned int number,
		      struct stack *ret_stack)
{
	const char *end = end_name(sample->end);
	char pid[16];
	int err;

	strbuf__reset(&s->text);
	header(s, sample, number);
	s->n = 0;
	s->ends[0] = s->text.len;
	if (sample->preempted)
		bare_frame(s, "[preempted]", "", "kernel", 0);
	kernel_frames(s, sample);
	for (size_t i = 0; i < sample->n_user; i++) {
		err = user_frames(s, sample, i);
		if (err)
			return err;
	}
	s->too_long += s->text.len > MAX_STACK_TEXT;
	if (end) {
		append_number(s);
		append_address(s, 0);
		strbuf__printf(&s->text, "%s ()", end);
		end_frame(s);
	}
	if (s->by_process) {
		snprintf(pid, sizeof(pid), "%d", (int)sample->pid);
		bare_frame(s, pid, "", "process", 0);
		bare_frame(s, sample->process_name ? sample->process_name : "", "", "process", 0);
	}
	if (s->text.failed)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++)
		s->frames[i] = (struct text){s->text.data + s->ends[i],
					     s->ends[i + 1] - s->ends[i]};
	*ret_stack = (struct stack){
		.header = {s->text.data, s->ends[0]},
		.frames = s->frames,
		.n_frames = s->n,
		.count = sample->count,
	};
	return 0;
}

int symbolizer__gaps(const struct symbolizer *s, struct strbuf *ret_text)
{
	if (kernel_names__hidden(s->kernel))
		strbuf__append_str(ret_text, "kernel names are hidden (kernel.kptr_restrict): "
					     "kernel frames are shown as ??\n");
	else if (shows_scheduler(s))
		strbuf__append_str(ret_text,
				   "kernel addresses are hidden (kernel.kptr_restrict is 2, or "
				   "CAP_SYSLOG is missing): the scheduler's own frames are shown, "
				   "too\n");
	if (s->too_long)
		strbuf__printf(ret_text,
			       "%zu stack%s more than %u MiB of names: inlined functions and long "
			       "names are left out\n",
			       s->too_long, s->too_long == 1 ? " has" : "s have",
			       MAX_STACK_TEXT >> 20);
	return code_names__gaps(s->names, ret_text);
}
