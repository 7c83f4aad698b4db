// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Input: 17 registers of 8 bytes, the registers that are known (4 bytes), the length of .eh_frame
 * (2 bytes), .eh_frame, and the stack at STACK. Numbers are little endian.
 */
#include "unwind/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTION	   0x100000ULL
#define CODE	   0x1000ULL /* with unwind information */
#define JIT	   0x10000ULL
#define STACK	   0x7000000000ULL
#define MAX_FRAMES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct target {
	struct eh_frame *eh;
	const uint8_t *stack;
	size_t stack_len;
	size_t n_reads;
};

static int read_word(void *arg, uint64_t addr, uint64_t *ret_word)
{
	struct target *t = arg;

	t->n_reads++;
	if (addr < STACK) {
		/* code: calls everywhere, of each kind */
		*ret_word = addr & 8 ? 0xd0ff909090909090 : 0xfffffff0e8909090;
		return 0;
	}
	addr -= STACK;
	if (t->stack_len < 8 || addr > t->stack_len - 8)
		return -EFAULT;
	memcpy(ret_word, t->stack + addr, 8);
	return 0;
}

static int find_code(void *arg, uint64_t pc, struct unwind_code *ret_code)
{
	const struct target *t = arg;

	if (pc - CODE < 0x2000)
		*ret_code = (struct unwind_code){.eh = t->eh};
	else if (pc - JIT < 0x1000)
		*ret_code = (struct unwind_code){.eh = NULL};
	else
		return -ENOENT;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target target = {.eh = NULL};
	struct unwind_space space = {
		.read_word = read_word, .find_code = find_code, .arg = &target};
	struct raw_frame frames[MAX_FRAMES];
	struct eh_frame_bytes bytes = {.eh_frame_addr = SECTION};
	struct unwind_regs regs;
	uint16_t len;
	size_t n = 0;
	enum stack_end end;

	if (size < sizeof(regs.value) + sizeof(regs.known) + sizeof(len))
		return 0;
	memcpy(regs.value, data, sizeof(regs.value));
	data += sizeof(regs.value);
	memcpy(&regs.known, data, sizeof(regs.known));
	data += sizeof(regs.known);
	memcpy(&len, data, sizeof(len));
	data += sizeof(len);
	size -= sizeof(regs.value) + sizeof(regs.known) + sizeof(len);
	bytes.eh_frame_len = len < size ? len : size;
	bytes.eh_frame = data;
	target.eh = eh_frame__new(&bytes);
	target.stack = data + bytes.eh_frame_len;
	target.stack_len = size - bytes.eh_frame_len;

	end = unwind__stack(&space, &regs, MAX_FRAMES, frames, &n);
	if (!n || n > MAX_FRAMES || !frames[0].exact || frames[0].pc != regs.value[CFI_RA])
		abort();
	if (end != STACK_WHOLE && end != STACK_TRUNCATED && end != STACK_BROKEN &&
	    end != STACK_GUESSED)
		abort();
	if (end == STACK_TRUNCATED && n != MAX_FRAMES)
		abort();
	eh_frame__free(target.eh);
	return 0;
}
