// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/error.h"
#include "base/strbuf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_append(void **state)
{
	struct strbuf b = STRBUF_INIT;

	assert_int_equal(strbuf__append(&b, NULL, 0), 0);
	assert_string_equal(b.data, "");
	assert_int_equal(strbuf__append(&b, "a\0b", 3), 0);
	assert_int_equal(strbuf__append_str(&b, "cd"), 0);
	assert_int_equal(strbuf__append_char(&b, 'e'), 0);
	assert_int_equal(strbuf__printf(&b, "%d-%s", 7, "x"), 0);
	assert_int_equal(b.len, 9);
	assert_memory_equal(b.data, "a\0bcde7-x", 10);
	strbuf__reset(&b);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	strbuf__free(&b);
	assert_null(b.data);
	strbuf__free(&b);
}

static void test_append_grows(void **state)
{
	struct strbuf b = STRBUF_INIT;

	for (int i = 0; i < 10000; i++)
		assert_int_equal(strbuf__printf(&b, "%05d", i), 0);
	assert_int_equal(b.len, 50000);
	assert_memory_equal(b.data + 5 * 4711, "04711", 5);
	strbuf__free(&b);
}

static void test_failure_is_kept_until_reset(void **state)
{
	struct strbuf b = STRBUF_INIT;

	strbuf__append_str(&b, "kept");
	assert_int_equal(strbuf__reserve(&b, SIZE_MAX), -ENOMEM);
	assert_int_equal(strbuf__reserve(&b, SIZE_MAX - 4), -ENOMEM);
	assert_true(b.failed);
	assert_int_equal(strbuf__append_str(&b, "!"), 0);
	assert_true(b.failed);
	assert_string_equal(b.data, "kept!");
	strbuf__reset(&b);
	assert_false(b.failed);
	strbuf__free(&b);
}

static void test_append_untrusted(void **state)
{
	static const struct {
		const char *in;
		char blank;
		const char *out;
	} cases[] = {
		{"plain", ' ', "plain"},
		{"a b", '_', "a_b"},
		{"a\tb\nc\033[1m\177", ' ', "a?b?c?[1m?"},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", ' ',
		 "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\xc2\x9b!", ' ', "?!"},	   /* C1 */
		{"\xc2\xa0", ' ', "\xc2\xa0"},	   /* the first that is none */
		{"\xc0\x80", ' ', "??"},	   /* overlong */
		{"\xe0\x9f\xbf", ' ', "???"},	   /* overlong */
		{"\xed\xa0\x80", ' ', "???"},	   /* surrogate */
		{"\xf4\x90\x80\x80", ' ', "????"}, /* beyond Unicode */
		{"\xf5\x80\x80\x80", ' ', "????"},
		{"\xe2\x82", ' ', "??"}, /* cut */
		{"\x80\xff", ' ', "??"},
		{"\xe2x", ' ', "?x"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf b = STRBUF_INIT;

		assert_int_equal(strbuf__append_untrusted(&b, cases[i].in, strlen(cases[i].in),
							  cases[i].blank),
				 0);
		assert_string_equal(b.data, cases[i].out);
		strbuf__free(&b);
	}
}

static void test_error(void **state)
{
	struct error e = ERROR_INIT;

	assert_string_equal(error__text(&e, -ENOENT), strerror(ENOENT));
	assert_string_equal(error__text(NULL, ENOENT), strerror(ENOENT));
	assert_int_equal(error__set(NULL, EPERM, "%s", "x"), -EPERM);
	assert_int_equal(error__set(&e, EINVAL, "first %d", 1), -EINVAL);
	assert_int_equal(error__set(&e, EPERM, "name '%s'", "a\nb\033\177"), -EPERM);
	assert_string_equal(error__text(&e, EPERM), "name 'a?b?\?'");
	error__clear(&e);
	assert_null(e.text);
	error__clear(&e);
	error__clear(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_append),
		cmocka_unit_test(test_append_grows),
		cmocka_unit_test(test_failure_is_kept_until_reset),
		cmocka_unit_test(test_append_untrusted),
		cmocka_unit_test(test_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
