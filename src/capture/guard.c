// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct guarded {
	int (*fn)(void *arg);
	void *arg;
	int result;
};

static void *run(void *arg)
{
	struct guarded *g = arg;

	g->result = g->fn(g->arg);
	return NULL;
}

int guard__run(int (*fn)(void *arg), void *arg, double seconds)
{
	struct guarded *g = malloc(sizeof(*g));
	struct timespec until;
	pthread_t thread;
	int err;

	if (!g)
		return -ENOMEM;
	*g = (struct guarded){.fn = fn, .arg = arg};
	err = pthread_create(&thread, NULL, run, g);
	if (err) {
		free(g);
		return -err;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)seconds;
	until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	err = pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
	if (err) {
		pthread_detach(thread); /* it still uses g: that stays */
		return -ETIMEDOUT;
	}
	err = g->result;
	free(g);
	return err;
}
