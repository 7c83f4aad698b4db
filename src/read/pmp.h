/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pmp: one line of pt-pmp's output. Pure; the result points into the argument. */
#ifndef PMP_READ_PMP_H
#define PMP_READ_PMP_H

#include "model/stack.h"

#include <stdbool.h>
#include <stdint.h>

/* The count right-aligned in 7 columns (more only if it has more digits), one blank, and the
 * frames, which may be empty. False for any other line. */
bool pmp__parse(struct text line, struct text *ret_frames, uint64_t *ret_count);

#endif
