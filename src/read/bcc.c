// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/form.h"

#include "read/sample.h"
#include "read/scan.h"

#include <stdlib.h>

static void *bcc_create(stack_fn fn, void *arg)
{
	struct sample *s = calloc(1, sizeof(*s));

	if (s)
		*s = (struct sample){.fn = fn, .arg = arg};
	return s;
}

static void bcc_destroy(void *form)
{
	if (form)
		sample__free(form);
	free(form);
}

/* `-                comm (pid)` */
static bool parse_thread(struct text line, struct text *ret_comm, struct text *ret_pid)
{
	struct text pid;
	uint64_t value;

	if (!scan__starts(line, "- ") || !scan__object(&line, &pid) || !scan__number(pid, &value))
		return false;
	*ret_comm = scan__trim(scan__from(line, 1));
	*ret_pid = pid;
	return true;
}

static int bcc_line(void *form, struct text line)
{
	struct sample *s = form;
	struct text text = scan__trim(line), comm, pid, object = TEXT_NONE;
	uint64_t count;

	if (!text.len)
		return 0;
	if (!scan__blank(line.str[0])) {
		sample__drop(s);
		return scan__holds(line, ";") ? folded__line(s, line, true) : 0;
	}
	if (scan__number(text, &count))
		return sample__emit(s, count);
	if (parse_thread(text, &comm, &pid))
		return sample__set_thread(s, pid, comm);
	if (scan__is(text, "--") || scan__is(text, "-"))
		return 0;
	if (scan__starts(text, "[Missed "))
		return sample__add(s, TEXT_NONE, TEXT_NONE);
	if (scan__starts(text, "#")) { /* -v of libbpf-tools: `#0  0xffff.. symbol+0x1 (object)` */
		scan__word(&text);
		scan__word(&text);
		text = scan__trim(text);
	}
	scan__object(&text, &object);
	return sample__add(s, text, object);
}

/* A stack without its count was cut off. */
static int bcc_end_file(void *form)
{
	sample__drop(form);
	return 0;
}

const struct form form_bcc = {
	.create = bcc_create,
	.line = bcc_line,
	.end_file = bcc_end_file,
	.destroy = bcc_destroy,
};
