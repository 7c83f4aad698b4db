// SPDX-License-Identifier: GPL-2.0-or-later
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

#include "fold/aggregate.h"
#include "proc/object.h"
#include "proc/object_cache.h"
#include "sym/symbolize.h"
#include "write/writer.h"

int _Z14a_known_symbolPKc(const char *text);
__attribute__((noinline)) int _Z14a_known_symbolPKc(const char *text)
{
	return puts(text);
}

struct fixture {
	struct symbolizer *s;
	struct object_cache *cache;
	struct objects *o;
	struct strbuf report;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct maps *m = maps__read(getpid());

	assert_non_null(f);
	assert_non_null(m);
	f->s = symbolizer__new(&(struct symbolizer_options){
		.names = {.debug_dir = "/nowhere", .no_lines = true, .no_inlines = true}});
	f->cache = object_cache__new();
	assert_non_null(f->cache);
	f->o = objects__new(getpid(), f->cache);
	assert_non_null(f->s);
	assert_non_null(f->o);
	assert_int_equal(objects__set_maps(f->o, m), 0);
	maps__free(m);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	symbolizer__free(f->s);
	objects__free(f->o);
	object_cache__free(f->cache);
	strbuf__free(&f->report);
	free(f);
	return 0;
}

static void expect(struct text text, const char *want)
{
	if (text.len != strlen(want) || memcmp(text.str, want, text.len))
		fail_msg("'%.*s', not '%s'", (int)text.len, text.str, want);
}

/* what the capture does */
static void resolve(const struct fixture *f, struct raw_frame *frames, size_t n)
{
	struct code_place place;

	for (size_t i = 0; i < n; i++) {
		if (objects__resolve(f->o, frames[i].pc - !frames[i].exact, &place))
			continue;
		frames[i].object = place.object;
		frames[i].bias = place.bias;
		frames[i].from = place.from;
	}
}

static void test_user_frames(void **state)
{
	struct fixture *f = *state;
	uint64_t here = (uintptr_t)&_Z14a_known_symbolPKc;
	uint64_t crc = (uintptr_t)dlsym(RTLD_DEFAULT, "crc32");
	struct raw_frame frames[] = {
		{.pc = here, .exact = true},
		{.pc = here + 1},
		{.pc = crc, .exact = true},
		{.pc = crc + 1},
		{.pc = 0x1234, .exact = true},
		{.pc = 0x5678, .signal = true},
		{.pc = 0},
	};
	struct raw_sample sample = {.tid = 77, .user = frames, .n_user = 7, .count = 5};
	struct stack stack;
	Dl_info info;
	char want[512];

	assert_true(dladdr((void *)(uintptr_t)crc, &info));
	resolve(f, frames, 7);
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	assert_int_equal(stack.n_frames, 7);
	assert_int_equal(stack.count, 5);
	expect(stack.header, "Thread 1 (LWP 77):");
	snprintf(want, sizeof(want), "#0  0x%016" PRIx64 " in a_known_symbol(char const*) ()",
		 here);
	expect(stack.frames[0], want);
	snprintf(want, sizeof(want), "#1  0x%016" PRIx64 " in a_known_symbol(char const*) ()",
		 here + 1);
	expect(stack.frames[1], want);
	snprintf(want, sizeof(want), "#2  0x%016" PRIx64 " in crc32 () from %s", crc,
		 info.dli_fname);
	expect(stack.frames[2], want);
	snprintf(want, sizeof(want), "#3  0x%016" PRIx64 " in crc32 () from %s", crc + 1,
		 info.dli_fname);
	expect(stack.frames[3], want);
	expect(stack.frames[4], "#4  0x0000000000001234 in ?? ()");
	expect(stack.frames[5], "#5  <signal handler called>");
	expect(stack.frames[6], "#6  0x0000000000000000 in ?? ()");
}

static void test_vdso(void **state)
{
	struct fixture *f = *state;
	struct raw_frame frame = {.exact = true};
	struct raw_sample sample = {.user = &frame, .n_user = 1};
	void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
	struct stack stack;
	char want[128];

	if (!vdso)
		skip();
	frame.pc = (uintptr_t)dlsym(vdso, "__vdso_getcpu");
	if (!frame.pc)
		skip();
	resolve(f, &frame, 1);
	snprintf(want, sizeof(want), "#0  0x%016" PRIx64 " in getcpu ()", frame.pc);
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	expect(stack.frames[0], want);
	dlclose(vdso);
}

