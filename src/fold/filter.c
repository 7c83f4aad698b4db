// SPDX-License-Identifier: GPL-2.0-or-later
#include "fold/filter.h"

#include "base/strbuf.h"
#include "fold/ere.h"

#include <errno.h>
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPRESSION_MAX 4096	/* bytes of one expression */
#define STEP_BUDGET    1000000U /* of one match, over all places where it may start */
#define STEPS_MIN      100U	/* at each place */
#define GIVE_UPS_MAX   8	/* then an expression is not tried any more */

struct expression {
	pcre2_code *code;
	unsigned int given_up;
};

struct filter {
	struct expression *expressions; /* none: every thread is wanted */
	size_t n_expressions;
	pcre2_match_data *match_data;
	pcre2_match_context *context;
	struct strbuf tid;
	size_t given_up;
};

static int compile(struct filter *f, const char *str, size_t len, struct error *e)
{
	struct strbuf pattern = STRBUF_INIT;
	const char *reason = NULL;
	PCRE2_UCHAR message[128];
	PCRE2_SIZE offset;
	pcre2_code *code;
	int code_err, err;

	if (len > EXPRESSION_MAX)
		return error__set(e, EINVAL, "--tids: an expression is longer than %d bytes",
				  EXPRESSION_MAX);
	err = ere__translate(str, len, &pattern, &reason);
	if (err)
		goto out;
	code = pcre2_compile((PCRE2_SPTR)pattern.data, pattern.len,
			     PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF, &code_err,
			     &offset, NULL);
	if (code) {
		f->expressions[f->n_expressions++].code = code;
	} else {
		pcre2_get_error_message(code_err, message, sizeof(message));
		reason = (const char *)message;
		err = -EINVAL;
	}
out:
	if (reason)
		error__set(e, EINVAL, "--tids: '%.*s': %s", (int)len, str, reason);
	strbuf__free(&pattern);
	return err;
}

static int compile_all(struct filter *f, const char *tids, struct error *e)
{
	struct strbuf list = STRBUF_INIT;
	size_t n = 1;
	int err = ere__unescape(&list, tids);

	if (err || list.len == 0)
		goto out;
	for (size_t i = 0; i < list.len; i++)
		n += list.data[i] == ',';
	f->expressions = calloc(n, sizeof(*f->expressions));
	f->context = pcre2_match_context_create(NULL);
	f->match_data = pcre2_match_data_create(1, NULL);
	if (!f->expressions || !f->context || !f->match_data) {
		err = -ENOMEM;
		goto out;
	}
	for (const char *p = list.data, *end = p + list.len; !err && p;) {
		const char *comma = memchr(p, ',', (size_t)(end - p));

		err = compile(f, p, (size_t)((comma ? comma : end) - p), e);
		p = comma ? comma + 1 : NULL;
	}
out:
	strbuf__free(&list);
	return err;
}

struct filter *filter__new(const char *tids, struct error *e)
{
	struct filter *f = calloc(1, sizeof(*f));
	int err;

	if (!f || !tids || strcmp(tids, "*") == 0)
		return f;
	err = compile_all(f, tids, e);
	if (err) {
		filter__free(f);
		errno = -err;
		return NULL;
	}
	return f;
}

void filter__free(struct filter *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_expressions; i++)
		pcre2_code_free(f->expressions[i].code);
	free(f->expressions);
	pcre2_match_data_free(f->match_data);
	pcre2_match_context_free(f->context);
	strbuf__free(&f->tid);
	free(f);
}

static bool matches(struct filter *f, struct expression *x, struct text subject)
{
	uint32_t steps = subject.len < STEP_BUDGET ? STEP_BUDGET / (uint32_t)(subject.len + 1) : 0;
	int ret = PCRE2_ERROR_MATCHLIMIT;

	if (x->given_up < GIVE_UPS_MAX) {
		pcre2_set_match_limit(f->context, steps < STEPS_MIN ? STEPS_MIN : steps);
		ret = pcre2_match(x->code, (PCRE2_SPTR)(subject.len ? subject.str : ""),
				  subject.len, 0, 0, f->match_data, f->context);
	}
	if (ret < 0 && ret != PCRE2_ERROR_NOMATCH) {
		x->given_up++;
		f->given_up++;
	}
	return ret >= 0;
}

/* What pt-pmp matches: the last field without its `)*:` runs. */
static int stock_tid(struct filter *f, struct text header)
{
	size_t start = header.len, end = header.len;

	while (end && (header.str[end - 1] == ' ' || header.str[end - 1] == '\t'))
		end--;
	for (start = end; start && header.str[start - 1] != ' ' && header.str[start - 1] != '\t';)
		start--;
	strbuf__reset(&f->tid);
	if (strbuf__reserve(&f->tid, end - start))
		return -ENOMEM;
	for (size_t i = start; i < end; i++) {
		if (header.str[i] != ':') {
			f->tid.data[f->tid.len++] = header.str[i];
			continue;
		}
		while (f->tid.len && f->tid.data[f->tid.len - 1] == ')')
			f->tid.len--;
	}
	return 0;
}

/* LWP and name in `Thread 3 (Thread 0x7f.. (LWP 77) "name"):`, empty where they are not given. */
static void parse_header(struct text header, struct text *ret_lwp, struct text *ret_name)
{
	static const char start[] = "(LWP ";
	const char *end = header.str + header.len, *p, *open, *close;

	if (!header.len)
		return;
	p = memmem(header.str, header.len, start, strlen(start));
	if (!p)
		return;
	p += strlen(start);
	ret_lwp->str = p;
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	ret_lwp->len = (size_t)(p - ret_lwp->str);
	/* gdb escapes nothing in a name, so that it may hold quotes itself */
	open = memchr(p, '"', (size_t)(end - p));
	close = memrchr(p, '"', (size_t)(end - p));
	if (open && close > open)
		*ret_name = (struct text){open + 1, (size_t)(close - open - 1)};
}

bool filter__wants(struct filter *f, struct text header)
{
	struct text tid, lwp = {NULL, 0}, name = {NULL, 0};

	if (!f->n_expressions)
		return true;
	if (stock_tid(f, header)) {
		f->given_up++;
		return false;
	}
	tid = (struct text){f->tid.data, f->tid.len};
	parse_header(header, &lwp, &name);
	for (size_t i = 0; i < f->n_expressions; i++) {
		struct expression *x = &f->expressions[i];

		if (matches(f, x, tid) || (lwp.len && matches(f, x, lwp)) ||
		    (name.len && matches(f, x, name)))
			return true;
	}
	return false;
}

size_t filter__given_up(const struct filter *f)
{
	return f->given_up;
}
