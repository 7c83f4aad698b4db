/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbol: what profilers print for a function becomes the name that gdb prints for it where it
 * has debug information: without offset, parameters, return type, trailing qualifiers and clone
 * marks. Template arguments stay: they are pt-pmp's rules to judge. Pure; the result points into
 * the argument.
 */
#ifndef PMP_READ_SYMBOL_H
#define PMP_READ_SYMBOL_H

#include "model/stack.h"

/* `int ns::apply<f(int), 7>(g const&) const [clone .cold]+0x2d` is `ns::apply<f(int), 7>`. A text
 * that is none of this comes back as it is. Linear time. */
struct text symbol__name(struct text symbol);

#endif
