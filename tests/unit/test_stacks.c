// SPDX-License-Identifier: GPL-2.0-or-later
/* Records of the samplers, as the kernel would hand them over, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "capture/processes.h"
#include "capture/stacks.h"
#include "capture/unwind_maps.h"

struct record {
	struct pmp_stack_event stack;
	uint64_t frames[PMP_USER_FRAMES + 1];
};

struct fixture {
	struct unwind_maps *maps;
	struct processes *processes;
	struct stacks *stacks;
};

static void never(void *arg, uint32_t generation)
{
	fail();
}

static int set_up(void **state)
{
	static struct fixture f;
	const struct processes_options processes_options = {.max_wait = 1, .forget = never};
	const struct stacks_options options = {.by_process = false};

	f.maps = unwind_maps__new(false, 1);
	f.processes = processes__new(f.maps, &processes_options);
	f.stacks = stacks__new(f.processes, &options);
	assert_non_null(f.stacks);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	stacks__free(f->stacks);
	processes__free(f->processes);
	unwind_maps__free(f->maps);
	return 0;
}

static size_t make(struct record *r, uint32_t type, uint64_t id, uint32_t status, uint32_t n)
{
	memset(r, 0, sizeof(*r));
	r->stack.event.type = type;
	r->stack.event.generation = 7;
	r->stack.id = id;
	r->stack.status = status;
	r->stack.n = n;
	for (uint32_t i = 0; i < n && i <= PMP_USER_FRAMES; i++)
		r->frames[i] = 0x1000 * (i + 1) | (i ? 0 : PMP_FRAME_EXACT);
	return sizeof(r->stack) + n * sizeof(uint64_t);
}

static int add(struct stacks *s, uint32_t type, uint64_t id, uint32_t status, uint32_t n)
{
	struct record r;
	size_t size = make(&r, type, id, status, n);

	return stacks__add_stack(s, &r.stack, size);
}

static int count(struct stacks *s, uint64_t user, uint64_t kernel, uint64_t n, uint64_t ns)
{
	const struct pmp_count_key key = {.user = user, .kernel = kernel, .pid = 5};
	const struct pmp_count value = {.n = n, .ns = ns};

	return stacks__count(s, &key, &value);
}

struct seen {
	size_t n;
	struct raw_sample last;
	struct raw_frame first, second;
};

static int see(const struct raw_sample *sample, bool runnable, void *arg)
{
	struct seen *seen = arg;

	seen->n++;
	seen->last = *sample;
	if (sample->n_user > 1) {
		seen->first = sample->user[0];
		seen->second = sample->user[1];
	}
	return 0;
}

static void counts_by_stack(void **state)
{
	const struct fixture *f = *state;
	const struct stacks_totals *totals = stacks__totals(f->stacks);
	struct seen seen = {0};

	assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, 1, PMP_STATUS_WHOLE, 3), 0);
	assert_int_equal(add(f->stacks, PMP_EVENT_KERNEL_STACK, 2, 0, 2), 0);
	/* two CPUs met it at once */
	assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, 1, PMP_STATUS_WHOLE, 3), 0);
	assert_int_equal(count(f->stacks, 1, 2, 4, 1499), 0);
	assert_int_equal(count(f->stacks, 1, 2, 5, 2000), 0);
	assert_int_equal(stacks__each(f->stacks, false, see, &seen), 0);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.last.count, 9);
	assert_int_equal(seen.last.n_user, 3);
	assert_int_equal(seen.last.n_kernel, 2);
	assert_int_equal(seen.last.end, STACK_WHOLE);
	assert_true(seen.first.exact);
	assert_int_equal(seen.first.pc, 0x1000);
	assert_false(seen.second.exact);
	assert_null(seen.first.object);
	assert_int_equal(totals->n, 9);
	assert_int_equal(totals->by_status[PMP_STATUS_WHOLE], 9);
	assert_int_equal(totals->distinct, 1);
	/* microseconds, rounded */
	assert_int_equal(stacks__each(f->stacks, true, see, &seen), 0);
	assert_int_equal(seen.last.count, 3);
}

static void equal_stacks_of_two_generations_are_one(void **state)
{
	const struct fixture *f = *state;
	struct seen seen = {0};
	struct record r;
	size_t size;

	assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, 1, PMP_STATUS_WHOLE, 3), 0);
	size = make(&r, PMP_EVENT_USER_STACK, 2, PMP_STATUS_WHOLE, 3);
	r.stack.event.generation = 8;
	assert_int_equal(stacks__add_stack(f->stacks, &r.stack, size), 0);
	assert_int_equal(count(f->stacks, 1, 0, 1, 0), 0);
	assert_int_equal(count(f->stacks, 2, 0, 1, 0), 0);
	assert_int_equal(stacks__each(f->stacks, false, see, &seen), 0);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.last.count, 2);
}

