// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Traces: reader, filter, shortener, aggregate and both writers.
 * Byte 1 is the dialect, the limit of frames and whether the first line is --tids; byte 2 is how
 * many bytes are fed at once, which must not matter.
 */
#include "tests/unit/pipeline.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(const struct strbuf *text, char c)
{
	size_t n = 0;

	for (size_t i = 0; i < text->len; i++)
		n += text->data[i] == c;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf whole = STRBUF_INIT, parts = STRBUF_INIT, folded = STRBUF_INIT;
	struct pipeline p = {.write = write_pmp__report};
	char *tids = NULL;
	const char *text;
	int err, again;

	if (size < 2)
		return 0;
	p.dialect = (enum shorten_dialect)(data[0] % 3);
	p.lines = data[0] >> 6;
	text = (const char *)data + 2;
	size -= 2;
	if (data[0] & 0x20) {
		const char *newline = memchr(text, '\n', size);

		if (!newline)
			return 0;
		tids = strndup(text, (size_t)(newline - text));
		p.tids = tids;
		size -= (size_t)(newline + 1 - text);
		text = newline + 1;
	}
	err = pipeline_run(&p, text, size, &whole);
	p.chunk = (size_t)data[1] + 1;
	again = pipeline_run(&p, text, size, &parts);
	if (err != again || whole.len != parts.len ||
	    (whole.len && memcmp(whole.data, parts.data, whole.len) != 0))
		abort();
	p.write = write_folded__report;
	again = pipeline_run(&p, text, size, &folded);
	if (err != again || count(&folded, '\n') != count(&whole, '\n'))
		abort();
	free(tids);
	strbuf__free(&whole);
	strbuf__free(&parts);
	strbuf__free(&folded);
	return 0;
}
