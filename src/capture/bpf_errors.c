// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/bpf_errors.h"

#include "base/strbuf.h"
#include "base/caps.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0; /* what matters of a failure is said in our own words */
}

void bpf_errors__keep_quiet(void)
{
	libbpf_set_print(quiet);
}

int bpf_errors__say(struct error *e, int err)
{
	struct strbuf missing = STRBUF_INIT;

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		err = error__set(
			e, ENOENT,
			"this kernel has no BTF (/sys/kernel/btf/vmlinux); it must be built with "
			"CONFIG_DEBUG_INFO_BTF");
	else if (caps__missing(CAPS_LOAD, &missing) == 0 && missing.len)
		err = error__set(
			e, EPERM,
			"not permitted to load BPF programs: needs %s (or root); see --check",
			missing.data);
	else
		err = error__set(
			e, EOPNOTSUPP,
			"the kernel did not take the BPF programs (%s): it must be 5.10 or later "
			"and not locked down; see --check",
			strerror(err));
	strbuf__free(&missing);
	return err;
}
