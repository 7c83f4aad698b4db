// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/strbuf.h"
#include "fold/shorten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct shorten_case {
	const char *line;
	const char *name;
};

static void check(struct shortener *s, const char *line, size_t len, const char *name)
{
	struct text got;

	assert_int_equal(shortener__frame(s, (struct text){line, len}, &got), 0);
	if (got.len != strlen(name) || memcmp(got.str, name, got.len))
		fail_msg("%s\n gives '%.*s'\n not   '%s'", line, (int)got.len, got.str, name);
}

/* Each with a shortener of its own: nothing carries over. */
static void check_all(enum shorten_dialect dialect, const struct shorten_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct shortener *s = shortener__new(dialect);

		assert_non_null(s);
		check(s, cases[i].line, strlen(cases[i].line), cases[i].name);
		shortener__free(s);
	}
}

static void test_gdb_fields(void **state)
{
	static const struct shorten_case cases[] = {
		{"#0  0x00007f01 in read () from /lib/libpthread.so.0", "read(libpthread.so.0)"},
		{"#0  0x00007f01 in read (fd=3) at ../x/read.c:27", "read"},
		{"#0  0x00007f01 in read (fd=3) at ./read.c:27", "read"},
		{"#0  0x00007f01 in read (fd=3) at /src/io/read.c:27", "read(read.c:27)"},
		{"#0  read (fd=3) at /src/io/read.c:27", "read(read.c:27)"},
		{"#0\t0x1\tin\tread\t()\tfrom\t/a/b.so\t ", "read(b.so)"},
		{"#0  0x1 in f () from /A.so\r", "f(A.so\r)"},
		{"#0  0x1 in f () from /a/", "f()"},
		{"#1 0x1 in f", "f"},
		{"#1 0x1 in", ""},
		{"#1 0x1", ""},
		{"#1", ""},
		{"#", ""},
		{"#0x1 f", "f"},
		{"# 0x1 in f", "f"},
		{"#0  f0x5 in g", "g"},
		{"#0  0X5 in g", "0X5"},
		{"#0  0x1 in f (s=0x1 \"/etc\")", "f"},
		{"#0  0x1 in f (s=0x1, \"x\", /etc)", "f(etc))"},
	};

	check_all(SHORTEN_GDB, cases, ARRAY_SIZE(cases));
}

static void test_gdb_names(void **state)
{
	static const struct shorten_case cases[] = {
		{"#0  0x1 in pthread_cond_wait@@GLIBC_2.3.2 () from /lib/libpthread.so.0",
		 "pthread_cond_wait"},
		{"#0  @@x () from /lib/a.so", ""},
		{"#0  0x00007f12 in ?? () from /usr/lib/libaio.so.1", "libaio::?\?(libaio.so.1)"},
		{"#0  0x00000000 in ?? () from /usr/lib/libaio.so.1", "?\?(libaio.so.1)"},
		{"#0  0x00007f12 in ?? ()", "::??"},
		{"#0  0x00007f12 in ?? () from /lib/noext", "::?\?(noext)"},
		{"#0  ?? () from /lib/a.so", "?\?(a.so)"},
		{"#0  <signal handler called>", "<signal"},
		{"#0  0x1 in a<b>::c () at x.c:1", "a::c"},
		{"#0  0x1 in a<b<c>, d>::e<f> () at x.c:1", "a::e"},
		{"#0  0x1 in f<a> () at x.c:1", "f<a>"},
		{"#0  0x1 in f<a::b> () at x.c:1", "f<a::b>"},
		{"#0  0x1 in A::operator<(A const&) () at x.c:1", "A::operator<"},
		{"#0  0x1 in A::operator-><x>() () at x.c:1", "A::operator-><x>"},
		{"#0  0x1 in operator<<(std::ostream&) ()", "operator<<"},
		{"#0  0x1 in <lambda()>::operator()(int) const ()", "::operator"},
		{"#0  0x1 in (anonymous namespace)::f(int) ()", "::f"},
		{"#0  0x1 in A<b>::operator bool() const ()", "A::operatorbool"},
		{"#0  0x1 in operator new(unsigned long) ()", "operator"},
		{"#0  0x1 in A::operator bool() const ()", "A::operator"},
		{"#0  0x1 in std::vector<int, std::allocator<int> >::at(unsigned long) const () "
		 "from /usr/lib/libx.so",
		 "std::vector::at(libx.so)"},
		{"#0  0x1 in f(int (*)(void), char) ()", "f"},
		{"#0  0x1 in f(((int) ()", "f(("},
		{"#0  0x1 in f(int)) ()", "f)"},
		{"#0  0x1 in is_const_item(int) ()", "is__item"},
		{"#0  0x1 in is_const_item ()", "is__item"},
		{"#0  0x1 in avoid_const<a>::run(int) ()", "a_::run"},
		{"#0  0x1 in f(char*) (s=0x1 \"mail from here at there\") at x.c:1",
		 "f(s=0x1\"mail"},
		{"#0  0x1 in f<a>::g (s=0x1 \" from \") at /x/y.c:1", "f::g(s=0x1\"(y.c:1)"},
		{"#0  0x1 of A::f(int) () from /x/y.so", "0x1ofA::f(y.so)"},
		{"#0  A::operator() (this=0x1) at x.c:1", "A::operator()"},
		{"#0  void f<int>(int) at x.c:1", "void"},
		{"#0  memcpy(void*, void const*) ()", "memcpy(void*,"},
	};

	check_all(SHORTEN_GDB, cases, ARRAY_SIZE(cases));
}

