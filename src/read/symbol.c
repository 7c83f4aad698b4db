// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/symbol.h"

#include "read/scan.h"

/* `+0x1f` (perf, bcc) or `+31` (bpftrace) */
static struct text cut_offset(struct text t)
{
	const char *plus = t.len ? memrchr(t.str, '+', t.len) : NULL;
	struct text offset;
	uint64_t value;

	if (!plus || plus == t.str)
		return t;
	offset = scan__from(t, (size_t)(plus + 1 - t.str));
	if (scan__number(offset, &value) ||
	    (scan__starts(offset, "0x") && scan__hex(scan__from(offset, 2), 1)))
		t.len = (size_t)(plus - t.str);
	return t;
}

static struct text cut_qualifiers(struct text t)
{
	static const char *const words[] = {" const", " volatile", " &", " &&", " noexcept"};
	bool again = true;

	while (again) {
		again = false;
		if (scan__ends(t, "]")) {
			const char *clone = memrchr(t.str, '[', t.len);

			if (clone && clone > t.str && clone[-1] == ' ' &&
			    scan__starts(scan__from(t, (size_t)(clone - t.str)), "[clone ")) {
				t.len = (size_t)(clone - t.str) - 1;
				again = true;
			}
		}
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			if (scan__ends(t, words[i])) {
				t.len -= strlen(words[i]);
				again = true;
			}
		}
	}
	return t;
}

/* Where the last pair of parentheses, which the text ends with, opens; 0 if there is none. */
static size_t find_parameters(struct text t)
{
	size_t depth = 0;

	for (size_t i = t.len; i-- > 0;) {
		if (t.str[i] == ')')
			depth++;
		else if (t.str[i] == '(' && --depth == 0)
			return i;
	}
	return 0;
}

static bool identifier(char c)
{
	return scan__digit(c) || c == '_' || c == '$' || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

static bool operator_at(struct text t, size_t i)
{
	static const char word[] = "operator";
	size_t n = sizeof(word) - 1;

	return t.len - i >= n && memcmp(t.str + i, word, n) == 0 &&
	       (i == 0 || !identifier(t.str[i - 1])) &&
	       (t.len - i == n || !identifier(t.str[i + n]));
}

/* A function template's name has its return type in front: it ends at the last blank that is in
 * no brackets; the blanks of `operator new` are the name's. */
static struct text cut_return_type(struct text t)
{
	size_t start = 0, depth = 0;

	for (size_t i = 0; i < t.len; i++) {
		switch (t.str[i]) {
		case '<':
		case '(':
		case '{':
		case '[':
			depth++;
			break;
		case '>':
			if (i && t.str[i - 1] == '-')
				break;
			/* fall through */
		case ')':
		case '}':
		case ']':
			depth -= depth ? 1 : 0;
			break;
		case ' ':
			if (!depth)
				start = i + 1;
			break;
		case 'o':
			if (!depth && operator_at(t, i))
				return scan__from(t, start);
			break;
		default:
			break;
		}
	}
	return scan__from(t, start);
}

struct text symbol__name(struct text symbol)
{
	struct text name = cut_offset(scan__trim(symbol)), bare = cut_qualifiers(name);
	size_t open;

	if (!scan__ends(bare, ")"))
		return scan__ends(name, "]") ? bare : name;
	open = find_parameters(bare);
	if (!open)
		return name;
	/* in `operator()` they are the name */
	if (bare.len - open == 2 && open >= 8 && operator_at(bare, open - 8))
		return bare;
	return cut_return_type(scan__trim(scan__until(bare, open)));
}
