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

#include "sym/kernel_names.h"

/* What is in the file differs from what the source says: so one sees which it was. */
static const char file_text[] = "ffffffff81000000 T in_file\n"
				"ffffffff81001000 T end_of_it\n";

struct source {
	int name_err, address_err;
	int names, addresses; /* times asked */
	char answer[32];
};

static int name(void *arg, uint64_t addr, const char **ret_name)
{
	struct source *s = arg;

	s->names++;
	if (s->name_err)
		return s->name_err;
	snprintf(s->answer, sizeof(s->answer), "asked_%x", (unsigned int)(addr & 0xfff));
	*ret_name = addr & 0xfff ? s->answer : NULL;
	return 0;
}

static int address(void *arg, const char *wanted, uint64_t *ret_addr)
{
	struct source *s = arg;

	s->addresses++;
	if (s->address_err)
		return s->address_err;
	*ret_addr = strcmp(wanted, "there") ? 0 : 0x1234;
	return 0;
}

struct fixture {
	char path[32];
	struct source source;
	struct kernel_names *k;
};

static int setup(void **state)
{
	static struct fixture f;
	int fd;

	f = (struct fixture){.path = "/tmp/test_kernel_names.XXXXXX"};
	fd = mkstemp(f.path);
	if (fd < 0 || write(fd, file_text, sizeof(file_text) - 1) != sizeof(file_text) - 1)
		return -1;
	close(fd);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kernel_names__free(f->k);
	unlink(f->path);
	return 0;
}

static void use(struct fixture *f, bool source)
{
	const struct kernel_names_source s = {.name = name, .address = address, .arg = &f->source};

	f->k = kernel_names__new(source ? &s : NULL, f->path);
	assert_non_null(f->k);
}

static void expect(struct fixture *f, uint64_t addr, const char *want)
{
	const char *found = kernel_names__find(f->k, addr);

	if (want)
		assert_string_equal(found ? found : "(none)", want);
	else
		assert_null(found);
}

static void test_asks_once(void **state)
{
	struct fixture *f = *state;

	use(f, true);
	unlink(f->path); /* it is not needed */
	for (int i = 0; i < 3; i++) {
		expect(f, 0xffffffff81000001, "asked_1");
		expect(f, 0xffffffff81000002, "asked_2");
		expect(f, 0xffffffff81000000, NULL);
	}
	assert_int_equal(f->source.names, 3);
	assert_int_equal(kernel_names__address(f->k, "there"), 0x1234);
	assert_int_equal(kernel_names__address(f->k, "in_file"), 0);
	assert_false(kernel_names__hidden(f->k));
}

static void test_without_source(void **state)
{
	struct fixture *f = *state;

	use(f, false);
	expect(f, 0xffffffff81000001, "in_file");
	expect(f, 0x1000, NULL);
	assert_int_equal(kernel_names__address(f->k, "end_of_it"), 0xffffffff81001000);
	assert_false(kernel_names__hidden(f->k));
}

/* what it said before stays so; it is not asked again */
static void test_source_that_fails(void **state)
{
	struct fixture *f = *state;

	use(f, true);
	expect(f, 0xffffffff81000001, "asked_1");
	f->source.name_err = -EPERM;
	expect(f, 0xffffffff81000002, "in_file");
	expect(f, 0xffffffff81000003, "in_file");
	expect(f, 0xffffffff81000001, "asked_1");
	assert_int_equal(f->source.names, 2);
	assert_int_equal(kernel_names__address(f->k, "in_file"), 0xffffffff81000000);
	assert_int_equal(f->source.addresses, 0);
	assert_false(kernel_names__hidden(f->k));
}

/* where addresses are not said, names may be all the same */
static void test_source_without_addresses(void **state)
{
	struct fixture *f = *state;

	use(f, true);
	f->source.address_err = -EPERM;
	assert_int_equal(kernel_names__address(f->k, "in_file"), 0xffffffff81000000);
	expect(f, 0xffffffff81000001, "asked_1");
	assert_false(kernel_names__hidden(f->k));
}

static void test_hidden(void **state)
{
	struct fixture *f = *state;

	use(f, true);
	unlink(f->path);
	f->source.address_err = f->source.name_err = -EPERM;
	assert_int_equal(kernel_names__address(f->k, "there"), 0);
	assert_false(kernel_names__hidden(f->k)); /* a name may still be had */
	expect(f, 0xffffffff81000001, NULL);
	assert_true(kernel_names__hidden(f->k));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_asks_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_source, setup, teardown),
		cmocka_unit_test_setup_teardown(test_source_that_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_source_without_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hidden, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
