// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/comms.h"

static void read_as(struct comms *c, const char *name)
{
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
	comms__read(c, getpid());
}

static void test_read(void **state)
{
	struct comms c = {0};

	read_as(&c, "a name");
	assert_string_equal(c.now, "a name");
	read_as(&c, "fifteen bytes..");
	assert_string_equal(c.now, "fifteen bytes..");
	read_as(&c, "short");
	assert_string_equal(c.now, "short");
	comms__read(&c, 0); /* there is no such process */
	assert_string_equal(c.now, "short");
}

static void test_exec(void **state)
{
	struct comms c = {0};

	read_as(&c, "first");
	assert_int_equal(comms__exec(&c, 3, 100), 0);
	read_as(&c, "second");
	assert_int_equal(comms__exec(&c, 7, 200), 0);
	read_as(&c, "third");
	assert_string_equal(comms__in(&c, 0), "third");
	assert_string_equal(comms__in(&c, 1), "first");
	assert_string_equal(comms__in(&c, 3), "first");
	assert_string_equal(comms__in(&c, 4), "second");
	assert_string_equal(comms__in(&c, 7), "second");
	assert_string_equal(comms__in(&c, 8), "third");
	comms__forget(&c, 100);
	assert_string_equal(comms__in(&c, 3), "first");
	comms__forget(&c, 101);
	assert_string_equal(comms__in(&c, 3), "second");
	comms__forget(&c, UINT64_MAX);
	assert_string_equal(comms__in(&c, 3), "third");
	assert_null(c.past);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
