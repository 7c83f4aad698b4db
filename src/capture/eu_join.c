// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/eu_join.h"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The second script, which sees the lines as the first has joined them. */
static void name_frame(struct eu_join *j, char c, struct strbuf *out)
{
	if (j->blank) {
		j->blank = false;
		j->at = EU_OUTSIDE;
		if (c == '-') {
			strbuf__append_str(out, " ?"
						"?()");
			j->put = true;
		}
		strbuf__append_char(out, ' ');
	}
	if (c == '\n') {
		j->put = false;
		j->at = EU_OUTSIDE;
	} else if (j->at == EU_HEX && c == ' ') {
		j->blank = !j->put;
		j->at = EU_OUTSIDE;
		if (j->blank)
			return;
	} else if (j->at == EU_HEX && is_hex(c)) {
		j->last = c;
	} else if (c == 'x' && (j->at == EU_ZERO || (j->at == EU_HEX && j->last == '0'))) {
		j->at = EU_HEX;
		j->last = c;
	} else {
		j->at = c == '0' ? EU_ZERO : EU_OUTSIDE;
	}
	strbuf__append_char(out, c);
}

void eu_join__feed(struct eu_join *j, const char *bytes, size_t len, struct strbuf *out)
{
	for (size_t i = 0; i < len; i++) {
		if (j->newline) {
			j->newline = false;
			if (bytes[i] == ' ') {
				j->joined = true;
				continue;
			}
			name_frame(j, '\n', out);
		}
		if (bytes[i] == '\n' && !j->joined) {
			j->newline = true;
			continue;
		}
		if (bytes[i] == '\n')
			j->joined = false;
		name_frame(j, bytes[i], out);
	}
}

void eu_join__finish(struct eu_join *j, struct strbuf *out)
{
	if (j->newline)
		name_frame(j, '\n', out);
	if (j->blank)
		strbuf__append_char(out, ' ');
	*j = (struct eu_join)EU_JOIN_INIT;
}
