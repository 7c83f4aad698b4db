// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/object_unwind.h"

#include "capture/go_frames.h"

static struct eh_frame *from_eh_frame(struct object *object)
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

static struct eh_frame *from_debug_frame(struct object *object)
{
	struct eh_frame_bytes bytes = {.is_debug_frame = true};

	if (elf_file__debug_frame(object__file(object), &bytes.owned, &bytes.eh_frame_len))
		return NULL;
	bytes.eh_frame = bytes.owned;
	return eh_frame__new(&bytes);
}

struct eh_frame *object_unwind__new(struct object *object)
{
	struct eh_frame *eh = eh_frame__join(from_eh_frame(object), from_debug_frame(object));

	/* these come first: of Go's outermost functions .debug_frame has it that they have callers
	 */
	return eh_frame__join(go_frames__new(object__file(object)), eh);
}
