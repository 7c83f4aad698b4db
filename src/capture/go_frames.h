/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * go_frames: what Go's compiler leaves unsaid in .debug_frame: at which functions of its runtime a
 * stack ends, and in which it goes on elsewhere. Found by their symbols; nothing in the file is
 * trusted.
 *
 * Source: Go's src/runtime/asm_amd64.s, sys_linux_amd64.s and time_linux_amd64.s, of 1.19.
 */
#ifndef PMP_GO_FRAMES_H
#define PMP_GO_FRAMES_H

#include "proc/elf_file.h"
#include "unwind/eh_frame.h"

/* NULL where the file is no Go program, or has no symbols. */
struct eh_frame *go_frames__new(const struct elf_file *file);

#endif
