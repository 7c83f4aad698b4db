/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guard: runs what may block in the kernel for as long as the target holds a lock, and gives up
 * after a while.
 */
#ifndef PMP_GUARD_H
#define PMP_GUARD_H

/*
 * Run fn(arg) on a thread of its own, for at most `seconds`. Returns what fn returned; -ETIMEDOUT
 * if it has not returned by then: it is abandoned where it is, and everything that it uses must
 * be left alone from then on (the kernel ends it with the process: such waits are killable);
 * or -errno if the thread could not be made.
 */
int guard__run(int (*fn)(void *arg), void *arg, double seconds);

#endif
