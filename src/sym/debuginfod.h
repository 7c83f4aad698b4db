/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfod: debug files from servers, by build id. The client is elfutils' own, libdebuginfod,
 * with its variables ($DEBUGINFOD_TIMEOUT, $DEBUGINFOD_CACHE_PATH, ...) and its cache of files. It
 * runs in a process of its own, without capabilities, which is ended where it takes too long.
 */
#ifndef PMP_DEBUGINFOD_H
#define PMP_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debuginfod;

/* Whether the client was there when this program was built. */
bool debuginfod__supported(void);

/* `urls`: separated by blanks, borrowed; NULL: $DEBUGINFOD_URLS. NULL with errno: ENOENT (no server
 * is named), ENOSYS (not supported), ENOMEM. */
struct debuginfod *debuginfod__new(const char *urls);
void debuginfod__free(struct debuginfod *d);

/*
 * The debug file for a build id; nobody has checked that it is. `what` is the name to show on a
 * terminal meanwhile. Returns a descriptor for the caller to close; -ENOENT: no server has it; or
 * the client failed, or took over 60 s ($DEBUGINFOD_MAXTIME): after that nothing more is asked.
 */
int debuginfod__find(struct debuginfod *d, const uint8_t *build_id, size_t len, const char *what);

/* Why nothing more is asked; NULL: all went well. */
const char *debuginfod__problem(const struct debuginfod *d);

#endif
