// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/self.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

void self__set_priority(enum self_priority priority)
{
	static const int nice[] = {[SELF_CAPTURING] = -10, [SELF_STARTING] = -20};
	static bool asked;
	static int before;

	if (!asked)
		before = getpriority(PRIO_PROCESS, 0);
	asked = true;
	setpriority(PRIO_PROCESS, 0, priority == SELF_AS_STARTED ? before : nice[priority]);
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
