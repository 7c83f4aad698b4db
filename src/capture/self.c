// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/self.h"

#include "proc/maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

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

int self__keep_bpf_maps(void)
{
	struct maps *maps = maps__read(getpid());
	const struct mapping *mappings;
	int err = maps ? 0 : -errno;
	size_t n = 0;

	mappings = maps ? maps__all(maps, &n) : NULL;
	for (size_t i = 0; i < n && !err; i++) {
		const struct mapping *m = &mappings[i];

		if (strcmp(m->path, "anon_inode:bpf-map"))
			continue;
		/* the kernel said where */
		if (madvise((void *)(uintptr_t)m->start, (size_t)(m->end - m->start),
			    MADV_DONTFORK))
			err = -errno;
	}
	maps__free(maps);
	return err;
}

void self__allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}
