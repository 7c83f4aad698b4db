// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/config.h"

#include "base/strbuf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* What a config holds: `LINE:name=value;`, a `~` for no value, `LINE:@argument;`. */
static void describe(const struct config *c, struct strbuf *out)
{
	const struct config_entry *entry;

	strbuf__append_str(out, "");
	for (size_t i = 0; (entry = config__entry(c, i)); i++) {
		if (entry->name)
			strbuf__printf(out, "%u:%s=%s;", entry->line, entry->name,
				       entry->value ? entry->value : "~");
		else
			strbuf__printf(out, "%u:@%s;", entry->line, entry->value);
	}
}

#define PARSED(text, expected) parsed(text, sizeof(text) - 1, expected)
static void parsed(const char *text, size_t len, const char *expected)
{
	struct config *c = config__new();
	struct strbuf out = STRBUF_INIT;
	char *exact = malloc(len ? len : 1); /* so that ASan sees a read beyond it */

	assert_non_null(c);
	assert_non_null(exact);
	memcpy(exact, text, len);
	assert_int_equal(config__parse(c, "f", false, exact, len), 0);
	describe(c, &out);
	assert_string_equal(out.data, expected);
	strbuf__free(&out);
	free(exact);
	config__free(c);
}

static void test_forms(void **state)
{
	PARSED("", "");
	PARSED("lines=5\n", "1:lines=5;");
	PARSED("lines 5\n", "1:lines=5;");
	PARSED("lines\t=\t5\t\n", "1:lines=5;");
	PARSED("  lines  =  5  \n", "1:lines=5;");
	PARSED("verbose\n", "1:verbose=~;");
	PARSED("lines=\n", "1:lines=;");
	PARSED("--lines=5\n-l=6\nl=7\n-l 8\n", "1:lines=5;2:l=6;3:l=7;4:l=8;");
	PARSED("tids=a=b\ntids a=b\n", "1:tids=a=b;2:tids=a=b;");
	PARSED("save-samples=a b  c\n", "1:save-samples=a b  c;");
	PARSED("save-samples=\"a b\"\n", "1:save-samples=\"a b\";");
	PARSED("=5\n-----\n", "1:=5;2:=~;");
	/* a bare option does not reach for the next line */
	PARSED("lines\npid=4\n", "1:lines=~;2:pid=4;");
}

static void test_comments(void **state)
{
	PARSED("# x\n  # lines=1\n\t#\n\n   \n", "");
	PARSED("lines=5 # five\n", "1:lines=5;");
	PARSED("lines=5\t#five\n", "1:lines=5;");
	PARSED("verbose # yes\n", "1:verbose=~;");
	PARSED("save-samples=/tmp/a#b\n", "1:save-samples=/tmp/a#b;");
	PARSED("save-samples=/tmp/a#b #c #d\n", "1:save-samples=/tmp/a#b;");
	PARSED("lines=#5\n", "1:lines=#5;");
	PARSED("lines= #5\n", "1:lines=;");
}

static void test_arguments(void **state)
{
	PARSED("lines=1\n--\nlines=2\n-x # y\n\n a b \n--\n",
	       "1:lines=1;3:@lines=2;4:@-x;6:@a b;7:@--;");
	PARSED("  --  \nf\n", "2:@f;");
	PARSED("---\nlines=1\n", "1:=~;2:lines=1;");
}

static void test_version_check(void **state)
{
	PARSED("version-check\nno-version-check\nnoversion-check\n--version-check=off\n", "");
	PARSED("version-checks\nsave-samples=version-check\n",
	       "1:version-checks=~;2:save-samples=version-check;");
}

static void test_odd_bytes(void **state)
{
	PARSED("lines=5", "1:lines=5;");
	PARSED("lines=5\r\n# x\r\n\r\npid=4\r\n", "1:lines=5;4:pid=4;");
	PARSED("lines=5\r\n--\r\na\r", "1:lines=5;3:@a;");
	PARSED("\xef\xbb\xbflines=5\n", "1:lines=5;");
	PARSED("\xef\xbb\xbf", "");
	PARSED("\xef\xbb", "1:\xef\xbb=~;");
	PARSED("lin\0es=5\n\0\0\0\n\0", "1:lines=5;");
	PARSED("binary=\xff\xc3\n", "1:binary=\xff\xc3;");
}

