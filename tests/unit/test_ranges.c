// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/ranges.h"

static void gives_out_all_and_no_more(void **state)
{
	struct ranges *r = ranges__new(10);
	size_t a, b, c;

	assert_non_null(r);
	assert_int_equal(ranges__take(r, 4, &a), 0);
	assert_int_equal(ranges__take(r, 6, &b), 0);
	assert_int_equal(a, 0);
	assert_int_equal(b, 4);
	assert_int_equal(ranges__used(r), 10);
	assert_int_equal(ranges__take(r, 1, &c), -ENOSPC);
	ranges__free(r);
}

static void rests_before_it_is_given_again(void **state)
{
	struct ranges *r = ranges__new(4);
	size_t a, b;

	assert_int_equal(ranges__take(r, 4, &a), 0);
	ranges__give_back(r, a, 4, 100);
	assert_int_equal(ranges__take(r, 1, &b), -ENOSPC);
	ranges__settle(r, 100);
	assert_int_equal(ranges__take(r, 1, &b), -ENOSPC);
	ranges__settle(r, 101);
	assert_int_equal(ranges__used(r), 0);
	assert_int_equal(ranges__take(r, 4, &b), 0);
	ranges__free(r);
}

static void joins_neighbours(void **state)
{
	struct ranges *r = ranges__new(9);
	size_t at[3], all;

	for (int i = 0; i < 3; i++)
		assert_int_equal(ranges__take(r, 3, &at[i]), 0);
	/* the middle last: it touches both */
	ranges__give_back(r, at[0], 3, 0);
	ranges__give_back(r, at[2], 3, 0);
	ranges__give_back(r, at[1], 3, 0);
	ranges__settle(r, 1);
	assert_int_equal(ranges__take(r, 9, &all), 0);
	assert_int_equal(all, 0);
	ranges__free(r);
}

/* Against a plain array of who has what. */
static void never_gives_a_place_twice(void **state)
{
	enum { SIZE = 500, MAX = 60 };
	struct ranges *r = ranges__new(SIZE);
	struct {
		size_t start, len;
	} held[MAX] = {{0}};
	unsigned char owner[SIZE] = {0};
	size_t taken = 0;

	srand(7);
	for (unsigned int step = 1; step < 20000; step++) {
		size_t i = (size_t)rand() % MAX, len = (size_t)rand() % 20 + 1, start;

		if (held[i].len) {
			for (size_t k = 0; k < held[i].len; k++)
				owner[held[i].start + k] = 0;
			ranges__give_back(r, held[i].start, held[i].len, step - 1);
			ranges__settle(r, step);
			taken -= held[i].len;
			held[i].len = 0;
		} else if (!ranges__take(r, len, &start)) {
			assert_true(start + len <= SIZE);
			for (size_t k = 0; k < len; k++) {
				assert_int_equal(owner[start + k], 0);
				owner[start + k] = 1;
			}
			held[i].start = start;
			held[i].len = len;
			taken += len;
		}
		assert_int_equal(ranges__used(r), taken);
	}
	ranges__free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_out_all_and_no_more),
		cmocka_unit_test(rests_before_it_is_given_again),
		cmocka_unit_test(joins_neighbours),
		cmocka_unit_test(never_gives_a_place_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
