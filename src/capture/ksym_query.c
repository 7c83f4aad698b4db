// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/ksym_query.h"

#include "bpf/abi.h"
#include "capture/bpf_errors.h"
#include "capture/self.h"
#include "ksym_query.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ksym_query {
	struct ksym_query_bpf *skel;
	char name[PMP_KSYM_LEN];
};

struct ksym_query *ksym_query__new(void)
{
	struct ksym_query *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return NULL;
	bpf_errors__keep_quiet();
	q->skel = ksym_query_bpf__open();
	err = q->skel ? ksym_query_bpf__load(q->skel) : -errno;
	if (!err)
		err = self__keep_bpf_maps();
	if (err) {
		ksym_query__free(q);
		errno = -err;
		return NULL;
	}
	return q;
}

void ksym_query__free(struct ksym_query *q)
{
	if (!q)
		return;
	ksym_query_bpf__destroy(q->skel);
	free(q);
}

/* Returns what the program returned, or -errno: it did not run. */
static int run(const struct bpf_program *program)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	if (bpf_prog_test_run_opts(bpf_program__fd(program), &options))
		return -errno;
	return (int)options.retval;
}

int ksym_query__name(void *query, uint64_t addr, const char **ret_name)
{
	struct ksym_query *q = query;
	int len;

	q->skel->bss->address = addr;
	len = run(q->skel->progs.name_address);
	if (len < 0)
		return len;
	if (len > PMP_KSYM_LEN)
		return -E2BIG;
	memcpy(q->name, q->skel->bss->name, sizeof(q->name));
	q->name[len ? len - 1 : 0] = '\0';
	/* `NAME [MODULE]`; the address, where there is no name */
	q->name[strcspn(q->name, " \t")] = '\0';
	*ret_name = *q->name && strncmp(q->name, "0x", 2) ? q->name : NULL;
	return 0;
}

int ksym_query__address(void *query, const char *name, uint64_t *ret_addr)
{
	struct ksym_query *q = query;
	size_t len = strlen(name);
	int err;

	if (len >= PMP_KSYM_LEN)
		return -E2BIG;
	memset(q->skel->bss->name, 0, PMP_KSYM_LEN);
	memcpy(q->skel->bss->name, name, len);
	err = run(q->skel->progs.find_name);
	if (err && err != -ENOENT)
		return err < 0 ? err : -EIO;
	*ret_addr = err ? 0 : q->skel->bss->address;
	return 0;
}
