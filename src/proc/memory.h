/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory: reads another process's memory without stopping it. What is read may change meanwhile.
 */
#ifndef PMP_MEMORY_H
#define PMP_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How a module is given memory to read: 0, or -errno and nothing promised about the bytes. */
typedef int (*memory_read_fn)(void *arg, uint64_t addr, void *ret_bytes, size_t len);

/*
 * All of [addr, addr + len) or nothing. `arg` points to the pid_t. Returns 0, -EFAULT (not all of
 * it is mapped and readable), -ESRCH, -EPERM. May wait for the target's memory lock.
 */
int memory__read(void *arg, uint64_t addr, void *ret_bytes, size_t len);

#endif
