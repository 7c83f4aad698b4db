// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * table_vs_eh_frame: compares the samplers' unwind tables with eh_frame__find_row().
 *   usage: table_vs_eh_frame FILE...          or: find DIR -type f -print0 | table_vs_eh_frame
 * At the first, a middle and the last address of every row of every FDE of every object, the
 * rule that the table has is to be the one that the row found there makes by itself. The tables
 * are also checked for order, and for rows that could have been merged. Exits 1 on any difference.
 *
 * Rows that another FDE covers in part are met by the same comparison, and counted.
 */
#include "unwind/table.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_WORKERS   2
#define MAX_PRINTED 20
#define MAX_RULES   65536

enum count {
	OBJECTS,
	ROWS,
	OVERLAPS,
	ADDRESSES,
	TABLE_ROWS,
	RULES,
	SIGNAL,
	PLT,
	DEREF,
	BOTTOM,
	UNSUPPORTED,
	WITHOUT_ROWS,
	OTHER,
	DIFFERENCES,
	N_COUNTS
};

static const char *const count_names[N_COUNTS] = {
	[OBJECTS] = "objects compared",
	[ROWS] = "rows of .eh_frame",
	[OVERLAPS] = "rows whose first address another FDE covers, too",
	[ADDRESSES] = "addresses compared",
	[TABLE_ROWS] = "rows of tables",
	[RULES] = "rules, each object by itself",
	[SIGNAL] = "rows: signal trampoline",
	[PLT] = "rows: PLT",
	[DEREF] = "rows: CFA in memory",
	[BOTTOM] = "rows: outermost frame",
	[UNSUPPORTED] = "rows: unsupported",
	[WITHOUT_ROWS] = "skipped: nothing in .eh_frame",
	[OTHER] = "skipped: no linked x86-64 ELF with .eh_frame",
	[DIFFERENCES] = "differences",
};

struct shared {
	atomic_size_t next; /* file to take */
	atomic_ulong counts[N_COUNTS];
};

static struct shared *shared;

static void count(enum count what, unsigned long n)
{
	atomic_fetch_add_explicit(&shared->counts[what], n, memory_order_relaxed);
}

/* One object under comparison. */
struct object {
	const char *path;
	struct eh_frame *eh;
	struct unwind_rules *rules;
	struct unwind_table *table;
	const struct pmp_rule *all;
	size_t n_rules;
};

static void differ(const struct object *o, uint64_t pc, const char *what)
{
	if (atomic_fetch_add(&shared->counts[DIFFERENCES], 1) < MAX_PRINTED)
		printf("%s: %#lx: %s\n", o->path, (unsigned long)pc, what);
}

static void compare_at(const struct object *o, uint64_t pc, struct cfi_row *ret_row)
{
	struct pmp_rule expected;
	uint32_t number = unwind_table__find(o->table, pc);

	count(ADDRESSES, 1);
	if (eh_frame__find_row(o->eh, pc, ret_row)) {
		differ(o, pc, "find_row finds nothing");
		return;
	}
	expected = unwind_rules__from_row(ret_row);
	if (number >= o->n_rules)
		differ(o, pc, "no such rule");
	else if (memcmp(&o->all[number], &expected, sizeof(expected)) != 0)
		differ(o, pc, number ? "another rule" : "no rule");
}

static void count_kind(const struct pmp_rule *rule)
{
	if (rule->ra == PMP_RA_UNDEFINED)
		count(BOTTOM, 1);
	else if (rule->cfa == PMP_CFA_SIGNAL)
		count(SIGNAL, 1);
	else if (rule->cfa == PMP_CFA_PLT)
		count(PLT, 1);
	else if (rule->cfa == PMP_CFA_DEREF)
		count(DEREF, 1);
	else if (rule->cfa == PMP_CFA_UNSUPPORTED)
		count(UNSUPPORTED, 1);
}

static int compare_row(const struct cfi_row *row, void *arg)
{
	const struct object *o = arg;
	struct pmp_rule rule = unwind_rules__from_row(row);
	struct cfi_row found = {.start = row->start, .end = row->end};

	count(ROWS, 1);
	count_kind(&rule);
	compare_at(o, row->start, &found);
	if (found.start != row->start || found.fde_start != row->fde_start)
		count(OVERLAPS, 1);
	compare_at(o, row->start + (row->end - row->start) / 2, &found);
	compare_at(o, row->end - 1, &found);
	return 0;
}

