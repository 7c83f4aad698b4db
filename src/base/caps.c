// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debian 12's headers know all of these; older ones do not. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

static const struct {
	enum caps_need need;
	int cap;
	bool admin_serves;
	const char *name;
} capabilities[] = {
	{CAPS_LOAD, CAP_BPF, true, "CAP_BPF"},
	{CAPS_LOAD, CAP_PERFMON, true, "CAP_PERFMON"},
	{CAPS_TARGET, CAP_SYS_PTRACE, false, "CAP_SYS_PTRACE"},
};

int caps__missing(enum caps_need need, struct strbuf *ret_names)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	uint64_t effective;

	if (syscall(SYS_capget, &header, data))
		return -errno;
	effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
		bool has = effective >> capabilities[i].cap & 1;

		if (capabilities[i].admin_serves)
			has = has || (effective >> CAP_SYS_ADMIN & 1);
		if (capabilities[i].need != need || has)
			continue;
		if (ret_names->len)
			strbuf__append_str(ret_names, " and ");
		strbuf__append_str(ret_names, capabilities[i].name);
	}
	return ret_names->failed ? -ENOMEM : 0;
}

/* For good: no program that is run gives them back. */
static int keep_only(uint64_t mask)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, data))
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t part = (uint32_t)(mask >> (32 * i));

		data[i].effective &= part;
		data[i].permitted &= part;
		data[i].inheritable = 0;
	}
	/* to have fewer needs no right */
	if (syscall(SYS_capset, &header, data) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return 0;
}

void caps__drop(void)
{
	static const int kept[] = {
		CAP_SYSLOG, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
		CAP_SETUID, CAP_SETGID,	    CAP_KILL};
	uint64_t mask = 0;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		mask |= 1ull << kept[i];
	keep_only(mask);
	errno = 0;
}

int caps__drop_all(void)
{
	return keep_only(0);
}