/* Nothing is shown without its stack, and nothing is lost without a word. */
static void an_id_without_a_stack_is_a_loss(void **state)
{
	const struct fixture *f = *state;
	const struct stacks_totals *totals = stacks__totals(f->stacks);
	struct seen seen = {0};

	assert_int_equal(count(f->stacks, 11, 0, 3, 0), 0);
	assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, 11, PMP_STATUS_WHOLE, 1), 0);
	assert_int_equal(count(f->stacks, 11, 12, 4, 0), 0);
	assert_int_equal(stacks__each(f->stacks, false, see, &seen), 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(totals->n, 0);
	assert_int_equal(totals->unnamed, 7);
}

static void no_stack_at_all_is_not_whole(void **state)
{
	const struct fixture *f = *state;
	struct seen seen = {0};

	assert_int_equal(count(f->stacks, 0, 0, 2, 0), 0);
	assert_int_equal(stacks__each(f->stacks, false, see, &seen), 0);
	assert_int_equal(seen.last.end, STACK_BROKEN);
	assert_int_equal(stacks__totals(f->stacks)->frameless, 2);
}

static void each_status_has_its_end(void **state)
{
	const struct fixture *f = *state;

	for (uint32_t status = 0; status < PMP_N_STATUS; status++) {
		struct pmp_count_key key = {.user = status + 1};
		struct raw_sample sample;

		assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, key.user, status, status), 0);
		assert_int_equal(stacks__sample(f->stacks, &key, &sample), 0);
		assert_int_equal(sample.end == STACK_WHOLE, status == PMP_STATUS_WHOLE);
		assert_int_equal(sample.n_user, status);
	}
}

/* What could not be verified, of a process that nobody knows, is not believed. */
static void unverified_is_stale(void **state)
{
	const struct fixture *f = *state;
	const struct pmp_count_key key = {.user = 5};
	struct raw_sample sample;

	assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, 5,
			     PMP_STATUS_WHOLE | PMP_STATUS_UNVERIFIED, 4),
			 0);
	assert_int_equal(stacks__sample(f->stacks, &key, &sample), 0);
	assert_int_equal(sample.end, STACK_BROKEN);
	assert_int_equal(sample.n_user, 0);
}

static void refuses_what_makes_no_sense(void **state)
{
	const struct fixture *f = *state;
	const struct pmp_thread_event thread = {.id = 1};
	struct record r;
	size_t size;

	assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, 1, PMP_N_STATUS, 1), -EBADMSG);
	assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, 1, 0, PMP_USER_FRAMES + 1), -EBADMSG);
	assert_int_equal(add(f->stacks, PMP_EVENT_KERNEL_STACK, 1, 0, PMP_KERNEL_FRAMES + 1),
			 -EBADMSG);
	size = make(&r, PMP_EVENT_USER_STACK, 1, 0, 2);
	assert_int_equal(stacks__add_stack(f->stacks, &r.stack, size - 1), -EBADMSG);
	assert_int_equal(stacks__add_stack(f->stacks, &r.stack, sizeof(r.stack) - 1), -EBADMSG);
	assert_int_equal(stacks__add_thread(f->stacks, &thread, sizeof(thread) - 1), -EBADMSG);
}

static bool forget_odd(void *arg, uint64_t id)
{
	++*(size_t *)arg;
	return id & 1;
}

static void forgets_a_generation_but_what_is_in_use(void **state)
{
	const struct fixture *f = *state;
	size_t asked = 0;

	for (uint64_t id = 1; id <= 4; id++)
		assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, id, 0, 2), 0);
	stacks__forget(f->stacks, 6, forget_odd, &asked);
	assert_int_equal(asked, 0);
	stacks__forget(f->stacks, 7, forget_odd, &asked);
	assert_int_equal(asked, 4);
	for (uint64_t id = 1; id <= 4; id++)
		assert_int_equal(count(f->stacks, id, 0, 1, 0), 0);
	assert_int_equal(stacks__totals(f->stacks)->unnamed, 2);
	assert_int_equal(stacks__totals(f->stacks)->n, 2);
	/* those that stayed are asked about again */
	stacks__forget(f->stacks, 9, forget_odd, &asked);
	assert_int_equal(asked, 6);
}

static void threads_are_told_apart(void **state)
{
	const struct fixture *f = *state;
	struct pmp_thread_event thread = {.event = {.pid = 5}, .id = 77, .tid = 6};
	const struct pmp_count_key key = {.user = 1, .thread = 77, .pid = 5};
	const struct pmp_count one = {.n = 1};
	struct raw_sample sample;

	memset(thread.comm, 'x', sizeof(thread.comm)); /* without a NUL */
	assert_int_equal(stacks__add_thread(f->stacks, &thread, sizeof(thread)), 0);
	assert_int_equal(add(f->stacks, PMP_EVENT_USER_STACK, 1, 0, 1), 0);
	assert_int_equal(stacks__count(f->stacks, &key, &one), 0);
	assert_int_equal(stacks__sample(f->stacks, &key, &sample), 0);
	assert_int_equal(sample.tid, 6);
	assert_int_equal(strlen(sample.thread_name), PMP_COMM_LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_by_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(equal_stacks_of_two_generations_are_one, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_id_without_a_stack_is_a_loss, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_stack_at_all_is_not_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_status_has_its_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unverified_is_stale, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refuses_what_makes_no_sense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forgets_a_generation_but_what_is_in_use, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(threads_are_told_apart, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
