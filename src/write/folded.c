// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/writer.h"

#include <errno.h>
#include <inttypes.h>

static void append_frame(struct strbuf *out, const char *name, size_t len)
{
	size_t start = out->len;

	if (strbuf__append(out, name, len))
		return;
	for (size_t i = start; i < out->len; i++) {
		if (out->data[i] == ';' || out->data[i] == '\n')
			out->data[i] = ':';
	}
	if (!len)
		strbuf__append_str(out, "??");
}

int write_folded__report(struct strbuf *out, const struct report *report)
{
	for (size_t i = 0; i < report->n_lines; i++) {
		const struct report_line *line = &report->lines[i];
		size_t end = line->len;

		if (!line->n_frames)
			append_frame(out, "", 0);
		for (size_t j = line->n_frames; j-- > 0;) {
			size_t start = line->offsets[j];

			append_frame(out, line->frames + start, end - start);
			if (j) {
				strbuf__append_char(out, ';');
				end = start - 1; /* the comma */
			}
		}
		strbuf__printf(out, " %" PRIu64 "\n", line->count);
	}
	return out->failed ? -ENOMEM : 0;
}