/* As pt-pmp reads them. */
static void test_backslashes(void **state)
{
	PARSED("tids=\\*,a\\\\b\n", "1:tids=*,a\\b;");
	PARSED("lines=\\\n5\npid=4\n", "1:lines=5;3:pid=4;");
	PARSED("\\\n\\\nlines=5\npid=4\n", "1:lines=5;4:pid=4;");
	PARSED("lines=5\\", "1:lines=5;");
	PARSED("\\", "");
	PARSED("\\#x\n", "");
}

static void test_order_and_origin(void **state)
{
	struct config *c = config__new();
	struct error e = ERROR_INIT;
	char file[] = "one";

	assert_int_equal(config__parse(c, file, true, "lines=1\n", 8), 0);
	file[0] = 'X'; /* the name was copied */
	assert_int_equal(config__parse(c, "two", false, "\nlines=2\n", 9), 0);
	assert_string_equal(config__entry(c, 0)->file, "one");
	assert_true(config__entry(c, 0)->shared);
	assert_string_equal(config__entry(c, 1)->file, "two");
	assert_false(config__entry(c, 1)->shared);
	assert_null(config__entry(c, 2));
	assert_null(config__entry(NULL, 0));

	error__set(&e, EINVAL, "--lines takes a number");
	assert_int_equal(config__blame(config__entry(c, 1), -EINVAL, &e), -EINVAL);
	assert_string_equal(error__text(&e, 0), "two:2: --lines takes a number");
	error__clear(&e);
	assert_int_equal(config__blame(config__entry(c, 1), -ENOMEM, &e), -ENOMEM);
	assert_string_equal(error__text(&e, 0), "two:2: Cannot allocate memory");
	error__clear(&e);
	assert_int_equal(config__blame(config__entry(c, 1), -EINVAL, NULL), -EINVAL);
	config__free(c);
	config__free(NULL);
}

static void test_many_entries(void **state)
{
	struct config *c = config__new();
	struct strbuf text = STRBUF_INIT;

	for (int i = 0; i < 1000; i++)
		strbuf__printf(&text, "lines=%d\n", i);
	assert_int_equal(config__parse(c, "f", false, text.data, text.len), 0);
	assert_string_equal(config__entry(c, 999)->value, "999");
	assert_int_equal(config__entry(c, 999)->line, 1000);
	assert_null(config__entry(c, 1000));
	strbuf__free(&text);
	config__free(c);
}

/* The tests below have a folder of their own as the working folder. */
static char folder[] = "/tmp/pmp-config.XXXXXX";

static int enter_folder(void **state)
{
	return mkdtemp(folder) && !chdir(folder) && !mkdir("etc", 0755) && !mkdir("home", 0755)
		       ? 0
		       : -1;
}

