// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/writer.h"

#include <inttypes.h>
#include <string.h>

int write_samples__line(struct strbuf *out, const struct sample_line *line)
{
	strbuf__printf(out, "%" PRIu64 " ", line->time);
	strbuf__append_untrusted(out, line->comm, strlen(line->comm), '_');
	return strbuf__printf(out, " %d %d %u %zu %zu\n", (int)line->pid, (int)line->tid, line->cpu,
			      line->n_kernel, line->n_user);
}