static void test_gdb_file_carries_over(void **state)
{
	/* field 4 of #1, #2 and #4 holds `void` or `const`: field 5 is the function, and the file
	 * stays as it was */
	static const struct shorten_case carried[] = {
		{"#0  0x1 in f () from /lib/a.so", "f(a.so)"},
		{"#1  0x1 in memcpy(void*, void const*) () from /lib/b.so", "void(a.so)"},
		{"#2  0x1 in void g () from /lib/b.so", "g(a.so)"},
		{"#3  g () at x.c:1", "g"},
		{"#4  0x1 in x.constprop.0 g from /lib/b.so", "g"},
	};
	struct shortener *s = shortener__new(SHORTEN_GDB);

	for (size_t i = 0; i < ARRAY_SIZE(carried); i++)
		check(s, carried[i].line, strlen(carried[i].line), carried[i].name);
	shortener__free(s);
}

static void test_eu(void **state)
{
	static const struct shorten_case cases[] = {
		{"#0  0x00007f01 __poll - /usr/lib/libc.so.6", "__poll(libc.so.6)"},
		{"#0  0x00007f01 __poll - /usr/lib/libc.so.6   ../sysdeps/poll.c:29:10", "__poll"},
		{"#0  0x1 void f<int>(int) - /x/a.so", "void(a.so)"},
		{"#0  0x1 ?\?() - /x/a.so", "?\?(a.so)"},
		{"#0  0x1 ?? - /x/a.so", "a::?\?(a.so)"},
		{"#0  0x1 A<b>::f(int) - x", "A::f"},
		{"#0  0x1 mysqld_main(int, char**) - x", "mysqld_main"},
	};

	check_all(SHORTEN_EU, cases, ARRAY_SIZE(cases));
}

static void test_pteu(void **state)
{
	static const struct shorten_case cases[] = {
		{"#0 0x1 in __GI___poll at poll.c:29:10", "__GI___poll"},
		{"#0 0x1 in A<B>::loop() at acceptor.h:64:75", "A::loop"},
		{"#0 0x1 in (anonymous namespace)::f at x.c", ""},
		{"#0 0x1 in {lambda(int)#1}::operator() at x.c", "{lambda"},
		{"#0 0x1 in void f at x.c", "f"},
		{"#0 0x1 in A<b> at /x/y.c:3", "A<b>(y.c:3)"},
	};

	check_all(SHORTEN_PTEU, cases, ARRAY_SIZE(cases));
}

static void test_bytes(void **state)
{
	struct shortener *s = shortener__new(SHORTEN_GDB);
	struct text got;

	assert_int_equal(shortener__frame(s, (struct text){"#0 a\0b () /x\0", 13}, &got), 0);
	assert_int_equal(got.len, 7);
	assert_memory_equal(got.str, "a\0b(x\0)", 7);
	assert_int_equal(shortener__frame(s, (struct text){"", 0}, &got), 0);
	assert_int_equal(got.len, 0);
	shortener__free(s);
	shortener__free(NULL);
}

/* The reference's loop, pass by pass. */
static void remove_innermost(char *str, char open, char close)
{
	char *out = str, *p = str;

	while (*p) {
		size_t n = *p == open ? strcspn(p + 1, (char[]){open, close, '\0'}) : 0;

		if (*p == open && p[n + 1] == close)
			p += n + 2;
		else
			*out++ = *p++;
	}
	*out = '\0';
}

static void remove_word(char *str, const char *a, const char *b)
{
	char *out = str, *p = str;

	while (*p) {
		if (strncmp(p, a, strlen(a)) == 0)
			p += strlen(a);
		else if (*b && strncmp(p, b, strlen(b)) == 0)
			p += strlen(b);
		else
			*out++ = *p++;
	}
	*out = '\0';
}