static int leave_folder(void **state)
{
	static const char *const names[] = {
		"etc/percona-toolkit.conf",
		"etc/pt-pmp.conf",
		"home/.percona-toolkit.conf",
		"home/.pt-pmp.conf",
		"a",
		"b",
		"large",
		"fifo",
		"dangling",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	return rmdir("etc") || rmdir("home") || chdir("/") || rmdir(folder);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	assert_int_equal(fclose(f), 0);
}

/* Load for `line`, a command line split at blanks: its words, and what the config holds. */
static void loaded(const char *line, const char *home, int words, const char *expected)
{
	char copy[128], *argv[8] = {"pt-pmp"}, *save = NULL;
	struct config *c = config__new();
	struct strbuf out = STRBUF_INIT;
	struct error e = ERROR_INIT;
	int argc = 1, ret_words = -1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word && argc < 8;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	assert_int_equal(config__load(c, argc, argv, "etc", home, &ret_words, &e), 0);
	assert_null(e.text);
	assert_int_equal(ret_words, words);
	describe(c, &out);
	assert_string_equal(out.data, expected);
	strbuf__free(&out);
	config__free(c);
}

static void test_files(void **state)
{
	char *const argv[] = {"pt-pmp", NULL};
	struct config *c = config__new();
	int words;

	loaded("", "home", 0, "");
	put("etc/percona-toolkit.conf", "lines=1\n");
	put("etc/pt-pmp.conf", "lines=2\n");
	put("home/.percona-toolkit.conf", "lines=3\n--\nx\n");
	put("home/.pt-pmp.conf", "lines=4\n");
	loaded("", "home", 0, "1:lines=1;1:lines=2;1:lines=3;3:@x;1:lines=4;");
	loaded("--lines 5", "home", 0, "1:lines=1;1:lines=2;1:lines=3;3:@x;1:lines=4;");
	loaded("", NULL, 0, "1:lines=1;1:lines=2;");
	loaded("", "", 0, "1:lines=1;1:lines=2;");
	loaded("", "nowhere", 0, "1:lines=1;1:lines=2;");
	put("home/.percona-toolkit.conf", "lines=3\n");
	assert_int_equal(config__load(c, 1, argv, "etc", "home", &words, NULL), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(config__entry(c, i)->shared, i % 2 == 0);
	assert_string_equal(config__entry(c, 3)->file, "home/.pt-pmp.conf");
	config__free(c);
}

static void test_config_option(void **state)
{
	char *const lonely[] = {"pt-pmp", "--config", NULL};
	struct config *c = config__new();
	struct error e = ERROR_INIT;
	int words = 7;

	put("a", "lines=10\n");
	put("b", "pid=11\n");
	put("etc/pt-pmp.conf", "lines=2\n");
	loaded("--config a,b --pid 3", "home", 2, "1:lines=10;1:pid=11;");
	loaded("--config=a,b --pid 3", "home", 1, "1:lines=10;1:pid=11;");
	loaded("--config ,b,,a, x", "home", 2, "1:pid=11;1:lines=10;");
	loaded("--config=", "home", 1, "");
	/* as in pt-pmp, what is not there is passed over */
	loaded("--config nope,b", "home", 2, "1:pid=11;");
	loaded("--config etc,/dev/zero,b", "home", 2, "1:pid=11;");
	assert_int_equal(config__load(c, 2, lonely, "etc", "home", &words, &e), -EINVAL);
	assert_string_equal(error__text(&e, 0), "--config needs a value (FILE,FILE,...)");
	assert_int_equal(words, 7);
	error__clear(&e);
	config__free(c);
}

static void test_not_first(void **state)
{
	unlink("etc/percona-toolkit.conf");
	put("etc/pt-pmp.conf", "lines=2\n");
	put("a", "lines=10\n");
	loaded("--lines 3 --config a", NULL, 0, "1:lines=2;");
	loaded("--configs a", NULL, 0, "1:lines=2;");
}

static void test_fifo_and_links(void **state)
{
	put("b", "pid=11\n");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	alarm(10);
	loaded("--config fifo,dangling,b", NULL, 2, "1:pid=11;");
	alarm(0);
}

static void test_too_large(void **state)
{
	struct config *c = config__new();
	struct error e = ERROR_INIT;

	put("large", "lines=1\n#");
	assert_int_equal(truncate("large", 1 << 20), 0);
	assert_int_equal(config__read(c, "large", false, &e), 0);
	assert_int_equal(truncate("large", (1 << 20) + 1), 0);
	assert_int_equal(config__read(c, "large", false, &e), -EFBIG);
	assert_string_equal(error__text(&e, 0),
			    "large is larger than 1 MiB, too much for a config file");
	assert_non_null(config__entry(c, 0));
	assert_null(config__entry(c, 1));
	error__clear(&e);
	config__free(c);
}

static void test_unreadable(void **state)
{
	struct config *c = config__new();
	struct error e = ERROR_INIT;

	put("a", "lines=10\n");
	assert_int_equal(chmod("a", 0), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	if (getuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(config__read(c, "a", true, &e), 0);
	assert_null(e.text);
	assert_int_equal(config__read(c, "a", false, &e), -EACCES);
	assert_string_equal(error__text(&e, 0), "cannot read the config file a: Permission denied");
	assert_null(config__entry(c, 0));
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	error__clear(&e);
	config__free(c);
}

int main(void)
{
	const struct CMUnitTest parsing[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_comments),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_version_check),
		cmocka_unit_test(test_odd_bytes),
		cmocka_unit_test(test_backslashes),
		cmocka_unit_test(test_order_and_origin),
		cmocka_unit_test(test_many_entries),
	};
	const struct CMUnitTest files[] = {
		cmocka_unit_test(test_files),	  cmocka_unit_test(test_config_option),
		cmocka_unit_test(test_not_first), cmocka_unit_test(test_fifo_and_links),
		cmocka_unit_test(test_too_large), cmocka_unit_test(test_unreadable),
	};
	int failed = cmocka_run_group_tests(parsing, NULL, NULL);

	return failed + cmocka_run_group_tests(files, enter_folder, leave_folder);
}