static void test_ends(void **state)
{
	static const struct {
		enum stack_end end;
		const char *text;
	} cases[] = {
		{STACK_TRUNCATED, "#1  0x0000000000000000 in [truncated] ()"},
		{STACK_BROKEN, "#1  0x0000000000000000 in [broken] ()"},
		{STACK_GUESSED, "#1  0x0000000000000000 in [guessed] ()"},
		{STACK_TORN, "#1  0x0000000000000000 in [torn] ()"},
		{STACK_RUNNING, "#1  0x0000000000000000 in [running] ()"},
	};
	struct fixture *f = *state;
	struct raw_frame frame = {.pc = 1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct raw_sample sample = {.user = &frame, .n_user = 1, .end = cases[i].end};
		struct stack stack;

		assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
		assert_int_equal(stack.n_frames, 2);
		expect(stack.frames[1], cases[i].text);
	}
}

static void test_numbers(void **state)
{
	struct fixture *f = *state;
	struct raw_frame *frames = calloc(1200, sizeof(*frames));
	struct raw_sample sample = {.user = frames, .n_user = 1200, .end = STACK_TRUNCATED};
	struct stack stack;

	assert_non_null(frames);
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	assert_int_equal(stack.n_frames, 1201);
	expect(stack.frames[9], "#9  0x0000000000000000 in ?? ()");
	expect(stack.frames[10], "#10 0x0000000000000000 in ?? ()");
	expect(stack.frames[100], "#100 0x0000000000000000 in ?? ()");
	expect(stack.frames[1200], "#1200 0x0000000000000000 in [truncated] ()");
	free(frames);
}

static void test_headers(void **state)
{
	static const struct {
		const char *name;
		uint64_t thread_pointer;
		const char *header;
	} cases[] = {
		{"mariadbd", 0x7f1b2c7fe6c0,
		 "Thread 3 (Thread 0x7f1b2c7fe6c0 (LWP 2345) \"mariadbd\"):"},
		{"my thread", 1, "Thread 3 (Thread 0x1 (LWP 2345) \"my thread\"):"},
		{"a", 0, "Thread 3 (LWP 2345 \"a\"):"},
		{"", 16, "Thread 3 (Thread 0x10 (LWP 2345)):"},
		{NULL, 16, "Thread 3 (Thread 0x10 (LWP 2345)):"},
		{"a\nThread 9 (\x1b[31m\"\xff\t", 16,
		 "Thread 3 (Thread 0x10 (LWP 2345) \"a?Thread 9 (?[31m???\"):"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct raw_sample sample = {.tid = 2345,
					    .thread_name = cases[i].name,
					    .thread_pointer = cases[i].thread_pointer};
		struct stack stack;

		assert_int_equal(symbolizer__stack(f->s, &sample, 3, &stack), 0);
		assert_int_equal(stack.n_frames, 0);
		expect(stack.header, cases[i].header);
	}
}

/* the first text symbol of this kernel, or an address without a name if they are hidden */
static uint64_t find_kernel_symbol(char ret_name[256])
{
	char line[512], name[256] = "";
	unsigned long long addr = 0;
	FILE *file = fopen("/proc/kallsyms", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx T %255s", &addr, name) == 2 && addr)
			break;
		name[0] = '\0';
	}
	if (file)
		fclose(file);
	strcpy(ret_name, name[0] ? name : "??");
	return name[0] ? addr : 0xffffffff81000000;
}

static void test_kernel_frames(void **state)
{
	struct fixture *f = *state;
	char name[256], want[512];
	uint64_t addr = find_kernel_symbol(name), kernel[2] = {addr, addr + 1};
	struct raw_frame frame = {.pc = 0x10};
	struct raw_sample sample = {.kernel = kernel, .n_kernel = 2, .user = &frame, .n_user = 1};
	struct strbuf gaps = STRBUF_INIT;
	struct stack stack;

	assert_int_equal(symbolizer__gaps(f->s, &gaps), 0);
	assert_int_equal(gaps.len, 0);
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	assert_int_equal(stack.n_frames, 3);
	snprintf(want, sizeof(want), "#0  %s@@kernel 0x%016" PRIx64, name, addr);
	expect(stack.frames[0], want);
	snprintf(want, sizeof(want), "#1  %s@@kernel 0x%016" PRIx64, name, addr + 1);
	expect(stack.frames[1], want);
	expect(stack.frames[2], "#2  0x0000000000000010 in ?? ()");
	assert_int_equal(symbolizer__gaps(f->s, &gaps), 0);
	assert_int_equal(gaps.len && strstr(gaps.data, "kptr_restrict"), !strcmp(name, "??"));
	strbuf__free(&gaps);
}

/* the samples by way of shortener, aggregate and a writer */
static void report_samples(struct fixture *f, const struct symbolizer_options *options,
			   enum shorten_dialect dialect, const char *tids,
			   int (*write)(struct strbuf *out, const struct report *report),
			   const struct raw_sample *samples, size_t n, const char *want)
{
	struct symbolizer *s = symbolizer__new(options);
	struct shortener *shortener = shortener__new(dialect);
	struct filter *filter = filter__new(tids, NULL);
	struct aggregate *aggregate = aggregate__new(shortener, filter, 0);
	struct report report;
	struct stack stack;

	assert_non_null(s);
	assert_non_null(aggregate);
	strbuf__reset(&f->report);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(symbolizer__stack(s, &samples[i], 1, &stack), 0);
		assert_true(aggregate__add(aggregate, &stack) >= 0);
	}
	assert_int_equal(aggregate__report(aggregate, &report), 0);
	assert_int_equal(write(&f->report, &report), 0);
	assert_string_equal(f->report.data ? f->report.data : "", want);
	aggregate__free(aggregate);
	filter__free(filter);
	shortener__free(shortener);
	symbolizer__free(s);
}

