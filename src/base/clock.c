// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"

uint64_t clock__ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t clock__ms(void)
{
	return (int64_t)(clock__ns(CLOCK_MONOTONIC) / 1000000);
}
