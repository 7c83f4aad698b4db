// SPDX-License-Identifier: GPL-2.0-or-later
/* The worker on a program with debug information, as it is and with bytes changed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "dwarf/worker.h"
#include "proc/elf_file.h"

/* not all of it is needed here */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#include "tests/tools/mutate.h"

#define N_MUTANTS 200
#define MAX_CPU	  5  /* seconds that a worker may take: what worker.c gives, twice */
#define MAX_WALL  60 /* that is not: it waits for a CPU, too */

/* This program has -g, and these are inlined one into the other. */
static volatile int sink;

static inline __attribute__((always_inline)) int third(int x)
{
	return sink + x;
}

static inline __attribute__((always_inline)) int second(int x)
{
	return third(x) * sink;
}

static inline __attribute__((always_inline)) int first(int x)
{
	return second(x) - sink;
}

__attribute__((noinline)) static int around(int x)
{
	return first(x) + 1;
}

/* where this program's file begins in memory: the linker says */
extern const char __ehdr_start[];

static uint64_t address_of_around(void)
{
	return (uint64_t)(uintptr_t)around - (uint64_t)(uintptr_t)__ehdr_start;
}

static int open_self(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_chain(const struct debug_frame *frames, int n)
{
	return n == 4 && !strcmp(frames[0].name, "third") && !strcmp(frames[1].name, "second") &&
	       !strcmp(frames[2].name, "first") && !strcmp(frames[3].name, "around");
}

/* Whether some address of around() is in third(), inlined. */
static bool finds_chain(struct worker *w, int number)
{
	const struct debug_frame *frames;
	bool found = false;

	for (uint64_t at = 0; at < 128 && !found; at++)
		found = is_chain(frames,
				 worker__find(w, number, address_of_around() + at, true, &frames));
	if (found) {
		for (int i = 0; i < 4; i++) {
			assert_non_null(strstr(frames[i].file, "test_worker.c"));
			assert_true(frames[i].line > 20 && frames[i].line < 60);
			assert_false(frames[i].mangled);
		}
		assert_true(frames[0].line < frames[1].line);
		assert_true(frames[1].no_address && frames[3].no_address);
	}
	return found;
}

static void test_inlined(void **state)
{
	struct worker *w = worker__new(false);
	const struct debug_frame *frames;
	int number;

	(void)state;
	sink = around(3);
	assert_non_null(w);
	number = worker__add(w, open_self(), -1);
	assert_int_equal(number, 0);
	assert_true(finds_chain(w, number));
	/* the address of a call: the line is that of the byte before */
	assert_true(worker__find(w, number, address_of_around() + 4, false, &frames) >= 1);
	assert_int_equal(worker__find(w, number, 0x7fffffffffff, true, &frames), 0);
	assert_int_equal(worker__given_up(w), 0);
	worker__free(w);
	worker__free(NULL);
}

/* The worker has no privileges: what is open to all is all that it can open. */
static void test_no_dwarf(void **state)
{
	struct worker *w = worker__new(false);
	const struct debug_frame *frames;
	int garbage, self;

	(void)state;
	assert_non_null(w);
	garbage = worker__add(w, open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), -1);
	self = worker__add(w, open_self(), -1);
	assert_int_equal(worker__find(w, garbage, 0x1000, true, &frames), 0);
	assert_true(finds_chain(w, self));
	assert_int_equal(worker__given_up(w), 1);
	worker__free(w);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The CPU time of the workers that were freed. */
static double workers_cpu(void)
{
	struct rusage r;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &r), 0);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* .debug_info and what belongs to it. */
static bool debug_range(const struct elf_file *file, unsigned int seed, uint64_t *ret_start,
			uint64_t *ret_len)
{
	const struct elf_section *sections;
	size_t n, n_debug = 0;

	sections = elf_file__sections(file, &n);
	for (int pass = 0; pass < 2; pass++) {
		size_t at = 0;

		for (size_t i = 0; i < n; i++) {
			if (strncmp(sections[i].name, ".debug_", 7))
				continue;
			if (pass == 1 && at == seed % n_debug) {
				*ret_start = sections[i].shdr.sh_offset;
				*ret_len = sections[i].shdr.sh_size;
				return true;
			}
			at++;
		}
		n_debug = at;
		if (!n_debug)
			return false;
	}
	return false;
}

static int copy_of(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("mutant", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, bytes + at, len - at);

		assert_true(n > 0);
		at += (size_t)n;
	}
	return fd;
}

