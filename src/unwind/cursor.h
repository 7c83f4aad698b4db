/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cursor: reads the little-endian and LEB128 numbers of DWARF from untrusted bytes.
 * The bytes are borrowed. A read past the end, or of a number over 64 bits, gives 0 and sets
 * `bad`, which stays set: a series of reads needs one check at its end.
 */
#ifndef PMP_CURSOR_H
#define PMP_CURSOR_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static inline size_t cursor__left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

/* The next `len` bytes, or NULL. */
static inline const uint8_t *cursor__bytes(struct cursor *c, uint64_t len)
{
	const uint8_t *p = c->p;

	if (c->bad || len > cursor__left(c)) {
		c->bad = true;
		return NULL;
	}
	c->p += len;
	return p;
}

static inline uint8_t cursor__u8(struct cursor *c)
{
	const uint8_t *p = cursor__bytes(c, 1);

	return p ? *p : 0;
}

static inline uint16_t cursor__u16(struct cursor *c)
{
	const uint8_t *p = cursor__bytes(c, 2);
	uint16_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline uint32_t cursor__u32(struct cursor *c)
{
	const uint8_t *p = cursor__bytes(c, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t cursor__u64(struct cursor *c)
{
	const uint8_t *p = cursor__bytes(c, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* Zero bits that pad a number, to any length, are allowed as DWARF does. */
static inline uint64_t cursor__uleb(struct cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	if (c->p < c->end && *c->p < 0x80 && !c->bad)
		return *c->p++;
	for (;;) {
		uint8_t byte = cursor__u8(c);
		uint64_t bits = byte & 0x7f;

		if (shift < 64)
			value |= bits << shift;
		if (bits && (shift >= 64 || bits << shift >> shift != bits))
			c->bad = true;
		if (c->bad)
			return 0;
		if (!(byte & 0x80))
			return value;
		shift = shift < 64 ? shift + 7 : shift;
	}
}

static inline int64_t cursor__sleb(struct cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	for (;;) {
		uint8_t byte = cursor__u8(c);
		uint64_t bits = byte & 0x7f;

		if (shift < 63) {
			value |= bits << shift;
		} else {
			/* from bit 63 on there is nothing but copies of the sign */
			bool negative = shift == 63 ? bits & 1 : value >> 63;

			if (bits != (negative ? 0x7f : 0))
				c->bad = true;
			if (negative)
				value |= 1ULL << 63;
		}
		if (c->bad)
			return 0;
		shift = shift < 64 ? shift + 7 : shift;
		if (!(byte & 0x80)) {
			if (shift < 64 && (byte & 0x40))
				value |= ~0ULL << shift;
			return (int64_t)value;
		}
	}
}

/* DW_EH_PE_*: how a pointer is stored (low nibble), what it is relative to, and indirection. */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_ALIGNED = 0x50,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

/*
 * Read a pointer. `addr` is where c->p lies in the object, `data` what DW_EH_PE_datarel counts
 * from. Returns 0; -EINVAL: cut short or no such format; -EOPNOTSUPP: relative to something
 * that only the running program knows.
 */
static inline int cursor__pointer(struct cursor *c, uint8_t encoding, uint64_t addr, uint64_t data,
				  uint64_t *ret_value)
{
	uint64_t base, value;

	switch (encoding & PE_BASE) {
	case 0:
		base = 0;
		break;
	case PE_PCREL:
		base = addr;
		break;
	case PE_DATAREL:
		base = data;
		break;
	case PE_ALIGNED:
		base = 0;
		cursor__bytes(c, -addr & 7);
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (encoding & PE_INDIRECT)
		return -EOPNOTSUPP;
	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_SIGNED:
	case PE_UDATA8:
	case PE_SDATA8:
		value = cursor__u64(c);
		break;
	case PE_UDATA4:
		value = cursor__u32(c);
		break;
	case PE_SDATA4:
		value = (uint64_t)(int32_t)cursor__u32(c);
		break;
	case PE_UDATA2:
		value = cursor__u16(c);
		break;
	case PE_SDATA2:
		value = (uint64_t)(int16_t)cursor__u16(c);
		break;
	case PE_ULEB128:
		value = cursor__uleb(c);
		break;
	case PE_SLEB128:
		value = (uint64_t)cursor__sleb(c);
		break;
	default:
		return -EINVAL;
	}
	if (c->bad)
		return -EINVAL;
	*ret_value = base + value;
	return 0;
}

#endif
