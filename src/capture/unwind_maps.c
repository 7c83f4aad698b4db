// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/unwind_maps.h"

#include "base/clock.h"
#include "base/ranges.h"
#include "capture/object_unwind.h"
#include "unwind/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_RULES    65536
#define MAX_MAPPINGS 65536
#define MAX_ROWS     (64u << 20) /* 512 MiB */
/* A program in the kernel that still searches what was given back is done by then. */
#define REST_NS 1000000000ull

struct unwind_maps {
	bool wanted;
	size_t spare;
	bool loaded;
	struct unwind_rules *rules;
	size_t n_rules_put;
	size_t rows_prepared;
	size_t left_out;
	struct unwind_maps_room room;
	struct pmp_row *row_array; /* shared with the kernel */
	struct pmp_rule *rule_array;
	struct pmp_mapping *mapping_array;
	struct ranges *rows, *mappings;
};

/* What an object's slot holds. */
struct loaded_table {
	struct unwind_maps *maps;
	struct unwind_table *table; /* until it is in the kernel */
	bool put;
	bool left_out;
	size_t first, n;
	uint64_t base;
	uint64_t check_addr, check; /* in the object; 0: nothing to check */
};

struct unwind_maps *unwind_maps__new(bool wanted, size_t spare)
{
	struct unwind_maps *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->wanted = wanted;
	m->spare = wanted ? spare : 1;
	m->rules = unwind_rules__new(MAX_RULES);
	if (!m->rules) {
		unwind_maps__free(m);
		errno = ENOMEM;
		return NULL;
	}
	return m;
}

static void unmap(void *array, size_t len)
{
	if (array)
		munmap(array, len);
}

void unwind_maps__free(struct unwind_maps *m)
{
	if (!m)
		return;
	unmap(m->row_array, m->room.rows * sizeof(*m->row_array));
	unmap(m->rule_array, m->room.rules * sizeof(*m->rule_array));
	unmap(m->mapping_array, m->room.mappings * sizeof(*m->mapping_array));
	ranges__free(m->rows);
	ranges__free(m->mappings);
	unwind_rules__free(m->rules);
	free(m);
}

static void free_table(void *data)
{
	struct loaded_table *t = data;

	if (t->put)
		ranges__give_back(t->maps->rows, t->first, t->n,
				  clock__ns(CLOCK_MONOTONIC) + REST_NS);
	unwind_table__free(t->table);
	free(t);
}

static struct unwind_table *make_table(struct unwind_maps *m, struct object *object)
{
	struct eh_frame *eh = m->wanted ? object_unwind__new(object) : NULL;
	struct unwind_table *table = eh ? unwind_table__new(eh, m->rules) : NULL;

	eh_frame__free(eh);
	return table;
}

int unwind_maps__prepare(struct unwind_maps *m, struct object *object)
{
	struct loaded_table *t = object__slot(object, OBJECT_SLOT_TABLE);

	if (t)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->maps = m;
	if (elf_file__fingerprint(object__file(object), &t->check_addr, &t->check))
		t->check_addr = 0;
	t->table = make_table(m, object);
	if (t->table) {
		unwind_table__rows(t->table, &t->n);
		t->base = unwind_table__base(t->table);
		m->rows_prepared += t->n;
	}
	object__set_slot(object, OBJECT_SLOT_TABLE, t, free_table);
	return 0;
}

static size_t whole_pages(size_t n, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	/* entries of any size: the least number of pages that holds them, filled */
	return (n * size + page - 1) / page * page / size;
}

struct unwind_maps_room unwind_maps__room(const struct unwind_maps *m)
{
	size_t rows = m->rows_prepared + m->rows_prepared / 4 + m->spare;

	if (rows > MAX_ROWS)
		rows = MAX_ROWS;
	return (struct unwind_maps_room){
		.rows = whole_pages(rows, sizeof(struct pmp_row)),
		.rules = whole_pages(m->wanted ? MAX_RULES : 2, sizeof(struct pmp_rule)),
		.mappings = whole_pages(MAX_MAPPINGS, sizeof(struct pmp_mapping)),
	};
}

static void *map(int fd, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, (len + page - 1) / page * page, PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Rules that tables made since then brought. */
static void put_rules(struct unwind_maps *m)
{
	size_t n;
	const struct pmp_rule *rules = unwind_rules__all(m->rules, &n);

	for (; m->n_rules_put < n && m->n_rules_put < m->room.rules; m->n_rules_put++)
		m->rule_array[m->n_rules_put] = rules[m->n_rules_put];
}

int unwind_maps__load(struct unwind_maps *m, const struct unwind_maps_room *room, int rows_fd,
		      int rules_fd, int mappings_fd)
{
	m->room = *room;
	m->row_array = map(rows_fd, room->rows * sizeof(*m->row_array));
	m->rule_array = map(rules_fd, room->rules * sizeof(*m->rule_array));
	m->mapping_array = map(mappings_fd, room->mappings * sizeof(*m->mapping_array));
	m->rows = ranges__new(room->rows);
	m->mappings = ranges__new(room->mappings);
	if (!m->row_array || !m->rule_array || !m->mapping_array || !m->rows || !m->mappings)
		return -ENOMEM;
	m->loaded = true;
	put_rules(m);
	return 0;
}

static void put_table(struct unwind_maps *m, struct loaded_table *t)
{
	const struct pmp_row *rows;

	if (!t->table || t->left_out)
		return;
	ranges__settle(m->rows, clock__ns(CLOCK_MONOTONIC));
	rows = unwind_table__rows(t->table, &t->n);
	if (ranges__take(m->rows, t->n, &t->first)) {
		t->left_out = true;
		m->left_out++;
		return;
	}
	put_rules(m);
	memcpy(m->row_array + t->first, rows, t->n * sizeof(*rows));
	t->put = true;
	unwind_table__free(t->table);
	t->table = NULL;
}

void unwind_maps__describe(struct unwind_maps *m, struct object *object, uint64_t bias,
			   struct pmp_mapping *ret_mapping)
{
	struct loaded_table *t;

	if (unwind_maps__prepare(m, object))
		return;
	t = object__slot(object, OBJECT_SLOT_TABLE);
	if (m->loaded)
		put_table(m, t);
	ret_mapping->base = bias + t->base;
	if (t->put) {
		ret_mapping->first_row = (uint32_t)t->first;
		ret_mapping->n_rows = (uint32_t)t->n;
	}
	if (t->check_addr) {
		ret_mapping->check_addr = bias + t->check_addr;
		ret_mapping->check = t->check;
	}
}

int unwind_maps__put_mappings(struct unwind_maps *m, const struct pmp_mapping *mappings, size_t n,
			      uint32_t *ret_first)
{
	size_t first;

	ranges__settle(m->mappings, clock__ns(CLOCK_MONOTONIC));
	if (!m->loaded || ranges__take(m->mappings, n, &first))
		return -ENOSPC;
	memcpy(m->mapping_array + first, mappings, n * sizeof(*mappings));
	*ret_first = (uint32_t)first;
	return 0;
}

void unwind_maps__drop_mappings(struct unwind_maps *m, uint32_t first, size_t n)
{
	ranges__give_back(m->mappings, first, n, clock__ns(CLOCK_MONOTONIC) + REST_NS);
}

size_t unwind_maps__left_out(const struct unwind_maps *m)
{
	return m->left_out;
}
