/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * call_site: tells whether an x86-64 call instruction ends right before an address, as it does
 * before every return address that a call has pushed. Pure: memory comes through a callback.
 */
#ifndef PMP_CALL_SITE_H
#define PMP_CALL_SITE_H

#include <stdint.h>

enum call_site {
	CALL_SITE_NONE,
	CALL_SITE_DIRECT,   /* e8 rel32: the target is known */
	CALL_SITE_INDIRECT, /* ff /2: through a register or memory */
	CALL_SITE_UNREADABLE,
};

/*
 * Look at the 8 bytes before `pc`. For CALL_SITE_DIRECT *ret_target is where it calls to. Bytes
 * of data may look like a call too, so DIRECT deserves a look at its target.
 */
enum call_site call_site__before(int (*read_word)(void *arg, uint64_t addr, uint64_t *ret_word),
				 void *arg, uint64_t pc, uint64_t *ret_target);

#endif
