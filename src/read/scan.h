/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scan: small questions about text that is not NUL-terminated. Pure; results point into the
 * argument.
 */
#ifndef PMP_READ_SCAN_H
#define PMP_READ_SCAN_H

#include "model/stack.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* An empty text with a pointer that may be handed to memcpy() and friends. */
#define TEXT_NONE ((struct text){"", 0})

static inline bool scan__blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool scan__digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline struct text scan__from(struct text t, size_t start)
{
	return (struct text){t.str + start, t.len - start};
}

static inline struct text scan__until(struct text t, size_t end)
{
	return (struct text){t.str, end};
}

static inline bool scan__is(struct text t, const char *str)
{
	return t.len == strlen(str) && memcmp(t.str, str, t.len) == 0;
}

static inline bool scan__starts(struct text t, const char *str)
{
	return t.len >= strlen(str) && memcmp(t.str, str, strlen(str)) == 0;
}

static inline bool scan__ends(struct text t, const char *str)
{
	size_t n = strlen(str);

	return t.len >= n && memcmp(t.str + t.len - n, str, n) == 0;
}

static inline bool scan__holds(struct text t, const char *str)
{
	return t.len && memmem(t.str, t.len, str, strlen(str));
}

/* Without blanks and tabs at either end. */
struct text scan__trim(struct text t);

/* The next blank-separated word; `*rest` becomes what is behind it. Empty at the end. */
struct text scan__word(struct text *rest);

/* Digits and nothing else, up to 2^64 - 1 (what is more counts as that). */
bool scan__number(struct text t, uint64_t *ret_value);

/* At least `min` hexadecimal digits and nothing else. */
bool scan__hex(struct text t, size_t min);

/* `NAME (INSIDE)` at the end of the text: INSIDE may hold pairs itself, the blank must be there.
 * False if it has not that form; else `*t` becomes NAME. */
bool scan__object(struct text *t, struct text *ret_inside);

/* `FRAMES N`, N being the last word. */
bool scan__count(struct text line, struct text *ret_frames, uint64_t *ret_count);

#endif
