// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int error__set(struct error *e, int err, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	if (!e)
		return -err;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	for (char *p = text; p && *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	}
	free(e->text);
	e->text = text;
	return -err;
}

const char *error__text(const struct error *e, int err)
{
	if (e && e->text)
		return e->text;
	return strerror(err < 0 ? -err : err);
}

void error__clear(struct error *e)
{
	if (!e)
		return;
	free(e->text);
	e->text = NULL;
}
