// SPDX-License-Identifier: GPL-2.0-or-later
/* The bytes of an ELF file: what is found in them, and the names in their symbol tables. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "proc/elf_file.h"
#include "proc/elf_image.h"
#include "sym/debugfile.h"
#include "sym/demangle.h"
#include "sym/elfsym.h"
#include "sym/minidebug.h"

struct bytes {
	const uint8_t *data;
	size_t len;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int read_bytes(void *arg, uint64_t addr, void *ret_bytes, size_t len)
{
	const struct bytes *b = arg;

	if (addr < 4096 || addr - 4096 > b->len || len > b->len - (addr - 4096))
		return -1;
	memcpy(ret_bytes, b->data + (addr - 4096), len);
	return 0;
}

static void use(const void *bytes, size_t size)
{
	static const struct debugfile_search nowhere = {.dir = "/nowhere"};
	struct elf_file *f = elf_file__from_memory(bytes, size), *debug = NULL;
	struct elf_range eh_frame, hdr;
	struct strbuf text = STRBUF_INIT;
	const char *name;
	struct minidebug *mini;
	struct elfsym *s;
	uint64_t start;
	int alt = -1;

	if (!f)
		return;
	if (!elf_file__eh_frame(f, &eh_frame, &hdr) &&
	    (eh_frame.offset > size || eh_frame.len > size - eh_frame.offset || hdr.offset > size ||
	     hdr.len > size - hdr.offset))
		abort();
	if (!debugfile__find(&nowhere, f, "/nowhere/x", -1, &debug))
		elf_file__free(debug);
	if (!debugfile__find_alt(&nowhere, f, -1, &alt) && alt >= 0)
		close(alt);
	mini = minidebug__new(f);
	s = elfsym__new(f, mini ? minidebug__file(mini) : f);
	for (uint64_t addr = 0x250; s && addr < 0x350; addr += 3) {
		if (elfsym__find(s, addr, &name, &start))
			continue;
		if (start > addr)
			abort();
		strbuf__reset(&text);
		demangle(name, &text);
		demangle_function(name, &text);
	}
	strbuf__free(&text);
	elfsym__free(s);
	minidebug__free(mini);
	elf_file__free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes b = {data, len};
	struct elf_image image;

	use(data, len);
	/* the same as a process' memory */
	if (!elf_image__read(read_bytes, &b, 4096, 0, &image)) {
		use(image.bytes, image.len);
		elf_image__free(&image);
	}
	return 0;
}
