// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Readers: byte 1 is the format, byte 2 where the text is cut in two and whether the cut ends a
 * FILE; without that, the cut must not matter.
 */
#include "base/strbuf.h"
#include "read/reader.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int note(const struct stack *stack, void *arg)
{
	struct strbuf *out = arg;

	strbuf__printf(out, "%llu %d %d", (unsigned long long)stack->count, stack->shortened,
		       stack->last);
	strbuf__append(out, stack->header.str, stack->header.len);
	for (size_t i = 0; i < stack->n_frames; i++) {
		strbuf__append_char(out, '|');
		strbuf__append(out, stack->frames[i].str, stack->frames[i].len);
	}
	return strbuf__append_char(out, '\n');
}

static int run(enum input_format format, const char *text, size_t len, size_t cut, bool files,
	       struct strbuf *out)
{
	struct reader *r = reader__new(format, note, out);
	int err;

	if (!r)
		return -1;
	err = reader__feed(r, text, cut);
	if (!err && files)
		err = reader__next_file(r);
	if (!err)
		err = reader__feed(r, text + cut, len - cut);
	if (!err)
		err = reader__finish(r);
	reader__free(r);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf whole = STRBUF_INIT, parts = STRBUF_INIT;
	enum input_format format;
	const char *text;
	size_t cut;
	int err, again;
	bool files;

	if (size < 2)
		return 0;
	format = (enum input_format)(data[0] % (INPUT_PMP + 1));
	files = data[1] & 1;
	text = (const char *)data + 2;
	size -= 2;
	cut = size * (data[1] >> 1) / 127;
	err = run(format, text, size, size, false, &whole);
	again = run(format, text, size, cut, files, &parts);
	if (!files && (err != again || whole.len != parts.len ||
		       (whole.len && memcmp(whole.data, parts.data, whole.len) != 0)))
		abort();
	strbuf__free(&whole);
	strbuf__free(&parts);
	return 0;
}
