// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/targets.h"

#include "capture/guard.h"
#include "proc/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct described {
	const pid_t *pids;
	size_t n;
	struct strbuf text;
};

static int describe_all(void *arg)
{
	struct described *d = arg;

	for (size_t i = 0; i < d->n; i++) {
		strbuf__append_str(&d->text, "    ");
		if (find__describe(d->pids[i], &d->text))
			strbuf__printf(&d->text, "PID %d", (int)d->pids[i]);
		strbuf__append_char(&d->text, '\n');
	}
	return d->text.failed ? -ENOMEM : 0;
}

/* Append a line for each process. Takes `pids` over. */
static int describe(pid_t *pids, size_t n, double max_wait, struct strbuf *ret_list)
{
	struct described *d = calloc(1, sizeof(*d));
	int err;

	if (!d) {
		free(pids);
		return -ENOMEM;
	}
	d->pids = pids;
	d->n = n;
	/* a command line lies in the process' memory: reading it may have to wait */
	err = guard__run(describe_all, d, max_wait);
	if (err == -ETIMEDOUT) { /* d and pids are still in use: they stay */
		for (size_t i = 0; i < n; i++)
			strbuf__printf(ret_list, "    PID %d\n", (int)pids[i]);
		return ret_list->failed ? -ENOMEM : 0;
	}
	if (!err)
		err = strbuf__append(ret_list, d->text.data, d->text.len);
	strbuf__free(&d->text);
	free(d);
	free(pids);
	return err;
}

static int list_processes(const struct plan *plan, const char **ret_name, pid_t **ret_pids,
			  size_t *ret_n)
{
	static const char *const servers[] = {"mysqld", "mariadbd"};
	int err = 0;

	if (plan->n_pids) {
		*ret_pids = calloc(plan->n_pids, sizeof(**ret_pids));
		if (!*ret_pids)
			return -ENOMEM;
		memcpy(*ret_pids, plan->pids, plan->n_pids * sizeof(**ret_pids));
		*ret_n = plan->n_pids;
		return 0;
	}
	if (plan->comm)
		return find__comm(plan->comm, ret_pids, ret_n);
	if (plan->binary) {
		*ret_name = plan->binary;
		return find__binary(plan->binary, ret_pids, ret_n);
	}
	for (size_t i = 0; i < 2 && !*ret_n && !err; i++) {
		*ret_name = servers[i];
		err = find__binary(servers[i], ret_pids, ret_n);
	}
	return err;
}

static int none_found(const struct plan *plan, struct error *e)
{
	if (plan->comm)
		return error__set(e, ESRCH,
				  "no process has the command %s; see `ps -e -o pid,comm`",
				  plan->comm);
	if (plan->binary)
		return error__set(e, ESRCH,
				  "no process is named %s; give -p PID, or another name with -b",
				  plan->binary);
	return error__set(
		e, ESRCH,
		"no process is named mysqld or mariadbd; name one with -b, or give -p PID");
}

int targets__find(const struct plan *plan, pid_t **ret_pids, size_t *ret_n, struct strbuf *ret_list,
		  struct error *e)
{
	const char *name = NULL;
	pid_t *pids = NULL;
	size_t n = 0;
	int err = 0;

	if (plan->all) {
		err = find__all(ret_pids, ret_n);
		if (err)
			return error__set(e, -err, "cannot list the processes in /proc: %s",
					  strerror(-err));
		return 0;
	}
	err = list_processes(plan, &name, &pids, &n);
	if (err)
		return error__set(e, -err, "cannot list the processes in /proc: %s",
				  strerror(-err));
	if (!n)
		return none_found(plan, e);
	if (n > 1 && !plan->comm && !plan->n_pids) {
		err = describe(pids, n, plan->max_wait, ret_list);
		return err ? err
			   : error__set(e, ENOTUNIQ,
					"%zu processes are named %s; give one with -p, or take all "
					"with --comm %s:",
					n, name, name);
	}
	for (size_t i = 0; i < n && !err && !plan->comm; i++)
		err = find__check(pids[i], e);
	if (err) {
		free(pids);
		return err;
	}
	*ret_pids = pids;
	*ret_n = n;
	return 0;
}
