// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/call_site.h"

#include <stdbool.h>

/* ff /2 is 2 bytes and what its ModRM byte asks for: a SIB byte, a displacement. */
static bool is_indirect_call(const uint8_t *code, unsigned int len)
{
	unsigned int mod, rm, expect = 2;

	if (code[0] != 0xff || (code[1] >> 3 & 7) != 2)
		return false;
	mod = code[1] >> 6;
	rm = code[1] & 7;
	if (mod == 3)
		return len == 2;
	if (rm == 4) {
		expect++;
		if (mod == 0 && len > 2 && (code[2] & 7) == 5)
			expect += 4;
	} else if (mod == 0 && rm == 5) {
		expect += 4;
	}
	if (mod == 1)
		expect++;
	else if (mod == 2)
		expect += 4;
	return len == expect;
}

enum call_site call_site__before(int (*read_word)(void *arg, uint64_t addr, uint64_t *ret_word),
				 void *arg, uint64_t pc, uint64_t *ret_target)
{
	uint8_t code[8];
	uint64_t word;

	if (pc < 8 || read_word(arg, pc - 8, &word))
		return CALL_SITE_UNREADABLE;
	for (unsigned int i = 0; i < 8; i++)
		code[i] = (uint8_t)(word >> i * 8);
	/* first these: e8 may also be the SIB byte of the longest one */
	for (unsigned int len = 2; len <= 7; len++) {
		if (is_indirect_call(code + 8 - len, len))
			return CALL_SITE_INDIRECT;
	}
	if (code[3] == 0xe8) {
		*ret_target = pc + (uint64_t)(int32_t)(uint32_t)(word >> 32);
		return CALL_SITE_DIRECT;
	}
	return CALL_SITE_NONE;
}