static void test_mutants(void **state)
{
	struct worker *w = worker__new(false);
	struct elf_file *file = elf_file__from_fd(open_self());
	size_t len = elf_file__size(file);
	uint8_t *bytes = malloc(len);
	unsigned int given_up = 0, answered = 0;
	int self;

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(elf_file__read(file, 0, bytes, len), 0);
	assert_non_null(w);
	self = worker__add(w, open_self(), -1);
	srand(4711);
	for (unsigned int seed = 0; seed < N_MUTANTS; seed++) {
		const struct debug_frame *frames;
		struct worker *other = worker__new(false);
		uint64_t start, range;
		uint8_t *mutant = malloc(len);
		double before = now(), cpu_before = workers_cpu();
		int number;

		assert_non_null(mutant);
		memcpy(mutant, bytes, len);
		assert_true(debug_range(file, seed, &start, &range));
		/* this unit's part comes first */
		if (range > 4096)
			range = 4096;
		for (int i = 0; i < 1 + (int)(seed % 64) && range; i++)
			mutant[start + (uint64_t)rand() % range] = (uint8_t)rand();
		number = worker__add(other, copy_of(mutant, len), -1);
		for (uint64_t at = 0; at < 40; at += 4)
			answered += worker__find(other, number, address_of_around() + at, true,
						 &frames) > 0;
		given_up += worker__given_up(other);
		worker__free(other);
		assert_true(workers_cpu() - cpu_before < MAX_CPU);
		assert_true(now() - before < MAX_WALL);
		free(mutant);
	}
	print_message("# %d mutants: %u addresses had an answer, %u files were given up\n",
		      N_MUTANTS, answered, given_up);
	assert_true(answered > 0);
	assert_true(finds_chain(w, self));
	worker__free(w);
	elf_file__free(file);
	free(bytes);
}

/* This program with debug information that answers, but takes its time. */
static int slow_copy(struct elf_file *self)
{
	struct mutant m = {.len = elf_file__size(self)};
	int fd;

	m.bytes = malloc(m.len);
	assert_non_null(m.bytes);
	assert_int_equal(elf_file__read(self, 0, m.bytes, m.len), 0);
	mutate_dwarf__blocks(&m, 20000000 | 3ull << 32);
	fd = copy_of(m.bytes, m.len);
	free(m.bytes);
	return fd;
}

static void test_slow(void **state)
{
	struct elf_file *file = elf_file__from_fd(open_self());
	struct worker *w = worker__new(false);
	const struct debug_frame *frames;
	int slow = worker__add(w, slow_copy(file), -1), self, answered = 0;
	double before = now(), cpu_before = workers_cpu();

	(void)state;
	/* a file's own answers, each within the limit, may not take any time together */
	for (uint64_t at = 0; at < 200; at++)
		answered += worker__find(w, slow, address_of_around() + at, true, &frames) > 0;
	print_message("# %d slow answers, in %.1f s\n", answered, now() - before);
	assert_true(answered < 200);
	assert_true(now() - before < MAX_WALL);
	assert_int_equal(worker__given_up(w), 1);
	/* and not at the cost of others */
	self = worker__add(w, open_self(), -1);
	assert_true(finds_chain(w, self));
	assert_int_equal(worker__given_up(w), 1);
	worker__free(w);
	assert_true(workers_cpu() - cpu_before < MAX_CPU);
	elf_file__free(file);
}

/* A hole makes a file large at no cost, and earns it neither time nor memory. */
static void test_hole(void **state)
{
	struct elf_file *file = elf_file__from_fd(open_self());
	struct worker *w = worker__new(false);
	const struct debug_frame *frames;
	int fd = slow_copy(file), slow;
	double before = now(), cpu_before = workers_cpu();

	(void)state;
	assert_int_equal(ftruncate(fd, 4ll << 30), 0);
	slow = worker__add(w, fd, -1);
	for (uint64_t at = 0; at < 200; at++)
		worker__find(w, slow, address_of_around() + at, true, &frames);
	assert_true(now() - before < MAX_WALL);
	assert_int_equal(worker__given_up(w), 1);
	worker__free(w);
	assert_true(workers_cpu() - cpu_before < MAX_CPU);
	elf_file__free(file);
}

/* The worker's clock, in place of base/clock.c: as if we got no CPU for a while. */
static unsigned int calls_until_jump;
static int64_t jumped_ms;
static useconds_t answer_pause_us;

uint64_t clock__ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int64_t clock__ms(void)
{
	if (calls_until_jump && !--calls_until_jump) {
		usleep(answer_pause_us);
		jumped_ms += 60000;
	}
	return (int64_t)(clock__ns(CLOCK_MONOTONIC) / 1000000) + jumped_ms;
}

/* An answer that came while we had no CPU has come in time. */
static void test_starved(void **state)
{
	struct worker *w = worker__new(false);
	int self = worker__add(w, open_self(), -1);

	(void)state;
	/* the first call is the question's time: 2, 4 ... come after it */
	for (unsigned int call = 2; call <= 6; call += 2) {
		calls_until_jump = call;
		answer_pause_us = 200000; /* the answer is there by then */
		assert_true(finds_chain(w, self));
		calls_until_jump = call;
		answer_pause_us = 0; /* it is not: we both had no CPU */
		assert_true(finds_chain(w, self));
		assert_int_equal(worker__given_up(w), 0);
	}
	assert_true(jumped_ms >= 4 * 60000);
	worker__free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlined), cmocka_unit_test(test_no_dwarf),
		cmocka_unit_test(test_mutants), cmocka_unit_test(test_slow),
		cmocka_unit_test(test_hole),	cmocka_unit_test(test_starved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
