// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/eh_frame.h"

#include "unwind/cfa_program.h"
#include "unwind/eh_index.h"

#include <stdlib.h>

/* Real initial instructions take some 20 bytes; a bound keeps re-reading CIEs cheap. */
#define MAX_CIE_LEN 4096
#define N_CIES	    16
#define N_ROWS	    256

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
	struct eh_frame_bytes bytes;
	struct eh_table table; /* .eh_frame_hdr's */
	bool table_usable;
	struct eh_index index; /* made by a scan, at the first need */
	bool index_made;
	struct row_slot *rows; /* N_ROWS, direct-mapped by pc; NULL until the first lookup */
	struct cie_slot cies[N_CIES];
};

struct entry {
	size_t next;	 /* offset of the entry after this one */
	bool terminator; /* length 0 */
	bool is_cie;
	size_t cie_offset; /* an FDE's */
	struct cursor body;
};

struct fde {
	uint64_t start, end;
	const struct cfi_cie *cie; /* valid until the next one is looked up */
	struct cursor program;
};

static uint64_t address_of(const struct eh_frame *eh, const uint8_t *p)
{
	return eh->bytes.eh_frame_addr + (uint64_t)(p - eh->bytes.eh_frame);
}

static int read_entry(const struct eh_frame *eh, size_t offset, struct entry *ret_entry)
{
	const uint8_t *base = eh->bytes.eh_frame, *id_at;
	struct cursor c = {.p = base, .end = base + eh->bytes.eh_frame_len};
	struct entry e = {.next = 0};
	uint64_t len, id;
	bool is_64;

	if (!cursor__bytes(&c, offset))
		return -EINVAL;
	len = cursor__u32(&c);
	is_64 = len == 0xffffffff;
	if (is_64)
		len = cursor__u64(&c);
	else if (len >= 0xfffffff0)
		return -EINVAL;
	if (c.bad || len > cursor__left(&c))
		return -EINVAL;
	c.end = c.p + len;
	e.next = (size_t)(c.end - base);
	if (!len) {
		e.terminator = true;
		*ret_entry = e;
		return 0;
	}
	id_at = c.p;
	id = cursor__u32(&c);
	/*
	 * The LSB and LLVM have 4 bytes here even after a 64-bit length, binutils and elfutils 8.
	 * What follows 4 bytes is a CIE's version or an FDE's address: never 4 zero bytes.
	 */
	if (is_64 && cursor__left(&c) >= 4 && !(c.p[0] | c.p[1] | c.p[2] | c.p[3]))
		cursor__u32(&c);
	if (c.bad)
		return -EINVAL;
	e.is_cie = id == 0;
	if (id > (uint64_t)(id_at - base))
		return -EINVAL;
	e.cie_offset = e.is_cie ? offset : (size_t)(id_at - base) - id;
	e.body = c;
	*ret_entry = e;
	return 0;
}

/* Read what the augmentation string announces, after its 'z'. */
static int read_augmentation(const struct eh_frame *eh, const char *letters, struct cursor *c,
			     struct cfi_cie *cie)
{
	uint64_t ignored;
	uint8_t encoding;
	int err;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = cursor__u8(c);
			break;
		case 'L':
			cie->lsda_encoding = cursor__u8(c);
			break;
		case 'P':
			encoding = cursor__u8(c);
			if (encoding == PE_OMIT)
				break;
			/* the personality routine: only its size matters */
			encoding &= PE_FORMAT | ((encoding & PE_BASE) == PE_ALIGNED ? PE_BASE : 0);
			err = cursor__pointer(c, encoding, address_of(eh, c->p), 0, &ignored);
			if (err)
				return err;
			break;
		case 'S':
			cie->initial.signal_frame = true;
			break;
		case 'B': /* aarch64's pointer authentication key: no data */
			break;
		default:
			return -EOPNOTSUPP;
		}
	}
	return c->bad ? -EINVAL : 0;
}

