// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sym/ksyms.h"

static struct ksyms *from_text(const char *text, size_t len)
{
	char name[] = "/tmp/test_ksyms.XXXXXX";
	int fd = mkstemp(name);
	struct ksyms *k;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	k = ksyms__new(name);
	unlink(name);
	assert_non_null(k);
	return k;
}

static void expect(const struct ksyms *k, uint64_t addr, const char *name)
{
	const char *found = ksyms__find(k, addr);

	if (!name)
		assert_null(found);
	else if (!found || strcmp(found, name))
		fail_msg("%llx: %s, not %s", (unsigned long long)addr, found ? found : "??", name);
}

static void test_find(void **state)
{
	static const char text[] = "0000000000000000 A fixed_percpu_data\n"
				   "ffffffff81000000 T first\n"
				   "ffffffff81000000 T second\n"
				   "ffffffff81000100 t third\n"
				   "ffffffff81000200 D data\n"
				   "ffffffff81000300 R rodata\n"
				   "ffffffffc0000100 t late\t[mod]\n"
				   "ffffffffc0000000 W early\t[mod]\n"
				   "ffffffffc0000200 d edge\t[mod]\n"
				   "ffffffffc0000200 t at_edge\t[mod]\n"
				   "ffffffffd0000000 t last";
	struct ksyms *k = from_text(text, sizeof(text) - 1);

	assert_false(ksyms__hidden(k));
	expect(k, 0, NULL);
	expect(k, 0xffffffff80ffffff, NULL);
	expect(k, 0xffffffff81000000, "first");
	expect(k, 0xffffffff810000ff, "first");
	expect(k, 0xffffffff81000100, "third");
	expect(k, 0xffffffff81000200, NULL);
	expect(k, 0xffffffff81000400, NULL);
	expect(k, 0xffffffffc0000001, "early");
	expect(k, 0xffffffffc0000100, "late");
	expect(k, 0xffffffffc0000200, "at_edge");
	expect(k, 0xffffffffc8000000, NULL);
	expect(k, UINT64_MAX, NULL);
	ksyms__free(k);
}

static void test_hidden(void **state)
{
	static const char text[] = "0000000000000000 T a\n0000000000000000 t b\n";
	struct ksyms *k = from_text(text, sizeof(text) - 1);

	assert_true(ksyms__hidden(k));
	expect(k, 0xffffffff81000000, NULL);
	ksyms__free(k);
	assert_null(ksyms__new("/nowhere/kallsyms"));
	assert_int_equal(errno, ENOENT);
}

static void test_malformed(void **state)
{
	static const char head[] = "\n \nzz T a\nffff\nffff T\nffff T \nffff  b\n"
				   "1 T good\n2 T a\0b\n";
	size_t len = sizeof(head) - 1 + 300000;
	char *text = malloc(len);
	struct ksyms *k;

	assert_non_null(text);
	memset(text, 'x', len);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + len - 9, "\n9 T end\n", 9);
	k = from_text(text, len);
	expect(k, 1, "good");
	expect(k, 2, "a");
	expect(k, 9, "end");
	ksyms__free(k);
	free(text);
}

static void test_this_kernel(void **state)
{
	struct ksyms *k = ksyms__new(NULL);
	uint64_t addr;

	assert_non_null(k);
	addr = ksyms__address(k, "do_syscall_64");
	if (ksyms__hidden(k)) {
		assert_int_equal(addr, 0);
	} else {
		assert_true(addr >= 0xffffffff80000000);
		expect(k, addr, "do_syscall_64");
		expect(k, addr + 1, "do_syscall_64");
	}
	ksyms__free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
