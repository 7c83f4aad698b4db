// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/listing.h"

static pthread_barrier_t begun, end;
static pid_t tid;

static void *wait_for_the_end(void *arg)
{
	tid = gettid();
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&end);
	return arg;
}

static pthread_t start_thread(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, NULL), 0);
	pthread_barrier_wait(&begun);
	return thread;
}

static void end_thread(pthread_t thread)
{
	pthread_barrier_wait(&end);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* it is gone from /proc a moment later */
	for (int i = 0; i < 3000 && !syscall(SYS_tgkill, getpid(), tid, 0); i++)
		usleep(10000);
}

static void test_listing(void **state)
{
	pthread_t thread = start_thread(), late;
	struct listing *l = listing__new(getpid());

	assert_non_null(l);
	assert_int_equal(listing__count(l), 2);
	assert_int_equal(listing__missing(l), 2);
	listing__meet(l, getpid());
	assert_int_equal(listing__missing(l), 1);
	listing__meet(l, getpid());
	listing__meet(l, 1); /* not one of them */
	assert_int_equal(listing__missing(l), 1);
	/* who has ended has not been missed */
	end_thread(thread);
	assert_int_equal(listing__missing(l), 0);
	/* nor who began later */
	late = start_thread();
	listing__meet(l, tid);
	assert_int_equal(listing__missing(l), 0);
	end_thread(late);
	listing__free(l);
}

static void test_no_process(void **state)
{
	assert_null(listing__new(INT32_MAX));
	assert_int_equal(errno, ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listing),
		cmocka_unit_test(test_no_process),
	};

	pthread_barrier_init(&begun, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
