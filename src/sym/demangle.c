// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/demangle.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MANGLED (16u << 10)

struct output {
	struct strbuf *text;
	size_t start;
	jmp_buf too_long;
};

/*
 * libiberty's printer cannot be told to stop, and a name that doubles itself keeps it at work for
 * ages. It keeps its state on the stack, so that it can be left from here.
 */
static void append(const char *piece, size_t len, void *arg)
{
	struct output *out = arg;

	if (len > DEMANGLE_MAX || out->text->len - out->start > DEMANGLE_MAX - len)
		longjmp(out->too_long, 1);
	strbuf__append(out->text, piece, len);
}

static int run(const char *mangled, int flags, struct strbuf *text)
{
	struct output out = {.text = text, .start = text->len};

	if (setjmp(out.too_long))
		return -E2BIG;
	/* Rust's older names look like C++: gdb has them tried first */
	if (rust_demangle_callback(mangled, flags, append, &out))
		return 0;
	text->len = out.start;
	return cplus_demangle_v3_callback(mangled, flags, append, &out) ? 0 : -ENOENT;
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool ends_with(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(name + len - n, end, n);
}

/* Leave out a number at the end together with what sets it off: `.1`, `$1`, `__1`, `___1`. */
static size_t without_number(const char *name, size_t len)
{
	size_t end = len;

	while (end > 1 && digit(name[end - 1]))
		end--;
	if (end == len || len < 2)
		return len;
	if (name[end - 1] == '.' || name[end - 1] == '$')
		return end - 1;
	if (ends_with(name, end, "___"))
		return end - 3;
	return ends_with(name, end, "__") ? end - 2 : len;
}

/*
 * gdb takes a C name for an Ada one, which GNAT encodes, if it can be read as one, and shows it
 * decoded: f.part.0 as f.part, f.cold as f[cold], a__b as a.b.
 */
static int decode_ada(const char *name, struct strbuf *text)
{
	size_t len, start, suffix = 0, suffix_len = 0;
	const char *triple;

	if (*name == '.')
		name++;
	if (!strncmp(name, "_ada_", 5))
		name += 5;
	len = strlen(name);
	if (*name == '_' || *name == '<' || !len)
		return -ENOENT;
	start = len - 1;
	while (start > 0 && (lower(name[start]) || upper(name[start])))
		start--;
	if (start > 0 && name[start] == '.') {
		suffix = start + 1;
		suffix_len = len - suffix;
		len = start;
	}
	len = without_number(name, len);
	if (len > 1 && name[len - 1] == 'N' && (digit(name[len - 2]) || lower(name[len - 2])))
		len--;
	triple = strstr(name, "___");
	if (triple && (size_t)(triple - name) + 3 < len) {
		if (triple[3] != 'X')
			return -ENOENT;
		len = (size_t)(triple - name);
	}
	if (len > 3 && ends_with(name, len, "TKB"))
		len -= 3;
	if (len > 2 && ends_with(name, len, "TB"))
		len -= 2;
	if (len > 1 && name[len - 1] == 'B')
		len--;
	len = without_number(name, len);
	for (size_t i = 0; i < len; i++) {
		if (upper(name[i]) || name[i] == ' ')
			return -ENOENT;
	}
	start = 0;
	while (start < len && !lower(name[start]))
		strbuf__append_char(text, name[start++]);
	while (start < len) {
		bool dot = len - start > 2 && name[start] == '_' && name[start + 1] == '_';

		strbuf__append_char(text, dot ? '.' : name[start]);
		start += dot ? 2 : 1;
	}
	if (suffix)
		strbuf__printf(text, "[%.*s]", (int)suffix_len, name + suffix);
	return 0;
}

int demangle(const char *name, struct strbuf *ret_text)
{
	size_t prefix = strspn(name, ".$"), len = strcspn(name + prefix, "@");
	size_t start = ret_text->len;
	char *mangled;
	int err;

	if (strnlen(name, MAX_MANGLED) == MAX_MANGLED)
		return -E2BIG;
	mangled = strndup(name + prefix, len);
	if (!mangled)
		return -ENOMEM;
	strbuf__append(ret_text, name, prefix);
	err = run(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_VERBOSE, ret_text);
	if (!err)
		strbuf__append_str(ret_text, name + prefix + len);
	else if (err == -ENOENT) {
		ret_text->len = start;
		err = decode_ada(name, ret_text);
	}
	if (!err && ret_text->failed)
		err = -ENOMEM;
	if (err) {
		ret_text->len = start;
		if (ret_text->data)
			ret_text->data[start] = '\0';
	}
	free(mangled);
	return err;
}

/* What may stand behind the parameters. */
static size_t without_qualifiers(const char *name, size_t len)
{
	static const char *const qualifiers[] = {" const", " volatile", " &", " &&", "&", "&&"};
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < sizeof(qualifiers) / sizeof(qualifiers[0]); i++) {
			if (!ends_with(name, len, qualifiers[i]))
				continue;
			len -= strlen(qualifiers[i]);
			more = true;
		}
	}
	return len;
}

/* Where the last pair of parentheses starts, if nothing but qualifiers follows it; else `len`. */
static size_t without_parameters(const char *name, size_t len)
{
	size_t end = without_qualifiers(name, len), depth = 0;

	if (memchr(name, '$', len) || memchr(name, '{', len))
		return len;
	if (!end || name[end - 1] != ')')
		return len;
	while (end-- > 0) {
		depth += name[end] == ')';
		depth -= name[end] == '(';
		if (!depth)
			return end ? end : len;
	}
	return len;
}

int demangle_function(const char *name, struct strbuf *ret_text)
{
	size_t start = ret_text->len;
	int err;

	if (strnlen(name, MAX_MANGLED) == MAX_MANGLED)
		return -E2BIG;
	err = run(name, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP, ret_text);
	if (!err && ret_text->failed)
		err = -ENOMEM;
	if (!err)
		ret_text->len = start +
				without_parameters(ret_text->data + start, ret_text->len - start);
	else
		ret_text->len = start;
	if (ret_text->data)
		ret_text->data[ret_text->len] = '\0';
	return err;
}