static void shorten_naively(char *str)
{
	size_t before;

	while (strstr(str, ">::")) {
		before = strlen(str);
		remove_innermost(str, '<', '>');
		if (strlen(str) == before)
			break;
	}
	while (strchr(str, '(')) {
		before = strlen(str);
		remove_innermost(str, '(', ')');
		if (strlen(str) == before)
			break;
	}
	remove_word(str, "void", "const");
	remove_word(str, " ", "");
}

static void test_as_the_passes_do(void **state)
{
	static const char *const pieces[] = {
		"<", ">",    "<",     ">",  ":",  "::", ">::", "a",  "(",   ")",
		" ", "void", "const", "vo", "id", "<>", "<a>", "><", "b::c"};
	struct shortener *s = shortener__new(SHORTEN_GDB);
	unsigned int seed = 20211;

	for (int i = 0; i < 200000; i++) {
		char line[256] = "# 0x in (", expected[256];
		int n = rand_r(&seed) % 24;

		/* the chosen field must hold '<' or '(', and no void or const */
		strcat(line, rand_r(&seed) % 2 ? " " : ")");
		for (int j = 0; j < n; j++)
			strcat(line, pieces[(size_t)rand_r(&seed) % ARRAY_SIZE(pieces)]);
		strcpy(expected, line + strlen("# 0x in "));
		if (strcspn(expected, " ") < strlen(expected)) {
			char field[256];

			snprintf(field, sizeof(field), "%.*s", (int)strcspn(expected, " "),
				 expected);
			if (strstr(field, "void") || strstr(field, "const"))
				continue;
		} else if (strstr(expected, "void") || strstr(expected, "const")) {
			continue;
		}
		shorten_naively(expected);
		check(s, line, strlen(line), expected);
	}
	shortener__free(s);
}

/* Every name of up to 10 characters out of "<>:", alone and before "<>::". */
static void test_every_short_name(void **state)
{
	struct shortener *s = shortener__new(SHORTEN_GDB);
	size_t names = 1;

	for (size_t len = 0; len <= 10; len++, names *= 3) {
		for (size_t i = 0; i < 2 * names; i++) {
			char line[64] = "# 0x in ", expected[32] = "";
			size_t code = i / 2;

			for (size_t j = 0; j < len; j++, code /= 3)
				expected[j] = "<>:"[code % 3];
			strcat(expected, i % 2 ? "<>::" : "");
			if (!strchr(expected, '<'))
				continue;
			strcat(line, expected);
			shorten_naively(expected);
			check(s, line, strlen(line), expected);
		}
	}
	shortener__free(s);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Megabytes of what makes the passes quadratic; a linear way takes well below a second. */
static void test_hostile_lines_are_fast(void **state)
{
	static const struct {
		const char *head, *piece, *middle, *piece2, *tail;
	} cases[] = {
		{"#0 0x1 in f<a>::", "<", "", "", ""},
		{"#0 0x1 in f<a>::", ">", "", "", ""},
		{"#0 0x1 in f<a>::", "<", "x", ">", "::y"},
		{"#0 0x1 in f", "<", "x", ">::", "y"},
		{"#0 0x1 in f", "<a>", "", "", "::x"},
		{"#0 0x1 in f>", "<a>:", "", "", ""},
		{"#0 0x1 in f<a>::", "><", "", "", ""},
		{"#0 0x1 in f", "(", "", "", ""},
		{"#0 0x1 in f", "(", "", ")", ""},
		{"#0 0x1 in f(", "void", "", "", ""},
		{"#0 0x1 in f(", " ", "", "", ""},
		{"#0 0x1 in f(", " fro", "", " a", ""},
		{"#0 ", "0", "", "", ""},
		{"#0 0x1 in ?", "/", "?", "@", ""},
	};
	struct shortener *s = shortener__new(SHORTEN_GDB);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf line = STRBUF_INIT;
		struct text got;
		double start;

		strbuf__append_str(&line, cases[i].head);
		for (int j = 0; j < 1000000; j++)
			strbuf__append_str(&line, cases[i].piece);
		strbuf__append_str(&line, cases[i].middle);
		for (int j = 0; j < 1000000 && *cases[i].piece2; j++)
			strbuf__append_str(&line, cases[i].piece2);
		strbuf__append_str(&line, cases[i].tail);
		start = seconds();
		assert_int_equal(shortener__frame(s, (struct text){line.data, line.len}, &got), 0);
		if (seconds() - start > 5)
			fail_msg("case %zu took %.1f s", i, seconds() - start);
		strbuf__free(&line);
	}
	shortener__free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gdb_fields),
		cmocka_unit_test(test_gdb_names),
		cmocka_unit_test(test_gdb_file_carries_over),
		cmocka_unit_test(test_eu),
		cmocka_unit_test(test_pteu),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_as_the_passes_do),
		cmocka_unit_test(test_every_short_name),
		cmocka_unit_test(test_hostile_lines_are_fast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
