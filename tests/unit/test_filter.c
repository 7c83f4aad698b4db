// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/strbuf.h"
#include "fold/filter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct text text_of(const char *str)
{
	return (struct text){str, strlen(str)};
}

static void test_headers(void **state)
{
	static const char plain[] = "Thread 3 (Thread 0x7f01 (LWP 77)):";
	static const char named[] = "Thread 3 (Thread 0x7f01 (LWP 77) \"my conn\"):";
	static const struct {
		const char *tids;
		const char *header;
		bool wanted;
	} cases[] = {
		{NULL, plain, true},
		{"", plain, true},
		{"*", plain, true},
		{"77", plain, true},
		{"^77$", plain, true},
		{"7", plain, true},
		{"78", plain, false},
		{"3$", plain, false},
		{"1,77", plain, true},
		{"1,2", plain, false},
		{"1,", plain, true},
		{",1", plain, true},
		/* today's gdb: pt-pmp's own field is the name's last word with its quote */
		{"^77$", named, true},
		{"^conn\"$", named, true},
		{"^my conn$", named, true},
		{"^my$", named, false},
		{"LWP", named, false},
		{"0x7f01", named, false},
		{"^77$", "Thread 1 (LWP 77):", true},
		{"^77$", "TID 77:", true},
		{"^78$", "TID 77:", false},
		{"^77$", "TID 77:\t ", true},
		{"^12$", "Thread 1 (process 12):", true},
		{"^Thread$", "Thread", true},
		{"^ab)c$", "Thread a)):b)c:", true},
		{"^b\"c$", "Thread 1 (LWP 5) \"b\"c\":", true},
		{"^6$", "Thread 1 (LWP 5) \"(LWP 6)\" x:", false},
		{"^$", "Thread 1 (LWP 5) \"\" ):", true},
		{"9", "Thread 1 (LWP ", false},
		{"9", "Thread 1 (LWP 5) \"", false},
		{"77", "", false},
		{"7*", "", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error e = ERROR_INIT;
		struct filter *f = filter__new(cases[i].tids, &e);

		assert_non_null(f);
		if (filter__wants(f, text_of(cases[i].header)) != cases[i].wanted)
			fail_msg("'%s' on %s", cases[i].tids, cases[i].header);
		assert_int_equal(filter__given_up(f), 0);
		filter__free(f);
		error__clear(&e);
	}
}

/* Each observed with gawk 5.2: `awk -v r=EXPRESSION '$0 ~ r'`. */
static void test_expressions(void **state)
{
	static const struct {
		const char *expression;
		const char *subject;
		bool match;
	} cases[] = {
		{"*", "a", true}, /* not an expression: everything */
		{"*a", "a", false},
		{"*a", "*a", true},
		{"(*a)", "a", false},
		{"(*a)", "*a", true},
		{"x|*a", "*a", true},
		{"x|*a", "a", false},
		{"+", "a", false},
		{"+", "+", true},
		{"?", "a", false},
		{"^*a", "*a", true},
		{"^*a", "a", false},
		{"^a**$", "aa", true},
		{"^a+?$", "", true},
		{"^a*+a$", "aa", true},
		{"^a??b$", "b", true},
		{"^(ab)+*$", "abab", true},
		{"^a{2}{2}$", "aaaa", true},
		{"^a{2}{2}$", "aaa", false},
		{"a{", "a{", true},
		{"a{x}", "a{x}", true},
		{"a{1", "a{1", true},
		{"{2}", "{2}", true},
		{"^{2}", "a", false},
		{"^a{2}$", "aa", true},
		{"^a{2}$", "aaa", false},
		{"^a{0}b$", "b", true},
		{"^a{2;}$", "a{2;}", true},
		{")", ")", true},
		{"a)", "a)", true},
		{"()", "", true},
		{"a||b", "q", true},
		{"a|", "q", true},
		{"(a)(?b)", "a?b", true},
		{"(?:a)", "?:a", true},
		{"(?i)A", "a", false},
		{"(*ACCEPT)", "x", false},
		{"\\.", "x", true},    /* awk's string rules leave `.` */
		{"\\\\.", "x", false}, /* and here `\.` */
		{"\\\\.", ".", true},
		{"\\d", "d", true},
		{"\\\\d", "5", false},
		{"\\\\w", "d", true},
		{"\\\\y1\\\\y", "x 1 y", true},
		{"\\\\<1\\\\>", "a1", false},
		{"\\\\B", "ab", true},
		{"\\\\<?2", "12", false}, /* `?` stands for itself at a start */
		{"\\\\<+2", "+2", false},
		{"\\\\y*2", "a*2", true},
		{"a\\\\y?", "ab", true},
		{"a$*b", "ab", true},
		{"^\\\\`a\\\\'$", "a", true},
		{"\\\\sx\\\\S", " xy", true},
		{"\\\\1", "1", false},
		{"\\x41\\102", "AB", true},
		{"\\\\x41\\\\102", "AB", true},
		{"\\54", "anything", true}, /* a comma: two empty items */
		{"\\t", "\t", true},
		{"\\\\t", "\t", true},
		{"a\\\\{2}", "a{2}", true},
		{"\\\\Qa.\\\\E", "Qa.E", true},
		{"a\\", "a", true},
		{"[[:digit:]]", "5", true},
		{"[[:digit:]]", "x", false},
		{"[^[:digit:]]", "5", false},
		{"[]a]", "]", true},
		{"[^]a]", "]", false},
		{"[\\\\]]", "]", true},
		{"[a-]", "-", true},
		{"^[a-c]$", "b", true},
		{"[a\\\\-z]", "b", false},
		{"[a\\\\-z]", "-", true},
		{"[\\\\w]", "w", true},
		{"[\\\\w]", "x", false},
		{"[\\\\t]", "\t", true},
		{"[[.a.][=b=]]", "b", true},
		{"[a[]", "[", true},
		{"[&&x]", "&", true},
		{"a.c", "a\nc", true},
		{"a$", "a\n", false},
		{"(^a|b)+$", "ab", true},
		{"\xc3\xa9", "caf\xc3\xa9", true},
		{"#x", "#x", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf header = STRBUF_INIT;
		struct error e = ERROR_INIT;
		struct filter *f = filter__new(cases[i].expression, &e);

		if (!f)
			fail_msg("'%s': %s", cases[i].expression, error__text(&e, errno));
		/* as the name of a thread, where blanks stay as they are; the last field is empty
		 */
		strbuf__printf(&header, "Thread (LWP ) \"%s\" :", cases[i].subject);
		if (filter__wants(f, (struct text){header.data, header.len}) != cases[i].match &&
		    *cases[i].subject)
			fail_msg("'%s' on '%s'", cases[i].expression, cases[i].subject);
		if (!*cases[i].subject)
			assert_int_equal(filter__wants(f, text_of("")), cases[i].match);
		filter__free(f);
		strbuf__free(&header);
	}
}

static void test_errors(void **state)
{
	static const char *const expressions[] = {
		"(",
		"1,(",
		"[",
		"[a",
		"[z-a]",
		"[[:foo:]]",
		"[[:digit:",
		"[[:a",
		"a{3}{2}(",
		"\\\\",
		"a\\\\",
		"[[.xy.]]",
		"((((a{9999}){9999}))){99}",
		"a{99999}",
		"[\\\\",
		"(()",
		"[[:Alpha:]]",
		"a{}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(expressions); i++) {
		struct error e = ERROR_INIT;

		errno = 0;
		assert_null(filter__new(expressions[i], &e));
		assert_int_equal(errno, EINVAL);
		assert_non_null(e.text);
		assert_memory_equal(e.text, "--tids: '", 9);
		error__clear(&e);
		assert_null(filter__new(expressions[i], NULL));
	}
}

static void test_error_names_the_expression(void **state)
{
	struct error e = ERROR_INIT;

	assert_null(filter__new("12,(34,56", &e));
	assert_string_equal(e.text, "--tids: '(34': unmatched (");
	/* a comma ends an expression wherever it is */
	assert_null(filter__new("a{2,1}[", &e));
	assert_string_equal(e.text, "--tids: '1}[': unmatched [");
	error__clear(&e);
}

static void test_too_long(void **state)
{
	static const char *const pieces[] = {"a", "(", "a*", "[a]", "*"};

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct strbuf tids = STRBUF_INIT;
		struct error e = ERROR_INIT;

		for (int j = 0; j < 5000; j++)
			strbuf__append_str(&tids, pieces[i]);
		assert_null(filter__new(tids.data, &e));
		assert_non_null(strstr(e.text, "longer than"));
		error__clear(&e);
		strbuf__free(&tids);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_hostile_expressions_end(void **state)
{
	static const char *const expressions[] = {
		"(a*)*b",
		"(a|a)*b",
		"(a+)+$",
		"((a*)*)*b",
		"(a|aa)+$",
		"(.*)(.*)(.*)(.*)(.*)(.*)b",
		"a*a*a*a*a*a*a*a*b",
		"(a?){30}a{30}b",
	};

	for (size_t i = 0; i < ARRAY_SIZE(expressions); i++) {
		for (size_t len = 64; len < 1 << 21; len <<= 7) {
			struct filter *f = filter__new(expressions[i], NULL);
			struct strbuf header = STRBUF_INIT;
			double start = seconds();

			assert_non_null(f);
			strbuf__append_str(&header, "Thread ");
			for (size_t j = 0; j < len; j++)
				strbuf__append_char(&header, 'a');
			strbuf__append_char(&header, '!');
			for (int j = 0; j < 30; j++)
				assert_false(
					filter__wants(f, (struct text){header.data, header.len}));
			if (seconds() - start > 30)
				fail_msg("'%s' took %.0f s", expressions[i], seconds() - start);
			strbuf__free(&header);
			filter__free(f);
		}
	}
}

static void test_given_up_is_counted(void **state)
{
	struct filter *f = filter__new("(a|aa)+$,77", NULL);
	char header[] = "Thread aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";

	for (size_t i = 1; i < 20; i++) {
		assert_false(filter__wants(f, text_of(header)));
		assert_int_equal(filter__given_up(f), i);
	}
	assert_true(filter__wants(f, text_of("Thread 1 (LWP 77)):")));
	filter__free(f);
	filter__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_error_names_the_expression),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_hostile_expressions_end),
		cmocka_unit_test(test_given_up_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
