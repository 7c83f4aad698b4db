// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/*
 * By /proc/PID/mem, not process_vm_readv(2): that waits for the target's memory lock in a way that
 * not even SIGKILL ends.
 */
int memory__read(void *arg, uint64_t addr, void *ret_bytes, size_t len)
{
	const pid_t *pid = arg;
	char path[32], *to = ret_bytes;
	int fd, err = 0;

	if (addr > INT64_MAX)
		return -EFAULT; /* the kernel's half: as an offset of a file it would be negative */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)*pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	while (len && !err) {
		ssize_t n = pread(fd, to, len, (off_t)addr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n < 0 && errno != EIO ? -errno : -EFAULT;
			break;
		}
		to += n;
		addr += (uint64_t)n;
		len -= (size_t)n;
	}
	close(fd);
	return err;
}