static const struct symbolizer_options by_process = {
	.names = {.debug_dir = "/nowhere", .no_lines = true, .no_inlines = true},
	.by_process = true};

/* whatever a process is named, its frame is one field of the line, the outermost, and so printed */
static void test_process_names(void **state)
{
	static const struct {
		const char *name, *printed;
	} cases[] = {
		{"mariadbd", "mariadbd"},
		{"Web Content", "Web_Content"},
		{"a, b;c", "a__b_c"},
		{"1,2;3 4 5", "1_2_3_4_5"},
		{"new\nline\t\x1b\x7f", "new?line???"},
		{"caf\303\251", "caf\303\251"},
		{"caf\351", "caf?"},
		{"(sd-pam)", "(sd-pam)"},
		{"a(b", "a(b"},
		{"a)b", "a)b"},
		{"f(int)", "f(int)"},
		{"a<b>::c", "a<b>::c"},
		{"<", "<"},
		{">::", ">::"},
		{"??", "??"},
		{"", "??"},
		{" ", "_"},
		{NULL, "??"},
		{"in", "in"},
		{" in ", "_in_"},
		{"x in y at z", "x_in_y_at_z"},
		{"at", "at"},
		{"from", "from"},
		{"void", "void"},
		{"const", "const"},
		{"a@b", "a@b"},
		{"a@@b", "a_@b"},
		{"a@", "a_"},
		{"@@@@", "____"},
		{"0x12", "0_12"},
		{"0x0x", "0_0_"},
		{"x0y", "x0y"},
		{"/usr/bin/x", "/usr/bin/x"},
		{"#0", "#0"},
		{"Thread 1 (LWP 2)", "Thread_1_(LWP_2)"},
		{"%s%n", "%s%n"},
		{"kworker/0:1-events", "kworker/0:1-events"},
	};
	static const enum shorten_dialect dialects[] = {SHORTEN_GDB, SHORTEN_EU, SHORTEN_PTEU};
	struct fixture *f = *state;
	struct raw_frame frame = {.exact = true};
	char want[256];

	frame.pc = (uintptr_t)dlsym(RTLD_DEFAULT, "crc32"); /* a library's: its name carries over */
	resolve(f, &frame, 1);
	for (size_t i = 0; i < 3 * sizeof(cases) / sizeof(cases[0]); i++) {
		const char *name = cases[i / 3].name, *printed = cases[i / 3].printed;
		struct raw_sample samples[] = {
			{.pid = 1234,
			 .process_name = name,
			 .user = &frame,
			 .n_user = 1,
			 .count = 7},
			{.pid = 1234,
			 .process_name = name,
			 .user = &frame,
			 .n_user = 1,
			 .count = 9},
		};

		if (dialects[i % 3] != SHORTEN_GDB) /* it takes eu-stack's line for the frame */
			samples[0].n_user = samples[1].n_user = 0;
		snprintf(want, sizeof(want), "%s;1234%s 16\n", printed,
			 samples[0].n_user ? ";crc32(libz.so.1)" : "");
		report_samples(f, &by_process, dialects[i % 3], NULL, write_folded__report, samples,
			       2, want);
	}
}

