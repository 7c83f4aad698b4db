// SPDX-License-Identifier: GPL-2.0-or-later
/* Compressed sections that are filled where they are read, against what was compressed. */
#include "dwarf/inflated.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define SIZE   ((size_t)24 << 20)
#define OFFSET 1000 /* of the stream in the file */

struct fixture {
	uint8_t *bytes; /* SIZE */
	int zlib, zstd; /* files */
	size_t zlib_len, zstd_len;
	size_t n_units, units[4096];
};

static int file_with(const void *bytes, size_t len)
{
	int fd = memfd_create("stream", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, OFFSET), len);
	return fd;
}

/* Units as in .debug_info: their lengths, then what compresses to about a third. */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	size_t bound = compressBound(SIZE), at = 0;
	uint8_t *out = malloc(bound);
	uLongf len = bound;
	uint32_t random = 1;

	f->bytes = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++) {
		random = random * 1664525 + 1013904223;
		f->bytes[i] = random >> 24 & (random >> 12 & 1 ? 0x0f : 0x70);
	}
	while (SIZE - at > 64) {
		uint32_t unit = 5000 + (uint32_t)(at * 7 % 60000);

		if (unit > SIZE - at - 4)
			unit = (uint32_t)(SIZE - at - 4);
		memcpy(f->bytes + at, &unit, sizeof(unit));
		f->units[f->n_units++] = at;
		at += 4 + unit;
	}
	assert_int_equal(compress2(out, &len, f->bytes, SIZE, 6), Z_OK);
	f->zlib_len = len;
	f->zlib = file_with(out, len);
	f->zstd_len = ZSTD_compress(out, bound, f->bytes, SIZE, 3);
	assert_false(ZSTD_isError(f->zstd_len));
	f->zstd = file_with(out, f->zstd_len);
	free(out);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->zlib);
	close(f->zstd);
	free(f->bytes);
	free(f);
	return 0;
}

static struct inflated *open_zlib(const struct fixture *f, bool units, bool whole)
{
	const struct inflated_options options = {.units = units, .whole = whole};
	struct inflated *i = inflated__new(f->zlib, OFFSET, f->zlib_len, SIZE, &options);

	assert_non_null(i);
	return i;
}

/* How much of it is there, in bytes. */
static size_t resident(const struct inflated *i)
{
	static unsigned char pages[SIZE / 4096];
	size_t n = 0;

	assert_int_equal(mincore(inflated__bytes(i), SIZE, pages), 0);
	for (size_t p = 0; p < SIZE / 4096; p++)
		n += pages[p] & 1;
	return n * 4096;
}

static void test_any_order(void **state)
{
	struct fixture *f = *state;
	struct inflated *i = open_zlib(f, false, false);
	const uint8_t *bytes = inflated__bytes(i);
	uint32_t random = 7;

	assert_int_equal(resident(i), 0);
	assert_memory_equal(bytes + (20 << 20), f->bytes + (20 << 20), 100);
	assert_true(resident(i) <= 128 << 10); /* not what is in front of it */
	for (int n = 0; n < 300; n++) {
		size_t at;

		random = random * 1664525 + 1013904223;
		at = (random >> 4) % (SIZE - 70000);
		assert_memory_equal(bytes + at, f->bytes + at, n % 10 ? 8 : 70000);
	}
	assert_int_equal(bytes[SIZE - 1], f->bytes[SIZE - 1]);
	assert_memory_equal(bytes, f->bytes, SIZE);
	assert_false(inflated__damaged(i));
	inflated__free(i);
}

static void test_units(void **state)
{
	struct fixture *f = *state;
	struct inflated *i = open_zlib(f, true, false);
	const uint8_t *bytes = inflated__bytes(i);
	size_t before;

	assert_int_equal(bytes[SIZE - 1], f->bytes[SIZE - 1]);
	before = resident(i);
	/* from header to header, as libdw does: nothing has to be decompressed again for them */
	for (size_t n = 0; n < f->n_units; n++)
		assert_memory_equal(bytes + f->units[n], f->bytes + f->units[n], 200);
	assert_int_equal(resident(i), before);
	assert_true(before < f->n_units * 8192 + (256 << 10));
	/* and what was kept does not hide what is next to it */
	for (size_t n = 0; n < f->n_units; n += 5)
		assert_memory_equal(bytes + f->units[n], f->bytes + f->units[n], 5000);
	assert_memory_equal(bytes, f->bytes, SIZE);
	inflated__free(i);
}

