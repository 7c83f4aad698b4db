// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ksym_query: the kernel's own answers, one at a time: which symbol an address lies in, and where a
 * symbol is. /proc/kallsyms has the same, but only all at once, in text. User space runs these
 * programs for itself; question and answer are variables that it maps.
 *
 * bpf_kallsyms_lookup_name needs kernel 5.16; to run them without capabilities, 5.19.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "abi.h"

char LICENSE[] SEC("license") = "GPL";

pmp_u64 address;
char name[PMP_KSYM_LEN];

/* Returns the length of the name and its end, or what fails. */
SEC("syscall")
int name_address(void *ctx)
{
	static const char format[] = "%ps";
	pmp_u64 args[] = {address};

	return (int)bpf_snprintf(name, sizeof(name), format, args, sizeof(args));
}

SEC("syscall")
int find_name(void *ctx)
{
	pmp_u64 found = 0;
	long err = bpf_kallsyms_lookup_name(name, sizeof(name), 0, &found);

	address = found;
	return (int)err;
}
