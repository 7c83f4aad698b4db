// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>

#define DATE_MAX 4096 /* bytes: no locale comes near it */

int write_pmp__date(struct strbuf *out, time_t now)
{
	const char *format = nl_langinfo(_DATE_FMT); /* what date(1) uses */
	struct tm tm;
	size_t len = 0;

	if (!*format)
		format = "%a %b %e %H:%M:%S %Z %Y";
	tzset(); /* localtime_r() need not look at TZ */
	if (!localtime_r(&now, &tm))
		return strbuf__printf(out, "%jd\n", (intmax_t)now);
	for (size_t size = 128; !len && size <= DATE_MAX; size *= 2) {
		if (strbuf__reserve(out, size))
			return -ENOMEM;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		len = strftime(out->data + out->len, size, format, &tm);
#pragma GCC diagnostic pop
	}
	out->len += len;
	return strbuf__append_char(out, '\n');
}

int write_pmp__shares(struct strbuf *out, const struct report *report)
{
	for (size_t i = 0; i < report->n_lines; i++) {
		const struct report_line *line = &report->lines[i];

		write_share(out, line->count, report->total);
		strbuf__append_char(out, ' ');
		strbuf__append(out, line->frames, line->len);
		strbuf__append_char(out, '\n');
	}
	return out->failed ? -ENOMEM : 0;
}

int write_pmp__report(struct strbuf *out, const struct report *report)
{
	for (size_t i = 0; i < report->n_lines; i++) {
		const struct report_line *line = &report->lines[i];

		strbuf__printf(out, "%7" PRIu64 " ", line->count);
		strbuf__append(out, line->frames, line->len);
		strbuf__append_char(out, '\n');
	}
	return out->failed ? -ENOMEM : 0;
}
