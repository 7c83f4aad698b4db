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

#include "proc/object.h"
#include "proc/object_cache.h"
#include "sym/symbolize.h"

int _Z14a_known_symbolPKc(const char *text);
__attribute__((noinline)) int _Z14a_known_symbolPKc(const char *text)
{
	return puts(text);
}

struct fixture {
	struct symbolizer *s;
	struct object_cache *cache;
	struct objects *o;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct maps *m = maps__read(getpid());

	assert_non_null(f);
	assert_non_null(m);
	f->s = symbolizer__new(&(struct symbolizer_options){.debug_dir = "/nowhere"});
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
	struct raw_sample sample = {.tid = 77, .user = frames, .n_user = 7};
	struct stack stack;
	Dl_info info;
	char want[512];

	assert_true(dladdr((void *)(uintptr_t)crc, &info));
	resolve(f, frames, 7);
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	assert_int_equal(stack.n_frames, 7);
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
static void test_kernel_frames(void **state)
{
	struct fixture *f = *state;
	char line[512], name[256] = "", want[512];
	unsigned long long addr = 0;
	uint64_t kernel[2];
	struct raw_frame frame = {.pc = 0x10};
	struct raw_sample sample = {.kernel = kernel, .n_kernel = 2, .user = &frame, .n_user = 1};
	struct stack stack;
	FILE *file = fopen("/proc/kallsyms", "re");

	assert_true(symbolizer__kernel_names(f->s));
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx T %255s", &addr, name) == 2 && addr)
			break;
		name[0] = '\0';
	}
	if (file)
		fclose(file);
	if (!name[0]) {
		addr = 0xffffffff81000000;
		strcpy(name, "??");
	}
	kernel[0] = addr;
	kernel[1] = addr + 1;
	assert_int_equal(symbolizer__stack(f->s, &sample, 1, &stack), 0);
	assert_int_equal(stack.n_frames, 3);
	snprintf(want, sizeof(want), "#0  %s@@kernel 0x%016llx", name, addr);
	expect(stack.frames[0], want);
	snprintf(want, sizeof(want), "#1  %s@@kernel 0x%016llx", name, addr + 1);
	expect(stack.frames[1], want);
	expect(stack.frames[2], "#2  0x0000000000000010 in ?? ()");
	assert_int_equal(symbolizer__kernel_names(f->s), strcmp(name, "??") != 0);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
