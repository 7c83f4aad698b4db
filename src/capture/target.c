// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/target.h"

#include "base/strbuf.h"
#include "base/caps.h"
#include "capture/object_unwind.h"
#include "capture/stack_memory.h"
#include "proc/find.h"
#include "proc/memory.h"
#include "unwind/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CS_64_BIT 0x33

struct target {
	pid_t pid;
	pid_t tid; /* a thread of it that lives, for /proc and process_vm_readv */
	struct maps *maps;
	struct objects *objects;
	struct stack_memory *memory;
	bool maps_are_new; /* read again since the snapshot began: once is enough */
};

struct target *target__new(pid_t pid, struct object_cache *cache)
{
	struct target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pid = t->tid = pid;
	t->objects = objects__new(pid, cache);
	t->memory = stack_memory__new();
	if (!t->objects || !t->memory) {
		target__free(t);
		errno = ENOMEM;
		return NULL;
	}
	return t;
}

void target__free(struct target *t)
{
	if (!t)
		return;
	objects__free(t->objects);
	stack_memory__free(t->memory);
	maps__free(t->maps);
	free(t);
}

pid_t target__pid(const struct target *t)
{
	return t->pid;
}

static int replace_maps(struct target *t)
{
	struct maps *maps = maps__read(t->tid);
	int err;

	if (!maps)
		return -errno;
	err = objects__set_maps(t->objects, maps);
	if (err) {
		maps__free(maps);
		return err;
	}
	stack_memory__set_maps(t->memory, maps);
	maps__free(t->maps);
	t->maps = maps;
	return 0;
}

static int read_a_byte(struct target *t)
{
	const struct mapping *mappings;
	size_t n;
	char byte;
	int err;

	mappings = maps__all(t->maps, &n);
	for (size_t i = 0; i < n; i++) {
		if (!mappings[i].readable)
			continue;
		err = memory__read(&t->tid, mappings[i].start, &byte, 1);
		return err == -EPERM || err == -ESRCH ? err : 0;
	}
	return 0;
}

int target__read_maps(struct target *t, struct error *e)
{
	struct strbuf missing = STRBUF_INIT;
	pid_t tid = find__live_thread(t->pid);
	int err = tid < 0 ? (int)tid : 0;

	if (!err) {
		t->tid = tid;
		objects__set_thread(t->objects, tid);
		stack_memory__set_thread(t->memory, tid);
		err = replace_maps(t);
	}
	t->maps_are_new = false;
	/* who may see the mappings may not always see what is in them */
	if (!err)
		err = read_a_byte(t);
	if (err == -EACCES || err == -EPERM) {
		caps__missing(CAPS_TARGET, &missing);
		if (!missing.len)
			strbuf__append_str(&missing,
					   "a capability or user namespace that you lack");
		err = error__set(e, EPERM,
				 "not permitted to read process %d: needs %s; see --check",
				 (int)t->pid, missing.data);
	} else if (err == -ESRCH || err == -ENOENT) {
		err = error__set(e, ESRCH, "process %d ended while it was read", (int)t->pid);
	} else if (err) {
		err = error__set(e, -err, "cannot read /proc/%d/maps: %s", (int)t->pid,
				 strerror(-err));
	}
	strbuf__free(&missing);
	return err;
}

static void free_eh_frame(void *eh)
{
	eh_frame__free(eh);
}

/* The object's unwind information, made at the first need; NULL where it has none. */
static struct eh_frame *eh_frame_of(struct object *object)
{
	struct eh_frame *eh = object__slot(object, OBJECT_SLOT_UNWIND);

	if (eh)
		return eh;
	eh = object_unwind__new(object);
	if (eh)
		object__set_slot(object, OBJECT_SLOT_UNWIND, eh, free_eh_frame);
	return eh;
}

static int find_code(void *arg, uint64_t pc, struct unwind_code *ret_code)
{
	struct target *t = arg;
	struct object *object;
	uint64_t bias;

	if (!objects__executable(t->objects, pc)) {
		/* mapped since we looked? Only once: garbage must not make us read on and on */
		if (t->maps_are_new)
			return -ENOENT;
		t->maps_are_new = true;
		if (replace_maps(t) || !objects__executable(t->objects, pc))
			return -ENOENT;
	}
	*ret_code = (struct unwind_code){.eh = NULL};
	if (objects__find(t->objects, pc, &object, &bias) == 0) {
		ret_code->eh = eh_frame_of(object);
		ret_code->bias = bias;
	}
	return 0;
}

static int read_word(void *arg, uint64_t addr, uint64_t *ret_word)
{
	struct target *t = arg;

	return stack_memory__read_word(t->memory, addr, ret_word);
}

enum stack_end target__unwind(struct target *t, const struct task_record *record, size_t max_frames,
			      struct raw_frame *ret_frames, size_t *ret_n, bool *ret_live)
{
	const struct pmp_task *task = record->task;
	struct unwind_space space = {.read_word = read_word, .find_code = find_code, .arg = t};
	struct unwind_regs regs = {.known = (1u << CFI_N_REGS) - 1};
	enum stack_end end;
	bool no_stack;

	_Static_assert(CFI_N_REGS == PMP_N_REGS, "both number registers as DWARF does");
	memcpy(regs.value, task->regs, sizeof(regs.value));
	/* a thread that the kernel made for itself in the process (io_uring's workers) has no user
	 * stack: gdb shows this one frame, too */
	no_stack = !regs.value[CFI_RA] && !regs.value[CFI_RSP];
	if (task->cs != CS_64_BIT || no_stack) {
		ret_frames[0] = (struct raw_frame){.pc = regs.value[CFI_RA], .exact = true};
		*ret_n = 1;
		*ret_live = false;
		return no_stack ? STACK_WHOLE : STACK_BROKEN;
	}
	stack_memory__start(t->memory, task->regs[CFI_RSP] & ~(uint64_t)7, record->stack,
			    task->stack_len);
	end = unwind__stack(&space, &regs, max_frames, ret_frames, ret_n);
	*ret_live = stack_memory__read_live(t->memory);
	return end;
}

void target__resolve(struct target *t, struct raw_frame *frames, size_t n)
{
	struct code_place place;

	for (size_t i = 0; i < n; i++) {
		struct raw_frame *frame = &frames[i];
		/* a return address: the call before it tells which function, a noreturn one is the
		 * last, and what follows it may be another mapping's */
		uint64_t addr = frame->exact ? frame->pc : frame->pc - 1;

		if (objects__resolve(t->objects, addr, &place))
			continue;
		frame->object = place.object;
		frame->bias = place.bias;
		frame->from = place.from;
	}
}
