// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int number__whole(const char *option, const char *value, size_t len, long min, long max, long *ret,
		  struct error *e)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(value, &end, 10);
	/* strtol() steps over blanks, and so perhaps over all of an empty value */
	if (errno || !len || end != value + len || end == value || n < min || n > max)
		return error__set(e, EINVAL, "%s takes a whole number from %ld to %ld, not '%.*s'",
				  option, min, max, (int)len, value);
	*ret = n;
	return 0;
}

int number__seconds(const char *option, const char *value, double min, double *ret, struct error *e)
{
	char *end;
	double n;

	errno = 0;
	n = strtod(value, &end);
	if (errno || end == value || *end || !isfinite(n) || n < min || n > 1e6)
		return error__set(
			e, EINVAL,
			"%s takes a number of seconds from %g to 1000000 (0.5 will do), not '%s'",
			option, min, value);
	*ret = n;
	return 0;
}