/* how a stack ends is told in its own place */
static void test_by_process(void **state)
{
	struct fixture *f = *state;
	struct raw_frame frame = {.pc = 0x10};
	uint64_t kernel = 1;
	const struct raw_sample samples[] = {
		{.pid = 12,
		 .process_name = "a",
		 .end = STACK_BROKEN,
		 .user = &frame,
		 .n_user = 1,
		 .kernel = &kernel,
		 .n_kernel = 1,
		 .count = 3},
		{.pid = 13, .process_name = "b", .count = 2},
		{.pid = 14, .process_name = "c", .end = STACK_RUNNING, .count = 1},
	};
	struct symbolizer *s = symbolizer__new(&by_process);
	struct stack stack;

	report_samples(f, &by_process, SHORTEN_GDB, NULL, write_folded__report, samples, 3,
		       "a;12;[broken];::??;?? 3\nb;13 2\nc;14;[running] 1\n");
	report_samples(f, &by_process, SHORTEN_GDB, NULL, write_pmp__report, samples, 3,
		       "      3 ??,::??,[broken],12,a\n      2 13,b\n      1 [running],14,c\n");
	assert_non_null(s);
	assert_int_equal(symbolizer__stack(s, &samples[1], 4, &stack), 0);
	expect(stack.header, "Thread 4 (LWP 13):");
	assert_int_equal(stack.count, 2);
	assert_int_equal(stack.n_frames, 2);
	expect(stack.frames[0], "#0  13@@process 0x0000000000000000");
	expect(stack.frames[1], "#1  b@@process 0x0000000000000000");
	symbolizer__free(s);
	/* without them, nothing is left of the second */
	assert_int_equal(symbolizer__stack(f->s, &samples[1], 4, &stack), 0);
	assert_int_equal(stack.n_frames, 0);
}

/* --tids goes by thread and name where a stack is one thread's, else by process */
static void test_tids(void **state)
{
	struct fixture *f = *state;
	const struct raw_sample samples[] = {
		{.pid = 50, .tid = 51, .thread_name = "worker", .process_name = "p", .count = 3},
		{.pid = 50, .thread_name = "pool of a", .process_name = "p", .count = 2},
		{.pid = 60, .process_name = "q", .count = 1},
	};

	report_samples(f, &by_process, SHORTEN_GDB, "^51$", write_folded__report, samples, 3,
		       "p;50 3\n");
	report_samples(f, &by_process, SHORTEN_GDB, "^50$", write_folded__report, samples, 3,
		       "p;50 2\n");
	report_samples(f, &by_process, SHORTEN_GDB, "^worker$,^60$", write_folded__report, samples,
		       3, "p;50 3\nq;60 1\n");
	report_samples(f, &by_process, SHORTEN_GDB, "^pool of a$", write_folded__report, samples, 3,
		       "p;50 2\n");
}

