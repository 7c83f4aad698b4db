/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * error: why something failed, in the words that the user will read.
 * A function that can tell the user more than an errno takes a `struct error *`; only main.c
 * and session.c print one. The text is owned by the struct: error__clear() frees it.
 */
#ifndef PMP_ERROR_H
#define PMP_ERROR_H

struct error {
	char *text; /* one line without a newline, or NULL: strerror() of the code must do */
};

#define ERROR_INIT                                                                                 \
	{                                                                                          \
		.text = NULL                                                                       \
	}

/*
 * Keep the formatted text as the reason, in place of any earlier one. `err` is a positive errno.
 * Control characters in the result are replaced by '?', so that untrusted names can be quoted.
 * `e` may be NULL. Returns -err, so that a caller can `return error__set(...)`.
 */
int error__set(struct error *e, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The text, or strerror() of `err` (negative or positive errno) where there is none. */
const char *error__text(const struct error *e, int err);

void error__clear(struct error *e);

#endif
