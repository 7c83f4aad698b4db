// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/guard.h"
#include "capture/losses.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static int give_back(void *arg)
{
	return *(int *)arg;
}

static int never_ends(void *arg)
{
	for (;;)
		pause();
	return 0;
}

static void test_result(void **state)
{
	int seven = 7;

	assert_int_equal(guard__run(give_back, &seven, 5), 7);
}

static void test_gives_up(void **state)
{
	struct timespec before, after;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(guard__run(never_ends, NULL, 0.05), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &after);
	seconds = (double)(after.tv_sec - before.tv_sec) +
		  (double)(after.tv_nsec - before.tv_nsec) / 1e9;
	assert_true(seconds >= 0.05);
}

static void test_losses(void **state)
{
	struct losses l = {.snapshots = 1};
	struct strbuf text = STRBUF_INIT;

	losses__count(&l, STACK_WHOLE);
	assert_true(losses__none(&l));
	l.gone = 1; /* it ended by itself */
	assert_true(losses__none(&l));
	losses__count(&l, STACK_TORN);
	losses__count(&l, STACK_RUNNING);
	assert_false(losses__none(&l));
	assert_int_equal(losses__describe(&l, 0, &text), 0);
	assert_string_equal(text.data, "3 threads, 1 whole; 1 torn (ran while it was read), "
				       "1 running (on a CPU throughout, never sampled there)");
	for (int end = STACK_WHOLE; end <= STACK_RUNNING; end++) {
		struct losses one = {.snapshots = 1};

		losses__count(&one, (enum stack_end)end);
		assert_int_equal(one.threads, 1);
		assert_int_equal(losses__none(&one), end == STACK_WHOLE);
		assert_int_equal(one.whole + one.truncated + one.broken + one.guessed + one.torn +
					 one.running,
				 1);
	}
	strbuf__free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_gives_up),
		cmocka_unit_test(test_losses),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
