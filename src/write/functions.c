// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/writer.h"

#include <errno.h>

int write_share(struct strbuf *out, uint64_t part, uint64_t whole)
{
	double share = whole ? (double)part / (double)whole : 0;

	return strbuf__printf(out, "%6.2f%%", 100 * share);
}

int write_functions__table(struct strbuf *out, const struct report_functions *functions)
{
	strbuf__append_str(out, "   self    total  function\n");
	for (size_t i = 0; i < functions->n_functions; i++) {
		const struct report_function *f = &functions->functions[i];

		write_share(out, f->self, functions->total);
		strbuf__append_str(out, "  ");
		write_share(out, f->total, functions->total);
		strbuf__append_str(out, "  ");
		strbuf__append_untrusted(out, f->name, f->len, ' ');
		strbuf__append_char(out, '\n');
	}
	return out->failed ? -ENOMEM : 0;
}
