/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eu_join: puts the parts of eu-stack's frames on one line each, as stock pt-pmp does. Pure: text
 * in, text out, cut anywhere.
 */
#ifndef PMP_EU_JOIN_H
#define PMP_EU_JOIN_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * What stock's sed scripts make of eu-stack's text: a newline and the one blank after it are taken
 * out, so that the source's line is joined to its frame's (once a line: what follows a joined line
 * is left alone); then ` ??()` is put after the first `0xHEX` of a line that is followed by ` -`.
 * Appended to `out`, which may be reset between calls.
 */
struct eu_join {
	bool newline; /* one is held back */
	bool joined;  /* this line was */
	bool blank;   /* one is held back, after 0xHEX */
	bool put;     /* ??() was put into this line */
	enum { EU_OUTSIDE, EU_ZERO, EU_HEX } at;
	char last; /* in EU_HEX */
};

#define EU_JOIN_INIT                                                                               \
	{                                                                                          \
		.at = EU_OUTSIDE                                                                   \
	}

void eu_join__feed(struct eu_join *j, const char *bytes, size_t len, struct strbuf *out);
void eu_join__finish(struct eu_join *j, struct strbuf *out);

#endif