static void test_whole(void **state)
{
	struct fixture *f = *state;
	struct inflated *i = open_zlib(f, false, true);
	const struct inflated_options zstd = {.how = INFLATED_ZSTD};
	const uint8_t *bytes = inflated__bytes(i);

	assert_int_equal(resident(i), 0);
	assert_int_equal(bytes[12345], f->bytes[12345]);
	assert_int_equal(resident(i), SIZE);
	assert_memory_equal(bytes, f->bytes, SIZE);
	inflated__free(i);
	i = inflated__new(f->zstd, OFFSET, f->zstd_len, SIZE, &zstd);
	assert_non_null(i);
	assert_memory_equal(inflated__bytes(i), f->bytes, SIZE);
	inflated__free(i);
}

/* A stream that ends too early, or is not one, reads as zeros from there on. */
static void test_damage(void **state)
{
	struct fixture *f = *state;
	const struct inflated_options options = {.units = true};
	struct inflated *i = inflated__new(f->zlib, OFFSET, f->zlib_len / 2, SIZE, &options);
	const uint8_t *bytes = inflated__bytes(i);
	const uint8_t garbage[64] = {0x78, 0x9c, 0xff, 0xff, 0xff};
	int fd;

	assert_int_equal(bytes[SIZE - 1], 0);
	assert_true(inflated__damaged(i));
	assert_memory_equal(bytes, f->bytes, SIZE / 4); /* what came before is right */
	inflated__free(i);

	/* more than it says that it is */
	i = inflated__new(f->zlib, OFFSET, f->zlib_len, SIZE / 2 + 5, &options);
	assert_memory_equal(inflated__bytes(i), f->bytes, SIZE / 2 + 5);
	inflated__free(i);

	fd = file_with(garbage, sizeof(garbage));
	i = inflated__new(fd, OFFSET, sizeof(garbage), 4096, &options);
	assert_non_null(i);
	assert_int_equal(*(uint8_t *)inflated__bytes(i), 0);
	assert_true(inflated__damaged(i));
	inflated__free(i);
	close(fd);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	const struct inflated_options zlib = {0}, zstd = {.how = INFLATED_ZSTD};
	uint8_t dictionary[2] = {0x78, 0xbb}; /* FDICT */
	int fd = file_with(dictionary, sizeof(dictionary));

	assert_null(inflated__new(f->zstd, OFFSET, f->zstd_len, SIZE, &zlib));
	assert_int_equal(errno, EINVAL);
	assert_null(inflated__new(f->zlib, OFFSET, f->zlib_len, SIZE, &zstd));
	assert_int_equal(errno, EINVAL);
	assert_null(inflated__new(f->zstd, OFFSET, f->zstd_len, SIZE + 1, &zstd));
	assert_null(inflated__new(fd, OFFSET, 2, 100, &zlib));
	assert_int_equal(errno, EINVAL);
	assert_null(inflated__new(f->zlib, OFFSET, 1, 100, &zlib));
	assert_null(inflated__new(f->zlib, OFFSET, 100, 0, &zlib));
	assert_null(inflated__new(f->zlib, OFFSET, 100, 500000, &zlib));
	assert_null(inflated__new(f->zlib, UINT64_MAX - 5, 100, 1000, &zlib));
	assert_int_equal(errno, EINVAL);
	assert_null(inflated__new(f->zlib, OFFSET + f->zlib_len, 100, 1000, &zlib));
	assert_int_equal(errno, EIO);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order), cmocka_unit_test(test_units),
		cmocka_unit_test(test_whole),	  cmocka_unit_test(test_damage),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
