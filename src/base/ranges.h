/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ranges: gives out parts of an array by index. What is given back rests for a while, for it may
 * still be looked at; times are whatever clock the caller has, in ns.
 */
#ifndef PMP_RANGES_H
#define PMP_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct ranges;

/* All of [0, size) is free. NULL with errno ENOMEM. */
struct ranges *ranges__new(size_t size);
void ranges__free(struct ranges *r);

/* The start of `len` (over 0) free places in a row. Returns 0, -ENOSPC or -ENOMEM. */
int ranges__take(struct ranges *r, size_t len, size_t *ret_start);

/* Give back what ranges__take() gave; free again once ranges__settle() is called with a later
 * time than `until`. Without memory to remember it, it stays taken. */
void ranges__give_back(struct ranges *r, size_t start, size_t len, uint64_t until);
void ranges__settle(struct ranges *r, uint64_t now);

/* Places taken or resting. */
size_t ranges__used(const struct ranges *r);

#endif