static void test_annotate(void **state)
{
	const struct symbolizer_options annotate = {
		.names = {.debug_dir = "/nowhere", .no_lines = true, .no_inlines = true},
		.annotate = true};
	struct fixture *f = *state;
	uint64_t kernel[2] = {0};
	struct raw_frame frame = {.exact = true};
	struct raw_sample sample = {
		.pid = 1, .kernel = kernel, .n_kernel = 1, .user = &frame, .n_user = 1, .count = 1};
	struct symbolizer *s = symbolizer__new(&annotate);
	char want[600];
	char name[256] = "";
	struct stack stack;

	assert_non_null(s);
	kernel[0] = find_kernel_symbol(name);
	frame.pc = (uintptr_t)dlsym(RTLD_DEFAULT, "crc32");
	resolve(f, &frame, 1);
	assert_int_equal(symbolizer__stack(s, &sample, 1, &stack), 0);
	snprintf(want, sizeof(want), "#0  %s_[k]@@kernel 0x%016" PRIx64, name, kernel[0]);
	expect(stack.frames[0], want);
	symbolizer__free(s);
	/* after a frame of a library, too, whose name would carry over */
	snprintf(want, sizeof(want), "crc32(libz.so.1);%s_[k] 1\n", name);
	report_samples(f, &annotate, SHORTEN_GDB, NULL, write_folded__report, &sample, 1, want);
	for (int dialect = SHORTEN_GDB; dialect <= SHORTEN_PTEU; dialect++) {
		sample.n_user = 0;
		snprintf(want, sizeof(want), "%s_[k] 1\n", name);
		report_samples(f, &annotate, (enum shorten_dialect)dialect, NULL,
			       write_folded__report, &sample, 1, want);
		/* hidden, or of no known code */
		kernel[1] = 0x1000;
		sample.kernel = kernel + 1;
		report_samples(f, &annotate, (enum shorten_dialect)dialect, NULL,
			       write_folded__report, &sample, 1, "??_[k] 1\n");
		sample.kernel = kernel;
	}
}

/* However long names are, and however many frames have them, a stack is only so large. */
static void test_long_stack(void **state)
{
	enum { FRAMES = 4096, FROM = 60000 };
	struct fixture *f = *state;
	struct raw_frame *frames = calloc(FRAMES, sizeof(*frames));
	struct raw_sample sample = {.user = frames, .n_user = FRAMES, .process_name = "p"};
	struct strbuf gaps = STRBUF_INIT;
	char *from = malloc(FROM + 1);
	struct stack stack;
	size_t len = 0;

	assert_non_null(frames);
	assert_non_null(from);
	memset(from, 'l', FROM);
	from[FROM] = '\0';
	for (size_t i = 0; i < FRAMES; i++)
		frames[i].pc = (uintptr_t)&_Z14a_known_symbolPKc + 1;
	resolve(f, frames, FRAMES);
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	assert_int_equal(stack.n_frames, FRAMES);
	assert_int_equal(symbolizer__gaps(f->s, &gaps), 0);
	assert_int_equal(gaps.len, 0);
	for (size_t i = 0; i < FRAMES - 1; i++)
		frames[i].from = from;
	frames[FRAMES - 1].from = "short";
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	assert_int_equal(stack.n_frames, FRAMES);
	for (size_t i = 0; i < stack.n_frames; i++) {
		assert_non_null(strstr(stack.frames[i].str, " in a_known_symbol(char const*) ()"));
		len += stack.frames[i].len;
	}
	assert_true(len > 4 << 20 && len < 5 << 20);
	/* what is short is there to the end */
	assert_non_null(strstr(stack.frames[FRAMES - 1].str, " from short"));
	assert_int_equal(symbolizer__gaps(f->s, &gaps), 0);
	assert_string_equal(gaps.data,
			    "1 stack has more than 4 MiB of names: inlined functions and "
			    "long names are left out\n");
	/* the next one is not the worse for it */
	sample.n_user = 3;
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	assert_int_equal(stack.n_frames, 3);
	strbuf__free(&gaps);
	free(from);
	free(frames);
}

/* All names together, too. */
static void test_many_names(void **state)
{
	struct fixture *f = *state;
	struct raw_frame frames[2] = {
		{.pc = (uintptr_t)&_Z14a_known_symbolPKc, .exact = true},
		{.pc = (uintptr_t)&setup, .exact = true},
	};
	struct raw_sample sample = {.user = frames, .n_user = 2};
	struct strbuf gaps = STRBUF_INIT;
	struct stack stack;

	symbolizer__free(f->s);
	f->s = symbolizer__new(&(struct symbolizer_options){.names = {.debug_dir = "/nowhere",
								      .no_lines = true,
								      .no_inlines = true,
								      .max_text = 8}});
	resolve(f, frames, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
		assert_non_null(strstr(stack.frames[0].str, " in a_known_symbol(char const*) ()"));
		assert_non_null(strstr(stack.frames[1].str, " in ?? ()"));
	}
	assert_int_equal(symbolizer__gaps(f->s, &gaps), 0);
	assert_string_equal(gaps.data, "names take more than 0 MiB: 1 of them are shown as ??\n");
	strbuf__free(&gaps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_user_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vdso, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_process_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_annotate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
