// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/eh_frame.h"

#include "unwind/cfi_entry.h"
#include "unwind/eh_index.h"

#include <stdlib.h>

#define N_CIES 16
#define N_ROWS 256

struct cie_slot {
	size_t offset;
	bool used;
	struct cfi_cie cie;
};

struct row_slot {
	uint64_t pc;
	bool used;
	int err;
	struct cfi_row row;
};

struct eh_frame {
	struct cfi_section section;
	struct eh_frame *next; /* is asked where this one has nothing */
	void *owned;
	struct eh_table table; /* .eh_frame_hdr's */
	bool table_usable;
	struct eh_index index; /* made by a scan, at the first need */
	bool index_made;
	struct row_slot *rows; /* N_ROWS, direct-mapped by pc; NULL until the first lookup */
	struct cie_slot cies[N_CIES];
};

struct fde {
	uint64_t start, end;
	const struct cfi_cie *cie; /* valid until the next one is looked up */
	struct cursor program;
};

static int find_cie(struct eh_frame *eh, size_t offset, const struct cfi_cie **ret_cie)
{
	struct cie_slot *slot = &eh->cies[(offset / 4) % N_CIES];

	if (!slot->used || slot->offset != offset) {
		int err;

		slot->used = false;
		err = cfi_entry__read_cie(&eh->section, offset, &slot->cie);
		if (err)
			return err;
		slot->offset = offset;
		slot->used = true;
	}
	*ret_cie = &slot->cie;
	return 0;
}

/* Returns -ENOENT for an FDE that covers nothing: linkers leave them where code was dropped. */
static int read_fde(struct eh_frame *eh, const struct cfi_entry *e, struct fde *ret_fde)
{
	struct cursor c = e->body;
	struct fde f = {.start = 0};
	uint64_t len;
	int err = find_cie(eh, e->cie_offset, &f.cie);

	if (err)
		return err;
	err = cursor__pointer(&c, f.cie->pointer_encoding, cfi_section__address(&eh->section, c.p),
			      0, &f.start);
	if (err)
		return err;
	err = cursor__pointer(&c, f.cie->pointer_encoding & PE_FORMAT, 0, 0, &len);
	if (err)
		return err;
	if (!len)
		return -ENOENT;
	if (__builtin_add_overflow(f.start, len, &f.end))
		return -EINVAL;
	if (f.cie->sized_augmentation) {
		cursor__bytes(&c, cursor__uleb(&c));
	} else if (f.cie->lsda_encoding != PE_OMIT) {
		err = cursor__pointer(&c, f.cie->lsda_encoding & PE_FORMAT, 0, 0, &len);
		if (err)
			return err;
	}
	if (c.bad)
		return -EINVAL;
	f.program = c;
	*ret_fde = f;
	return 0;
}

static int run_fde(const struct eh_frame *eh, const struct fde *f, eh_frame_row_fn fn, void *arg,
		   int *ret_stop)
{
	struct cfa_run run = {
		.cie = f->cie,
		.start = f->start,
		.end = f->end,
		.addr_offset = eh->section.addr - (uint64_t)(uintptr_t)eh->section.bytes,
		.fn = fn,
		.arg = arg,
	};
	int err = cfa_program__run_fde(&run, f->program);

	*ret_stop = run.ret_stop;
	return err;
}

/*
 * Call `fn` for each FDE in the section's order until it returns other than 0, which is then
 * returned. The scan ends at the terminator, the end, or where the chain of lengths breaks.
 */
typedef int (*fde_fn)(struct eh_frame *eh, size_t offset, const struct fde *f, void *arg);

static int each_fde(struct eh_frame *eh, fde_fn fn, void *arg, size_t *malformed)
{
	size_t offset = 0;

	while (offset < eh->section.len) {
		struct cfi_entry e;
		struct fde f;
		int err = cfi_entry__read(&eh->section, offset, &e);

		if (err) {
			(*malformed)++;
			break;
		}
		if (e.terminator)
			break;
		if (!e.is_cie) {
			err = read_fde(eh, &e, &f);
			if (!err) {
				err = fn(eh, offset, &f, arg);
				if (err)
					return err;
			} else if (err != -ENOENT) {
				(*malformed)++;
			}
		}
		offset = e.next;
	}
	return 0;
}

static int add_to_index(struct eh_frame *eh, size_t offset, const struct fde *f, void *arg)
{
	return eh_index__add(&eh->index, f->start, f->end, offset);
}

static int make_index(struct eh_frame *eh)
{
	size_t malformed = 0;
	int err;

	if (eh->index_made)
		return 0;
	err = each_fde(eh, add_to_index, NULL, &malformed);
	if (err) {
		eh_index__free(&eh->index);
		return err;
	}
	eh_index__sort(&eh->index);
	eh->index_made = true;
	return 0;
}

/* Read the FDE that .eh_frame_hdr says starts at `start`. -EINVAL: the table lies. */
static int read_promised_fde(struct eh_frame *eh, uint64_t start, uint64_t addr,
			     struct fde *ret_fde)
{
	uint64_t offset = addr - eh->section.addr;
	struct cfi_entry e;
	int err;

	if (offset >= eh->section.len || cfi_entry__read(&eh->section, offset, &e) ||
	    e.terminator || e.is_cie)
		return -EINVAL;
	err = read_fde(eh, &e, ret_fde);
	if (err == -EOPNOTSUPP)
		return err;
	return err || ret_fde->start != start ? -EINVAL : 0;
}

