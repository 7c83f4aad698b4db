// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/object_unwind.h"

struct eh_frame *object_unwind__new(struct object *object)
{
	struct object_eh_frame found;
	struct eh_frame_bytes bytes;

	if (object__eh_frame(object, &found))
		return NULL;
	bytes = (struct eh_frame_bytes){
		.eh_frame = found.eh_frame,
		.eh_frame_len = found.eh_frame_len,
		.eh_frame_addr = found.eh_frame_addr,
		.hdr = found.hdr,
		.hdr_len = found.hdr_len,
		.hdr_addr = found.hdr_addr,
	};
	return eh_frame__new(&bytes);
}
