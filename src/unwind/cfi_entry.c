// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/cfi_entry.h"

/* Real initial instructions take some 20 bytes; a bound keeps re-reading CIEs cheap. */
#define MAX_CIE_LEN 4096

int cfi_entry__read(const struct cfi_section *s, size_t offset, struct cfi_entry *ret_entry)
{
	const uint8_t *base = s->bytes, *id_at;
	struct cursor c = {.p = base, .end = base + s->len};
	struct cfi_entry e = {.next = 0};
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
	if (s->is_debug) {
		/* from the section's start, and 8 bytes after a 64-bit length */
		if (is_64)
			id |= (uint64_t)cursor__u32(&c) << 32;
		e.is_cie = id == (is_64 ? UINT64_MAX : UINT32_MAX);
		e.cie_offset = e.is_cie ? offset : id;
	} else {
		/*
		 * The LSB and LLVM have 4 bytes here even after a 64-bit length, binutils and
		 * elfutils 8. What follows 4 bytes is a CIE's version or an FDE's address: never 4
		 * zero bytes.
		 */
		if (is_64 && cursor__left(&c) >= 4 && !(c.p[0] | c.p[1] | c.p[2] | c.p[3]))
			cursor__u32(&c);
		e.is_cie = id == 0;
		if (id > (uint64_t)(id_at - base))
			return -EINVAL;
		e.cie_offset = e.is_cie ? offset : (size_t)(id_at - base) - id;
	}
	if (c.bad)
		return -EINVAL;
	e.body = c;
	*ret_entry = e;
	return 0;
}

/* Read what the augmentation string announces, after its 'z'. */
static int read_augmentation(const struct cfi_section *s, const char *letters, struct cursor *c,
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
			err = cursor__pointer(c, encoding, cfi_section__address(s, c->p), 0,
					      &ignored);
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

int cfi_entry__read_cie(const struct cfi_section *s, size_t offset, struct cfi_cie *cie)
{
	struct cursor c, data;
	struct cfi_entry e;
	const char *letters;
	const uint8_t *nul;
	uint64_t len, ra_column;
	uint8_t version;
	int err = cfi_entry__read(s, offset, &e);

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
		err = read_augmentation(s, letters, &data, cie);
	} else {
		/* without sizes, what is unknown cannot be skipped */
		err = *letters ? read_augmentation(s, letters, &c, cie) : 0;
	}
	if (err || c.bad)
		return err ?: -EINVAL;
	if (ra_column != CFI_RA)
		return -EOPNOTSUPP;
	return cfa_program__run_cie(cie, c);
}
