// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/scan.h"

struct text scan__trim(struct text t)
{
	while (t.len && scan__blank(t.str[0])) {
		t.str++;
		t.len--;
	}
	while (t.len && scan__blank(t.str[t.len - 1]))
		t.len--;
	return t;
}

struct text scan__word(struct text *rest)
{
	struct text word;
	size_t i = 0;

	while (i < rest->len && scan__blank(rest->str[i]))
		i++;
	word = scan__from(*rest, i);
	for (i = 0; i < word.len && !scan__blank(word.str[i]);)
		i++;
	*rest = scan__from(word, i);
	word.len = i;
	return word;
}

bool scan__number(struct text t, uint64_t *ret_value)
{
	uint64_t value = 0;
	bool over = false;

	if (!t.len)
		return false;
	for (size_t i = 0; i < t.len; i++) {
		if (!scan__digit(t.str[i]))
			return false;
		over |= __builtin_mul_overflow(value, 10, &value);
		over |= __builtin_add_overflow(value, (uint64_t)(t.str[i] - '0'), &value);
	}
	*ret_value = over ? UINT64_MAX : value;
	return true;
}

bool scan__hex(struct text t, size_t min)
{
	if (t.len < min)
		return false;
	for (size_t i = 0; i < t.len; i++) {
		char c = t.str[i];

		if (!scan__digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F'))
			return false;
	}
	return true;
}

bool scan__object(struct text *t, struct text *ret_inside)
{
	size_t depth = 0, i = t->len;

	if (!i || t->str[i - 1] != ')')
		return false;
	while (i-- > 0) {
		if (t->str[i] == ')')
			depth++;
		else if (t->str[i] == '(' && --depth == 0)
			break;
	}
	if (depth || i == 0 || i == SIZE_MAX || !scan__blank(t->str[i - 1]))
		return false;
	*ret_inside = (struct text){t->str + i + 1, t->len - i - 2};
	*t = scan__trim(scan__until(*t, i));
	return true;
}

bool scan__count(struct text line, struct text *ret_frames, uint64_t *ret_count)
{
	const char *blank;
	struct text frames;

	line = scan__trim(line);
	blank = line.len ? memrchr(line.str, ' ', line.len) : NULL;
	if (!blank)
		return false;
	frames = scan__trim(scan__until(line, (size_t)(blank - line.str)));
	if (!frames.len ||
	    !scan__number(scan__from(line, (size_t)(blank + 1 - line.str)), ret_count))
		return false;
	*ret_frames = frames;
	return true;
}
