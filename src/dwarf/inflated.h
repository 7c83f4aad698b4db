/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inflated: what a compressed section holds, as memory that is filled where it is first read. A
 * server's debug information is a gigabyte once it is decompressed, and a stack's names are in a
 * few hundred KiB of it.
 *
 * The memory cannot be touched at first; a handler of SIGSEGV decompresses the block that was
 * meant, and what is in front of it as far as there is no earlier state of the decompressor to go
 * on from. The handler is set at the first inflated__new() and hands on what is not its own. For a
 * process with one thread; and for reads of the process alone: a system call gets an EFAULT.
 */
#ifndef PMP_INFLATED_H
#define PMP_INFLATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inflated;

enum inflated_how {
	INFLATED_ZLIB, /* RFC 1950; its checksum is not looked at */
	INFLATED_ZSTD, /* RFC 8878; decompressed at once */
};

struct inflated_options {
	enum inflated_how how;
	bool whole; /* at the first read all of it: its parts are read in no order */
	/* it consists of DWARF units, and a reader goes from header to header: these are kept as
	 * they come by */
	bool units;
};

/*
 * `len` bytes at `offset` of the file `fd`, which is borrowed for as long as the struct lives.
 * `size` is what they say that they come to; what comes to less reads as zeros in the end, what
 * comes to more is cut. NULL with errno: EINVAL (they are no such stream, or would have shrunk more
 * than 4,096 times), EIO, ENOMEM.
 */
struct inflated *inflated__new(int fd, uint64_t offset, uint64_t len, uint64_t size,
			       const struct inflated_options *options);
void inflated__free(struct inflated *i);

/* `size` bytes. */
void *inflated__bytes(const struct inflated *i);

/* Whether what was read so far came from a stream that broke off or makes no sense. */
bool inflated__damaged(const struct inflated *i);

#endif