static void check_table(const struct object *o)
{
	uint64_t base = unwind_table__base(o->table);
	size_t n;
	const struct pmp_row *rows = unwind_table__rows(o->table, &n);

	count(TABLE_ROWS, n);
	count(RULES, o->n_rules);
	for (size_t i = 1; i < n; i++) {
		if (rows[i].pc <= rows[i - 1].pc)
			differ(o, base + rows[i].pc, "not ascending");
		if (rows[i].rule == rows[i - 1].rule)
			differ(o, base + rows[i].pc, "not merged");
	}
	if (rows[n - 1].rule || unwind_table__find(o->table, base + rows[n - 1].pc))
		differ(o, base + rows[n - 1].pc, "no end");
}

static bool find_eh_frame(Elf *elf, struct eh_frame_bytes *bytes)
{
	GElf_Ehdr ehdr;
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr) ||
	    ehdr.e_machine != EM_X86_64 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_type == ET_REL || elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		data = name && !strncmp(name, ".eh_frame", 9) ? elf_rawdata(scn, NULL) : NULL;
		if (!data || !data->d_buf)
			continue;
		if (!strcmp(name, ".eh_frame")) {
			bytes->eh_frame = data->d_buf;
			bytes->eh_frame_len = data->d_size;
			bytes->eh_frame_addr = shdr.sh_addr;
		} else if (!strcmp(name, ".eh_frame_hdr")) {
			bytes->hdr = data->d_buf;
			bytes->hdr_len = data->d_size;
			bytes->hdr_addr = shdr.sh_addr;
		}
	}
	return bytes->eh_frame != NULL;
}

static void compare_object(const char *path, const struct eh_frame_bytes *bytes)
{
	struct object o = {.path = path, .eh = eh_frame__new(bytes)};

	o.rules = unwind_rules__new(MAX_RULES);
	if (!o.eh || !o.rules) {
		differ(&o, 0, "no .eh_frame, or no memory");
		goto out;
	}
	o.table = unwind_table__new(o.eh, o.rules);
	if (!o.table) {
		if (errno == ENODATA)
			count(WITHOUT_ROWS, 1);
		else
			differ(&o, 0, strerror(errno));
		goto out;
	}
	count(OBJECTS, 1);
	o.all = unwind_rules__all(o.rules, &o.n_rules);
	eh_frame__each_row(o.eh, compare_row, &o, NULL);
	check_table(&o);
out:
	unwind_table__free(o.table);
	unwind_rules__free(o.rules);
	eh_frame__free(o.eh);
}

static void compare_file(const char *path)
{
	struct eh_frame_bytes bytes = {.eh_frame = NULL};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);

	if (elf && find_eh_frame(elf, &bytes))
		compare_object(path, &bytes);
	else
		count(OTHER, 1);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

static char **read_names(size_t *ret_n)
{
	char **names = NULL, *line = NULL;
	size_t n = 0, size = 0;

	while (getdelim(&line, &size, '\0', stdin) > 0) {
		names = reallocarray(names, n + 1, sizeof(*names));
		if (!names)
			abort();
		names[n++] = line;
		line = NULL;
		size = 0;
	}
	*ret_n = n;
	return names;
}

int main(int argc, char **argv)
{
	size_t n = (size_t)argc - 1, i;
	char **names = n ? argv + 1 : read_names(&n);
	bool died = false;

	elf_version(EV_CURRENT);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned int worker = 0; worker < N_WORKERS; worker++) {
		pid_t pid = fork();

		if (pid < 0)
			return 2;
		if (pid > 0)
			continue;
		while ((i = atomic_fetch_add(&shared->next, 1)) < n)
			compare_file(names[i]);
		fflush(stdout);
		_exit(0);
	}
	for (unsigned int worker = 0; worker < N_WORKERS; worker++) {
		int status;

		if (wait(&status) < 0 || status != 0)
			died = true;
	}
	for (i = 0; i < N_COUNTS; i++)
		printf("%12lu %s\n", atomic_load(&shared->counts[i]), count_names[i]);
	if (died)
		printf("a worker died\n");
	return died || atomic_load(&shared->counts[DIFFERENCES]) ||
	       !atomic_load(&shared->counts[OBJECTS]);
}
