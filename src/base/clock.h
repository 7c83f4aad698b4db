/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clock: the kernel's clocks (clock_gettime(2)) as plain numbers, which do not wrap for centuries.
 */
#ifndef PMP_CLOCK_H
#define PMP_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds; of CLOCK_MONOTONIC, say. */
uint64_t clock__ns(clockid_t clock);

/* Of CLOCK_MONOTONIC, milliseconds. */
int64_t clock__ms(void);

#endif
