// SPDX-License-Identifier: GPL-2.0-or-later
#include "proc/memory.h"

#include <errno.h>
#include <sys/uio.h>

int memory__read(void *arg, uint64_t addr, void *ret_bytes, size_t len)
{
	const pid_t *pid = arg;
	char *to = ret_bytes;

	while (len) {
		struct iovec local = {to, len};
		struct iovec remote = {(void *)(uintptr_t)addr, len};
		ssize_t n = process_vm_readv(*pid, &local, 1, &remote, 1, 0);

		if (n < 0)
			return -errno;
		if (n == 0)
			return -EFAULT;
		to += n;
		addr += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}