static int read_cie(const struct eh_frame *eh, size_t offset, struct cfi_cie *cie)
{
	struct cursor c, data;
	struct entry e;
	const char *letters;
	const uint8_t *nul;
	uint64_t len, ra_column;
	uint8_t version;
	int err = read_entry(eh, offset, &e);

	if (err)
		return err;
	if (e.terminator || !e.is_cie)
		return -EINVAL;
	c = e.body;
	if (cursor__left(&c) > MAX_CIE_LEN)
		return -EOPNOTSUPP;
	version = cursor__u8(&c);
	letters = (const char *)c.p;
	nul = memchr(c.p, '\0', cursor__left(&c));
	if (c.bad || !nul)
		return -EINVAL;
	c.p = nul + 1;
	if (version != 1 && version != 3 && version != 4)
		return -EOPNOTSUPP;
	if (version == 4) {
		uint8_t address_size = cursor__u8(&c), segment_size = cursor__u8(&c);

		if (address_size != 8 || segment_size != 0)
			return c.bad ? -EINVAL : -EOPNOTSUPP;
	}
	if (letters[0] == 'e' && letters[1] == 'h') {
		/* GCC 2: the address of an exception table */
		cursor__u64(&c);
		letters += 2;
	}
	cie->code_align = cursor__uleb(&c);
	cie->data_align = cursor__sleb(&c);
	ra_column = version == 1 ? cursor__u8(&c) : cursor__uleb(&c);
	cie->pointer_encoding = PE_ABSPTR;
	cie->lsda_encoding = PE_OMIT;
	cie->initial.signal_frame = false;
	cie->sized_augmentation = *letters == 'z';
	if (cie->sized_augmentation) {
		letters++;
		len = cursor__uleb(&c);
		data = c;
		if (!cursor__bytes(&c, len))
			return -EINVAL;
		data.end = c.p;
		err = read_augmentation(eh, letters, &data, cie);
	} else {
		/* without sizes, what is unknown cannot be skipped */
		err = *letters ? read_augmentation(eh, letters, &c, cie) : 0;
	}
	if (err || c.bad)
		return err ?: -EINVAL;
	if (ra_column != CFI_RA)
		return -EOPNOTSUPP;
	return cfa_program__run_cie(cie, c);
}

static int find_cie(struct eh_frame *eh, size_t offset, const struct cfi_cie **ret_cie)
{
	struct cie_slot *slot = &eh->cies[(offset / 4) % N_CIES];

	if (!slot->used || slot->offset != offset) {
		int err;

		slot->used = false;
		err = read_cie(eh, offset, &slot->cie);
		if (err)
			return err;
		slot->offset = offset;
		slot->used = true;
	}
	*ret_cie = &slot->cie;
	return 0;
}

/* Returns -ENOENT for an FDE that covers nothing: linkers leave them where code was dropped. */
static int read_fde(struct eh_frame *eh, const struct entry *e, struct fde *ret_fde)
{
	struct cursor c = e->body;
	struct fde f = {.start = 0};
	uint64_t len;
	int err = find_cie(eh, e->cie_offset, &f.cie);

	if (err)
		return err;
	err = cursor__pointer(&c, f.cie->pointer_encoding, address_of(eh, c.p), 0, &f.start);
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
		.addr_offset = eh->bytes.eh_frame_addr - (uint64_t)(uintptr_t)eh->bytes.eh_frame,
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

	while (offset < eh->bytes.eh_frame_len) {
		struct entry e;
		struct fde f;
		int err = read_entry(eh, offset, &e);

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
	uint64_t offset = addr - eh->bytes.eh_frame_addr;
	struct entry e;
	int err;

	if (offset >= eh->bytes.eh_frame_len || read_entry(eh, offset, &e) || e.terminator ||
	    e.is_cie)
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
	struct entry e;
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
	err = read_entry(eh, offset, &e);
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
	int stop, err = find_fde(eh, pc, &f);

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

	each_fde(eh, each_row_of_fde, &each, &malformed);
	if (ret_malformed)
		*ret_malformed = malformed + each.malformed;
	return each.stop;
}

struct eh_frame *eh_frame__new(const struct eh_frame_bytes *bytes)
{
	struct eh_frame *eh;
	struct entry first;

	eh = calloc(1, sizeof(*eh));
	if (!eh)
		return NULL;
	eh->bytes = *bytes;
	/* the first entry has to be a CIE, or the end */
	if (!bytes->eh_frame || read_entry(eh, 0, &first) || !(first.terminator || first.is_cie)) {
		free(eh);
		errno = EINVAL;
		return NULL;
	}
	eh->table_usable = bytes->hdr && !eh_table__init(&eh->table, bytes);
	return eh;
}

void eh_frame__free(struct eh_frame *eh)
{
	if (!eh)
		return;
	eh_index__free(&eh->index);
	free(eh->rows);
	free(eh);
}
