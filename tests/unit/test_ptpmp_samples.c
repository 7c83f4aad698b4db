// SPDX-License-Identifier: GPL-2.0-or-later
/* pt-pmp's own test cases. They are not part of this repository: skipped where they are missing. */
#include "tests/unit/pipeline.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define SAMPLES	      "../shared/ptpmp-samples"
#define LOCALE	      "en_US.UTF-8"

struct sample {
	const char *input;
	const char *output;
	enum shorten_dialect dialect;
	size_t lines;
	const char *tids;
};

static const struct sample samples[] = {
	{"stacktrace-pt-2211.in", "stacktrace-pt-2211.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace001.in", "stacktrace001.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace002.in", "stacktrace002.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace003.in", "stacktrace003.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace004.in", "stacktrace004.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace005.in", "stacktrace005.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace006-gdb.in", "stacktrace006-gdb.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace006-gdb-readnever.in", "stacktrace006-gdb-readnever.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace006-eu.in", "stacktrace006-eu.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace006-pteu.in", "stacktrace006-pteu.out", SHORTEN_GDB, 0, NULL},
	{"stacktrace003.in", "stacktrace003-limit2.out", SHORTEN_GDB, 2, NULL},
	{"stacktrace006-eu.in", "stacktrace006-eu-deu.out", SHORTEN_EU, 0, NULL},
	{"stacktrace006-pteu.in", "stacktrace006-pteu-dpteu.out", SHORTEN_PTEU, 0, NULL},
	{"stacktrace001.in", "stacktrace001_t25.out", SHORTEN_GDB, 0, "^25"},
	{"stacktrace001.in", "stacktrace001_t21201_23846.out", SHORTEN_GDB, 0, "21201,23846"},
	{"stacktrace001.in", "stacktrace001_t21201_237_8.out", SHORTEN_GDB, 0, "21201,237.8"},
};

static void read_sample(const char *name, struct strbuf *out)
{
	char path[256], buf[1 << 14];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), SAMPLES "/%s", name);
	file = fopen(path, "re");
	if (!file)
		fail_msg("cannot read %s", path);
	while ((n = fread(buf, 1, sizeof(buf), file)) > 0)
		strbuf__append(out, buf, n);
	fclose(file);
	strbuf__append_str(out, "");
}

static void check_sample(const struct sample *sample)
{
	struct pipeline p = {.dialect = sample->dialect,
			     .lines = sample->lines,
			     .tids = sample->tids,
			     .chunk = 4096,
			     .write = write_pmp__report};
	struct strbuf in = STRBUF_INIT, want = STRBUF_INIT, got = STRBUF_INIT;

	read_sample(sample->input, &in);
	read_sample(sample->output, &want);
	strbuf__append_str(&got, "");
	assert_int_equal(pipeline_run(&p, in.data, in.len, &got), 0);
	if (got.len != want.len || memcmp(got.data, want.data, got.len))
		fail_msg("%s: wanted\n%sgot\n%s", sample->output, want.data, got.data);
	strbuf__free(&in);
	strbuf__free(&want);
	strbuf__free(&got);
}

static void test_samples(void **state)
{
	if (access(SAMPLES "/README.md", R_OK)) {
		print_message("# SKIP: NOT TESTED against pt-pmp's samples: no " SAMPLES "\n");
		skip();
	}
	if (!setlocale(LC_ALL, LOCALE)) {
		print_message("# SKIP: NOT TESTED against pt-pmp's samples: no locale " LOCALE
			      "\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		check_sample(&samples[i]);
	setlocale(LC_ALL, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
