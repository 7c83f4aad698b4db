// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ksym_query: asks the kernel for the symbol at the start of every code symbol of /proc/kallsyms
 * and just before the next one, then for the addresses of a few names, and compares with what is
 * there. Prints how many were asked, and each difference; the status is 1 if there is one, or if
 * there was next to nothing to ask.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/ksym_query.h"
#include "sym/ksyms.h"

static struct ksym_query *query;
static struct ksyms *ksyms;
static size_t asked, differ;

/* Names of the end of a section, where no code lies. */
static bool is_end(const char *name)
{
	const char *end = name ? strstr(name, "_end") : NULL;

	return name && (!strcmp(name, "_etext") || !strcmp(name, "_einittext") || (end && !end[4]));
}

static void compare(uint64_t addr)
{
	const char *want = ksyms__find(ksyms, addr), *got = NULL;
	int err = ksym_query__name(query, addr, &got);

	if (is_end(want))
		return;
	asked++;
	/* where there is no code, the kernel may know data */
	if (!err && (!want || (got && !strcmp(got, want))))
		return;
	differ++;
	printf("%llx: %s, in /proc/kallsyms %s\n", (unsigned long long)addr,
	       err   ? strerror(-err)
	       : got ? got
		     : "(none)",
	       want ? want : "(none)");
}

static void compare_address(const char *name)
{
	uint64_t want = ksyms__address(ksyms, name), got = 0;
	int err = ksym_query__address(query, name, &got);

	asked++;
	if (!err && got == want)
		return;
	differ++;
	printf("%s: %s %llx, in /proc/kallsyms %llx\n", name, err ? strerror(-err) : "",
	       (unsigned long long)got, (unsigned long long)want);
}

int main(void)
{
	static const char *const names[] = {
		"_stext",	    "schedule",	     "__sched_text_start",
		"__sched_text_end", "do_syscall_64", "no such symbol"};
	unsigned long long addr, last = 0;
	FILE *f = fopen("/proc/kallsyms", "re");
	char *line = NULL, type;
	size_t size = 0;

	query = ksym_query__new();
	ksyms = ksyms__new(NULL);
	if (!f || !query || !ksyms) {
		perror("ksym_query");
		return 1;
	}
	while (getline(&line, &size, f) > 0) {
		if (sscanf(line, "%llx %c", &addr, &type) != 2 || !addr || !strchr("tTwW", type))
			continue;
		/* trampolines come and go; so may a program's code */
		if (strstr(line, "[bpf]") || strstr(line, "[__builtin__"))
			continue;
		if (last && addr > last)
			compare(addr - 1);
		compare(addr);
		last = addr;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		compare_address(names[i]);
	printf("%zu asked, %zu differ\n", asked, differ);
	return differ || asked < 1000;
}
