// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/frame_table.h"

#include "capture/object_unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct frame_key {
	struct object *object; /* NULL: none is known */
	const char *from;
	int64_t pid;	/* without an object; 0: not known */
	uint64_t addr;	/* in the object, or the pc as it was */
	uint64_t flags; /* PMP_FRAME_EXACT, PMP_FRAME_SIGNAL */
};

struct frame {
	UT_hash_handle hh;
	struct frame_key key;
	uint64_t bias; /* of the first time */
	uint32_t number;
};

/* What was met lately: most frames of a new stack were in the last ones, too. */
#define N_RECENT 4096 /* a power of two */

struct recent {
	uint64_t frame;
	uint32_t generation;
	uint32_t number;
};

struct frame_table {
	struct recent recent[N_RECENT];
	struct frame *frames;
	struct frame **by_number;
	size_t n, capacity;
};

struct frame_table *frame_table__new(void)
{
	return calloc(1, sizeof(struct frame_table));
}

void frame_table__free(struct frame_table *t)
{
	struct frame *f, *next;

	if (!t)
		return;
	HASH_ITER (hh, t->frames, f, next) {
		HASH_DEL(t->frames, f);
		object__unref(f->key.object);
		free(f);
	}
	free(t->by_number);
	free(t);
}

static int make_room(struct frame_table *t)
{
	size_t capacity = t->capacity ? t->capacity * 2 : 1024;
	struct frame **by_number;

	if (t->n < t->capacity)
		return 0;
	by_number = reallocarray(t->by_number, capacity, sizeof(*by_number));
	if (!by_number)
		return -ENOMEM;
	t->by_number = by_number;
	t->capacity = capacity;
	return 0;
}

static int add(struct frame_table *t, const struct frame_key *key, uint64_t bias,
	       struct frame **ret_frame)
{
	struct frame *f;

	if (make_room(t))
		return -ENOMEM;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->key = *key;
	f->bias = bias;
	f->number = (uint32_t)t->n;
	HASH_ADD(hh, t->frames, key, sizeof(f->key), f);
	if (!f->hh.tbl) {
		free(f);
		return -ENOMEM;
	}
	object__ref(key->object);
	t->by_number[t->n++] = f;
	*ret_frame = f;
	return 0;
}

int frame_table__intern(struct frame_table *t, const struct processes *processes, pid_t pid,
			uint32_t generation, uint64_t frame, uint32_t *ret_number)
{
	struct recent *recent = &t->recent[(frame ^ frame >> 12) & (N_RECENT - 1)];
	uint64_t pc = frame & PMP_FRAME_PC;
	struct frame_key key = {.addr = pc, .flags = frame & ~PMP_FRAME_PC};
	struct code_place place = {.object = NULL};
	struct frame *f;
	int err = 0;

	if (recent->frame == frame && recent->generation == generation && generation) {
		*ret_number = recent->number;
		return 0;
	}
	if (!processes__find_code(processes, generation, key.flags & PMP_FRAME_EXACT ? pc : pc - 1,
				  &place) &&
	    place.object) {
		key.object = place.object;
		key.from = place.from;
		key.addr = pc - place.bias;
	} else {
		key.pid = pid;
	}
	HASH_FIND(hh, t->frames, &key, sizeof(key), f);
	if (!f)
		err = add(t, &key, place.bias, &f);
	if (err)
		return err;
	/* without an object it is this process' own, and a generation may be that of several */
	if (key.object)
		*recent = (struct recent){frame, generation, f->number};
	*ret_number = f->number;
	return 0;
}

struct raw_frame frame_table__get(const struct frame_table *t, uint32_t number)
{
	const struct frame *f = t->by_number[number];
	uint64_t bias = f->key.object ? f->bias : 0;

	return (struct raw_frame){
		.pc = f->key.addr + bias,
		.object = f->key.object,
		.pid = (pid_t)f->key.pid,
		.bias = bias,
		.from = f->key.from,
		.exact = f->key.flags & PMP_FRAME_EXACT,
		.signal = f->key.flags & PMP_FRAME_SIGNAL,
	};
}

bool frame_table__is_start(const struct frame_table *t, uint32_t number)
{
	const struct frame *f = t->by_number[number];
	struct eh_frame *eh = f->key.object ? object_unwind__new(f->key.object) : NULL;
	uint64_t call = f->key.addr - !(f->key.flags & PMP_FRAME_EXACT);
	struct cfi_row row;
	bool start = eh && !eh_frame__find_row(eh, call, &row) &&
		     row.regs[CFI_RA].kind == CFI_UNDEFINED;

	eh_frame__free(eh);
	return start;
}
