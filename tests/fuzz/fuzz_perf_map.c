// SPDX-License-Identifier: GPL-2.0-or-later
/* The bytes of a /tmp/perf-PID.map. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sym/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct perf_map *m = perf_map__from_text((const char *)data, len);

	if (!m)
		return 0;
	for (uint64_t addr = 0; addr < 0x200; addr += 3) {
		const char *name = perf_map__find(m, addr);

		if (name && strlen(name) > len)
			abort();
	}
	perf_map__find(m, UINT64_MAX);
	perf_map__free(m);
	return 0;
}
