// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/option_spec.h"
#include "cli/options.h"

#include <errno.h>
#include <string.h>

/* Append one option's lines: the option in the first 30 columns, what it does after them. */
static void append_option(struct strbuf *out, const struct option_spec *o)
{
	struct strbuf left = STRBUF_INIT;
	const char *line = o->help;

	if (o->letter)
		strbuf__printf(&left, "  -%c, --%s", o->letter, o->name);
	else
		strbuf__printf(&left, "      --%s", o->name);
	if (o->value)
		strbuf__printf(&left, " %s", o->value);
	while (line) {
		const char *end = strchr(line, '\n');
		int len = end ? (int)(end - line) : (int)strlen(line);

		strbuf__printf(out, "%-30s%.*s\n", left.data ? left.data : "", len, line);
		strbuf__reset(&left);
		line = end ? end + 1 : NULL;
	}
	strbuf__free(&left);
}

int options__help(struct strbuf *out)
{
	strbuf__append_str(
		out,
		"Usage: bpf-pmp [OPTIONS] [FILES]\n"
		"\n"
		"Prints the stacks of all threads of a server, equal ones counted, without "
		"stopping it:\n"
		"\n"
		"    bpf-pmp                  the mysqld or mariadbd of this machine\n"
		"    bpf-pmp -p 1201          the process 1201\n"
		"    bpf-pmp -i 10 -s 0.5     ten times, half a second apart, counted together\n"
		"\n"
		"or where it spends its time:\n"
		"\n"
		"    bpf-pmp --mode=cpu --duration 30   its CPU time, for half a minute\n"
		"    bpf-pmp --mode=offcpu              what its threads wait for, and for how "
		"long\n"
		"\n"
		"Each line is a count (threads; samples; microseconds) and a stack, innermost "
		"function\n"
		"first, joined by commas. A stack that could not be read whole ends in "
		"[truncated],\n"
		"[broken], [guessed], [torn] or [running]. Needs root, or CAP_BPF, CAP_PERFMON "
		"and\n"
		"CAP_SYS_PTRACE.\n");
	for (size_t i = 0; i < n_option_specs; i++) {
		if (option_specs[i].name)
			append_option(out, &option_specs[i]);
		else
			strbuf__printf(out, "\n%s\n", option_specs[i].help);
	}
	return out->failed ? -ENOMEM : 0;
}
