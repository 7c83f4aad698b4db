// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/listing.h"

static pthread_barrier_t begun;
static sem_t end;
static pid_t tid;

static void *wait_for_the_end(void *arg)
{
	tid = gettid();
	pthread_barrier_wait(&begun);
	sem_wait(&end);
	return arg;
}

static pthread_t start_thread(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, NULL), 0);
	pthread_barrier_wait(&begun);
	return thread;
}

/* It leaves /proc a moment after it was joined. */
static void await_gone(pid_t which)
{
	for (int i = 0; i < 3000 && !syscall(SYS_tgkill, getpid(), which, 0); i++)
		usleep(10000);
}

static void end_thread(pthread_t thread)
{
	sem_post(&end);
	assert_int_equal(pthread_join(thread, NULL), 0);
	await_gone(tid);
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

/* Ten threads, of which one was met; then they end. */
static void test_falls_short(void **state)
{
	pthread_t threads[10];
	pid_t tids[10];
	struct listing *l;

	for (int i = 0; i < 10; i++) {
		threads[i] = start_thread();
		tids[i] = tid;
	}
	l = listing__new(getpid());
	assert_non_null(l);
	listing__meet(l, getpid());
	assert_true(listing__falls_short(l));
	/* of 11, these are enough */
	for (int i = 0; i < 9; i++)
		listing__meet(l, tids[i]);
	assert_false(listing__falls_short(l));
	listing__free(l);

	l = listing__new(getpid());
	assert_non_null(l);
	listing__meet(l, getpid());
	assert_true(listing__falls_short(l));
	for (int i = 0; i < 10; i++)
		sem_post(&end);
	for (int i = 0; i < 10; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 10; i++)
		await_gone(tids[i]);
	/* who was there then is not now */
	assert_false(listing__falls_short(l));
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
		cmocka_unit_test(test_falls_short),
		cmocka_unit_test(test_no_process),
	};

	pthread_barrier_init(&begun, NULL, 2);
	sem_init(&end, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
