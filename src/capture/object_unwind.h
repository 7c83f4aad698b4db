/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_unwind: an object's unwind information, ready to be searched.
 */
#ifndef PMP_OBJECT_UNWIND_H
#define PMP_OBJECT_UNWIND_H

#include "proc/object.h"
#include "unwind/eh_frame.h"

/* The caller's to free with eh_frame__free(), before the object goes. NULL where it has none, or
 * there is no memory. */
struct eh_frame *object_unwind__new(struct object *object);

#endif