/* Returns 0; -ENOENT: .eh_frame_hdr does not lead to an FDE with pc; -EOPNOTSUPP. */
static int find_by_table(struct eh_frame *eh, uint64_t pc, struct fde *ret_fde)
{
	uint64_t start, addr;
	int err;

	if (!eh->table_usable)
		return -ENOENT;
	err = eh_table__find(&eh->table, pc, &start, &addr);
	if (!err)
		err = read_promised_fde(eh, start, addr, ret_fde);
	if (err == -EINVAL) {
		eh->table_usable = false;
		return -ENOENT;
	}
	return err ?: pc < ret_fde->end ? 0 : -ENOENT;
}

static int find_fde(struct eh_frame *eh, uint64_t pc, struct fde *ret_fde)
{
	struct cfi_entry e;
	size_t offset;
	int err = find_by_table(eh, pc, ret_fde);

	if (err != -ENOENT)
		return err;
	/*
	 * Also where the table just has nothing for pc: it may leave entries out. Code without
	 * an FDE is rare, so the scan is too, and then its word is final.
	 */
	err = make_index(eh);
	if (err)
		return err;
	err = eh_index__find(&eh->index, pc, &offset);
	if (err)
		return err;
	err = cfi_entry__read(&eh->section, offset, &e);
	return err ?: read_fde(eh, &e, ret_fde);
}

struct find {
	uint64_t pc;
	struct cfi_row *row;
};

static int keep_if_covers(const struct cfi_row *row, void *arg)
{
	const struct find *find = arg;

	if (find->pc >= row->end)
		return 0;
	*find->row = *row;
	return 1;
}

static int find_row_uncached(struct eh_frame *eh, uint64_t pc, struct cfi_row *row)
{
	struct find find = {.pc = pc, .row = row};
	struct fde f;
	int stop, err;

	do
		err = find_fde(eh, pc, &f);
	while (err == -ENOENT && (eh = eh->next));
	if (err)
		return err;
	err = run_fde(eh, &f, keep_if_covers, &find, &stop);
	/* rows leave no gap, so a run without error has found it */
	return err == CFA_PROGRAM_STOPPED ? 0 : err ?: -ENOENT;
}

int eh_frame__find_row(struct eh_frame *eh, uint64_t pc, struct cfi_row *ret_row)
{
	struct cfi_row row;
	struct row_slot *slot;
	int err;

	if (!eh->rows)
		eh->rows = calloc(N_ROWS, sizeof(*eh->rows));
	if (!eh->rows) {
		/* it is only a cache */
		err = find_row_uncached(eh, pc, &row);
		if (!err)
			*ret_row = row;
		return err;
	}
	slot = &eh->rows[(pc * 0x9e3779b97f4a7c15ULL >> 32) % N_ROWS];
	if (!slot->used || slot->pc != pc) {
		slot->used = false;
		slot->err = find_row_uncached(eh, pc, &slot->row);
		if (slot->err == -ENOMEM)
			return -ENOMEM;
		slot->pc = pc;
		slot->used = true;
	}
	if (!slot->err)
		*ret_row = slot->row;
	return slot->err;
}

struct each_row {
	eh_frame_row_fn fn;
	void *arg;
	size_t malformed;
	int stop; /* what fn returned last */
};

static int each_row_of_fde(struct eh_frame *eh, size_t offset, const struct fde *f, void *arg)
{
	struct each_row *each = arg;
	int err = run_fde(eh, f, each->fn, each->arg, &each->stop);

	if (err == CFA_PROGRAM_STOPPED)
		return err;
	if (err)
		each->malformed++;
	return 0;
}

int eh_frame__each_row(struct eh_frame *eh, eh_frame_row_fn fn, void *arg, size_t *ret_malformed)
{
	struct each_row each = {.fn = fn, .arg = arg};
	size_t malformed = 0;

	while (eh && !each_fde(eh, each_row_of_fde, &each, &malformed))
		eh = eh->next;
	if (ret_malformed)
		*ret_malformed = malformed + each.malformed;
	return each.stop;
}

static bool init(struct eh_frame *eh, const struct eh_frame_bytes *bytes)
{
	struct cfi_entry first;

	eh->section = (struct cfi_section){
		.bytes = bytes->eh_frame,
		.len = bytes->eh_frame_len,
		.addr = bytes->eh_frame_addr,
		.is_debug = bytes->is_debug_frame,
	};
	/* the first entry has to be a CIE, or the end */
	if (!bytes->eh_frame || cfi_entry__read(&eh->section, 0, &first) ||
	    !(first.terminator || first.is_cie))
		return false;
	eh->table_usable = bytes->hdr && !eh_table__init(&eh->table, bytes);
	eh->owned = bytes->owned;
	return true;
}

struct eh_frame *eh_frame__new(const struct eh_frame_bytes *bytes)
{
	struct eh_frame *eh = calloc(1, sizeof(*eh));

	if (eh && init(eh, bytes))
		return eh;
	if (eh)
		errno = EINVAL;
	free(bytes->owned);
	free(eh);
	return NULL;
}

struct eh_frame *eh_frame__join(struct eh_frame *first, struct eh_frame *second)
{
	struct eh_frame *last = first;

	if (!first)
		return second;
	while (last->next)
		last = last->next;
	last->next = second;
	return first;
}

void eh_frame__free(struct eh_frame *eh)
{
	while (eh) {
		struct eh_frame *next = eh->next;

		eh_index__free(&eh->index);
		free(eh->rows);
		free(eh->owned);
		free(eh);
		eh = next;
	}
}
