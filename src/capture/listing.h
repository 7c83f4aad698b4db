/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * listing: the threads that /proc listed when a snapshot began. What was listed, was never met, and
 * is still there, has been missed.
 */
#ifndef PMP_LISTING_H
#define PMP_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct listing;

/* NULL with errno: ESRCH, the process is gone. */
struct listing *listing__new(pid_t pid);
void listing__free(struct listing *l);

size_t listing__count(const struct listing *l);

/* A thread was met, each once. One that is not listed began later. */
void listing__meet(struct listing *l, pid_t tid);

/* How many of those that were never met are still there. */
size_t listing__missing(const struct listing *l);

/* Whether far fewer were met than were there, before and now: where threads come and go, those that
 * were missed have ended by now, and are not missing. */
bool listing__falls_short(const struct listing *l);

#endif
