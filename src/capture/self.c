// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/self.h"

#include <errno.h>
#include <sys/resource.h>

#define RAISED_NICE -10

void self__set_priority(bool raised)
{
	static int before;

	if (raised)
		before = getpriority(PRIO_PROCESS, 0);
	if (setpriority(PRIO_PROCESS, 0, raised ? RAISED_NICE : before))
		errno = 0;
}

void self__allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}
