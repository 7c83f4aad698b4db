// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/output.h"
#include "write/samples_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/pmp-output-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	return rmdir(folder);
}

static const char *in_folder(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void assert_content(const char *name, const char *want)
{
	char have[256] = "";
	FILE *f = fopen(name, "re");

	assert_non_null(f);
	have[fread(have, 1, sizeof(have) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(have, want);
}

static size_t files_in_folder(void)
{
	DIR *dir = opendir(folder);
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/* Open, write and close; 0 or -errno. */
static int put(const char *to, const struct strbuf *text, struct error *e)
{
	struct output *o = output__open(to, e);
	int err = o ? output__put(o, text, e) : -errno;

	output__close(o);
	return err;
}

static void test_new_and_replaced(void **state)
{
	struct strbuf text = STRBUF_INIT;

	strbuf__append_str(&text, "one\n");
	assert_int_equal(put(in_folder("a"), &text, NULL), 0);
	assert_content(path, "one\n");
	strbuf__reset(&text);
	strbuf__append_str(&text, "2\n");
	assert_int_equal(put(path, &text, NULL), 0);
	assert_content(path, "2\n");
	assert_int_equal(files_in_folder(), 1);
	unlink(path);
	strbuf__free(&text);
}

static void test_keeps_mode_and_link(void **state)
{
	struct strbuf text = STRBUF_INIT;
	char link[64];
	struct stat st;

	strbuf__append_str(&text, "new\n");
	assert_int_equal(put(in_folder("a"), &text, NULL), 0);
	assert_int_equal(chmod(path, 0600), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink("a", link), 0);
	strbuf__append_str(&text, "er\n");
	assert_int_equal(put(link, &text, NULL), 0);
	assert_content(path, "new\ner\n");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	if (geteuid() == 0)
		assert_int_equal(st.st_uid, 65534);
	assert_int_equal(files_in_folder(), 2);
	unlink(path);
	/* a link that leads nowhere is left alone */
	assert_int_equal(put(link, &text, NULL), -ENOENT);
	assert_int_equal(files_in_folder(), 1);
	unlink(link);
	strbuf__free(&text);
}

/* A pipe without a reader must not hold us up. */
static void test_pipe_without_reader(void **state)
{
	struct strbuf text = STRBUF_INIT;
	struct error e = ERROR_INIT;

	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	assert_int_equal(put(path, &text, &e), -ENXIO);
	assert_null(samples_file__open(path, &e));
	assert_int_equal(errno, ENXIO);
	unlink(path);
	error__clear(&e);
}

static void test_opened_but_not_written(void **state)
{
	struct output *o = output__open(in_folder("a"), NULL);

	assert_non_null(o);
	output__close(o);
	assert_int_equal(files_in_folder(), 0);
}

static void test_not_writable(void **state)
{
	struct strbuf text = STRBUF_INIT;
	struct error e = ERROR_INIT;

	strbuf__append_str(&text, "x");
	assert_int_equal(put(in_folder("no/such"), &text, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no/such"));
	assert_int_equal(put("/dev/full", &text, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "/dev/full"));
	error__clear(&e);
	strbuf__free(&text);
}

/* A file that may not grow any more stands for a full disk. */
static void limit_file_size(rlim_t bytes, struct rlimit *old)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, old), 0);
	limit = *old;
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full_disk_keeps_the_old(void **state)
{
	struct strbuf text = STRBUF_INIT;
	struct error e = ERROR_INIT;
	struct rlimit old;
	int err;

	strbuf__append_str(&text, "old\n");
	assert_int_equal(put(in_folder("b"), &text, NULL), 0);
	for (int i = 0; i < 100; i++)
		strbuf__append_str(&text, "much more than fits\n");
	limit_file_size(100, &old);
	err = put(path, &text, &e);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(err, -EFBIG);
	assert_content(path, "old\n");
	assert_int_equal(files_in_folder(), 1);
	unlink(path);
	error__clear(&e);
	strbuf__free(&text);
}

static void test_samples_append(void **state)
{
	struct strbuf text = STRBUF_INIT;
	struct samples_file *f;
	char buffer[16];

	strbuf__append_str(&text, "first\n");
	f = samples_file__open(in_folder("k"), NULL);
	assert_non_null(f);
	assert_int_equal(samples_file__read(f, buffer, sizeof(buffer)), 0);
	assert_int_equal(samples_file__append(f, &text, NULL), 0);
	/* what it held before is read, not what was appended since */
	assert_int_equal(samples_file__read(f, buffer, sizeof(buffer)), 0);
	samples_file__close(f);
	f = samples_file__open(path, NULL);
	assert_int_equal(samples_file__append(f, &text, NULL), 0);
	assert_int_equal(samples_file__read(f, buffer, 4), 4);
	assert_int_equal(samples_file__read(f, buffer + 4, 12), 2);
	assert_memory_equal(buffer, "first\n", 6);
	assert_int_equal(samples_file__read(f, buffer, sizeof(buffer)), 0);
	samples_file__close(f);
	assert_content(path, "first\nfirst\n");
	unlink(path);
	strbuf__free(&text);
}

static void test_samples_cut_back(void **state)
{
	struct strbuf text = STRBUF_INIT;
	struct error e = ERROR_INIT;
	struct samples_file *f = samples_file__open(in_folder("k"), NULL);
	struct rlimit old;
	int err;

	assert_non_null(f);
	strbuf__append_str(&text, "whole\n");
	assert_int_equal(samples_file__append(f, &text, NULL), 0);
	for (int i = 0; i < 100; i++)
		strbuf__append_str(&text, "much more than fits\n");
	limit_file_size(100, &old);
	err = samples_file__append(f, &text, &e);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(err, -EFBIG);
	assert_non_null(e.text);
	samples_file__close(f);
	assert_content(path, "whole\n");
	unlink(path);
	error__clear(&e);
	strbuf__free(&text);
}

static void test_samples_errors(void **state)
{
	struct error e = ERROR_INIT;

	assert_null(samples_file__open(in_folder("no/such"), &e));
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(e.text, "no/such"));
	assert_null(samples_file__open(folder, &e));
	error__clear(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_and_replaced),
		cmocka_unit_test(test_keeps_mode_and_link),
		cmocka_unit_test(test_pipe_without_reader),
		cmocka_unit_test(test_opened_but_not_written),
		cmocka_unit_test(test_not_writable),
		cmocka_unit_test(test_full_disk_keeps_the_old),
		cmocka_unit_test(test_samples_append),
		cmocka_unit_test(test_samples_cut_back),
		cmocka_unit_test(test_samples_errors),
	};

	return cmocka_run_group_tests_name("output", tests, make_folder, remove_folder);
}
