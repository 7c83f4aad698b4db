// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/stack_memory.h"

#include "proc/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE	4096
#define N_PAGES 16 /* a deep stack is read upwards: a few pages serve all of its frames */

struct page {
	uint64_t addr;
	int err; /* 1: empty slot; 0: read; else -errno */
	uint8_t bytes[PAGE];
};

struct stack_memory {
	pid_t tid;
	const struct maps *maps;
	uint64_t base;
	const uint8_t *copy;
	size_t len;
	bool live;
	struct page pages[N_PAGES]; /* direct-mapped by page number */
};

struct stack_memory *stack_memory__new(void)
{
	return calloc(1, sizeof(struct stack_memory));
}

void stack_memory__free(struct stack_memory *m)
{
	free(m);
}

void stack_memory__set_thread(struct stack_memory *m, pid_t tid)
{
	m->tid = tid;
}

void stack_memory__set_maps(struct stack_memory *m, const struct maps *maps)
{
	m->maps = maps;
}

void stack_memory__start(struct stack_memory *m, uint64_t base, const uint8_t *copy, size_t len)
{
	m->base = base;
	m->copy = copy;
	m->len = len;
	m->live = false;
	for (size_t i = 0; i < N_PAGES; i++)
		m->pages[i].err = 1;
}

static const struct page *page_at(struct stack_memory *m, uint64_t addr)
{
	uint64_t start = addr & ~(uint64_t)(PAGE - 1);
	struct page *page = &m->pages[start / PAGE % N_PAGES];

	if (page->err == 1 || page->addr != start) {
		page->addr = start;
		page->err = memory__read(&m->tid, start, page->bytes, PAGE);
	}
	return page;
}

static int read_live(struct stack_memory *m, uint64_t addr, uint8_t *bytes, size_t len)
{
	const struct mapping *mapping;

	while (len) {
		size_t offset = addr & (PAGE - 1), part = PAGE - offset;
		const struct page *page = page_at(m, addr);

		if (page->err)
			return page->err;
		mapping = m->maps ? maps__find(m->maps, addr) : NULL;
		if (!mapping || mapping->writable)
			m->live = true;
		if (part > len)
			part = len;
		memcpy(bytes, page->bytes + offset, part);
		bytes += part;
		addr += part;
		len -= part;
	}
	return 0;
}

int stack_memory__read_word(struct stack_memory *m, uint64_t addr, uint64_t *ret_word)
{
	uint8_t bytes[sizeof(uint64_t)];
	int err;

	if (addr > UINT64_MAX - sizeof(bytes))
		return -EFAULT;
	if (addr >= m->base && m->len >= sizeof(bytes) &&
	    addr - m->base <= m->len - sizeof(bytes)) {
		memcpy(ret_word, m->copy + (addr - m->base), sizeof(bytes));
		return 0;
	}
	err = read_live(m, addr, bytes, sizeof(bytes));
	if (err)
		return err;
	memcpy(ret_word, bytes, sizeof(bytes));
	return 0;
}

bool stack_memory__read_live(const struct stack_memory *m)
{
	return m->live;
}
