/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * strbuf: bytes that grow. The bytes are owned by the struct and move when it grows: a pointer
 * into `data` is valid until the next append.
 *
 * An append that finds no memory leaves the contents as they were and sets `failed`, which stays
 * set until strbuf__reset(): a series of appends needs one check at its end.
 */
#ifndef PMP_STRBUF_H
#define PMP_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf {
	char *data; /* always NUL-terminated once anything was appended; may hold NULs itself */
	size_t len;
	size_t capacity;
	bool failed;
};

#define STRBUF_INIT                                                                                \
	{                                                                                          \
		.data = NULL                                                                       \
	}

/* Make room for `extra` more bytes. Returns 0 or -ENOMEM. */
int strbuf__reserve(struct strbuf *b, size_t extra);

/* Each returns 0 or -ENOMEM. */
int strbuf__append(struct strbuf *b, const void *bytes, size_t len);
int strbuf__append_str(struct strbuf *b, const char *str);
int strbuf__append_char(struct strbuf *b, char c);
int strbuf__printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Append text that others control: bytes below 0x20, 0x7f, and bytes that are not part of valid
 * UTF-8, or are C1 controls, separators of lines or marks of direction, become '?'; a blank becomes
 * `blank` (pass ' ' to keep blanks).
 */
int strbuf__append_untrusted(struct strbuf *b, const char *str, size_t len, char blank);

/* Empty it, keeping the memory. */
void strbuf__reset(struct strbuf *b);

void strbuf__free(struct strbuf *b);

#endif
