// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void append_line(struct strbuf *out, struct text line)
{
	size_t start = out->len;
	char *p;

	if (strbuf__append(out, line.str, line.len))
		return;
	for (p = out->data + start; (p = memchr(p, '\n', (size_t)(out->data + out->len - p)));)
		*p = '?';
	strbuf__append_char(out, '\n');
}

int write_gdb__stack(struct strbuf *out, const struct stack *stack)
{
	strbuf__append_char(out, '\n');
	if (stack->header.len)
		append_line(out, stack->header);
	for (size_t i = 0; i < stack->n_frames; i++)
		append_line(out, stack->frames[i]);
	return out->failed ? -ENOMEM : 0;
}

int write_gdb__timestamp(struct strbuf *out, const struct timespec *now)
{
	char date[64];
	struct tm tm;

	tzset(); /* localtime_r() need not look at TZ */
	if (!localtime_r(&now->tv_sec, &tm) ||
	    !strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm))
		date[0] = '\0';
	return strbuf__printf(out, "TS %09ld.%jd %s\n", now->tv_nsec, (intmax_t)now->tv_sec, date);
}
