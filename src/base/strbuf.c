// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/strbuf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int strbuf__reserve(struct strbuf *b, size_t extra)
{
	size_t need, capacity = b->capacity ? b->capacity : 64;
	char *data;

	if (__builtin_add_overflow(b->len, extra, &need) || __builtin_add_overflow(need, 1, &need))
		goto fail;
	if (need <= b->capacity)
		return 0;
	while (capacity < need) {
		if (__builtin_mul_overflow(capacity, 2, &capacity))
			goto fail;
	}
	data = realloc(b->data, capacity);
	if (!data)
		goto fail;
	b->data = data;
	b->capacity = capacity;
	b->data[b->len] = '\0';
	return 0;
fail:
	b->failed = true;
	return -ENOMEM;
}

int strbuf__append(struct strbuf *b, const void *bytes, size_t len)
{
	int err = strbuf__reserve(b, len);

	if (err)
		return err;
	if (len)
		memcpy(b->data + b->len, bytes, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int strbuf__append_str(struct strbuf *b, const char *str)
{
	return strbuf__append(b, str, strlen(str));
}

int strbuf__append_char(struct strbuf *b, char c)
{
	return strbuf__append(b, &c, 1);
}

int strbuf__printf(struct strbuf *b, const char *fmt, ...)
{
	size_t room = b->capacity - b->len;
	va_list args;
	int len, err;

	va_start(args, fmt);
	len = vsnprintf(room ? b->data + b->len : NULL, room, fmt, args);
	va_end(args);
	if (len < 0)
		return -EINVAL;
	if ((size_t)len >= room) {
		if (room)
			b->data[b->len] = '\0';
		err = strbuf__reserve(b, (size_t)len);
		if (err)
			return err;
		va_start(args, fmt);
		vsnprintf(b->data + b->len, (size_t)len + 1, fmt, args);
		va_end(args);
	}
	b->len += (size_t)len;
	return 0;
}

/* Length of the valid UTF-8 sequence at `s` (RFC 3629: no surrogates, no overlong forms), or 0. */
static size_t utf8_sequence(const unsigned char *s, size_t len)
{
	size_t n;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

/* Line and paragraph separators, and the marks that turn the direction of what follows. */
static bool reorders(const unsigned char *s, size_t n)
{
	return n == 3 && s[0] == 0xe2 &&
	       ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
		(s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

int strbuf__append_untrusted(struct strbuf *b, const char *str, size_t len, char blank)
{
	const unsigned char *s = (const unsigned char *)str;
	int err = strbuf__reserve(b, len); /* no replacement is longer than what it replaces */

	if (err)
		return err;
	for (size_t i = 0; i < len;) {
		size_t n = s[i] < 0x80 ? 1 : utf8_sequence(s + i, len - i);

		if (n == 0 || s[i] < 0x20 || s[i] == 0x7f ||
		    (n == 2 && s[i] == 0xc2 && s[i + 1] < 0xa0) || reorders(s + i, n))
			strbuf__append_char(b, '?');
		else if (s[i] == ' ')
			strbuf__append_char(b, blank);
		else
			strbuf__append(b, s + i, n);
		i += n ? n : 1;
	}
	return 0;
}

void strbuf__reset(struct strbuf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

void strbuf__free(struct strbuf *b)
{
	free(b->data);
	*b = (struct strbuf)STRBUF_INIT;
}
