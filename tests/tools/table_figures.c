// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * table_figures: what the samplers' unwind tables of some objects cost, and what they cannot say.
 *   usage: table_figures FILE...
 * One set of rules for all, as for a process that has them mapped. Times are the best of 20 runs,
 * the rules known beforehand for all but the first: "parse" of eh_frame__each_row() alone, "table"
 * of unwind_table__new().
 */
#include "unwind/table.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RUNS	   20
#define MAX_SHAPES 1000

static const char *const reg_names[CFI_N_REGS] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
						  "rbp", "rsp", "r8",  "r9",  "r10", "r11",
						  "r12", "r13", "r14", "r15", "ra"};

/* Rows that lose something, by what their rules look like. */
struct shape {
	char text[400];
	size_t n;
	uint64_t bytes; /* of code */
	uint64_t example;
};

struct shapes {
	struct shape shapes[MAX_SHAPES];
	size_t n;
};

struct object {
	size_t rows, unsupported, lost;
	uint64_t unsupported_bytes;
	struct shapes *unsupported_shapes, *lost_shapes;
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void append(char *text, size_t size, const char *what)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s", what);
}

static void describe(const struct cfi_rule *rule, const char *name, char *text, size_t size)
{
	char what[96];

	snprintf(what, sizeof(what), " %s=", name);
	append(text, size, what);
	switch (rule->kind) {
	case CFI_UNSPECIFIED:
		append(text, size, "none");
		break;
	case CFI_UNDEFINED:
		append(text, size, "undefined");
		break;
	case CFI_SAME:
		append(text, size, "same");
		break;
	case CFI_OFFSET:
		append(text, size, rule->offset == (int16_t)rule->offset ? "offset" : "far");
		break;
	case CFI_VAL_OFFSET:
		append(text, size, "val_offset");
		break;
	case CFI_REGISTER:
		snprintf(what, sizeof(what), "%s%s", reg_names[rule->reg],
			 rule->offset == (int32_t)rule->offset ? "" : "+far");
		append(text, size, what);
		break;
	default:
		append(text, size, rule->kind == CFI_EXPRESSION ? "expr" : "val_expr");
		for (uint32_t i = 0; i < rule->expr_len && i < 20; i++) {
			snprintf(what, sizeof(what), " %02x", rule->expr[i]);
			append(text, size, what);
		}
	}
}

static void note(struct shapes *shapes, const struct cfi_row *row, const char *text)
{
	size_t i = 0;

	while (i < shapes->n && strcmp(shapes->shapes[i].text, text) != 0)
		i++;
	if (i == MAX_SHAPES)
		return;
	if (i == shapes->n) {
		shapes->n++;
		shapes->shapes[i].example = row->start;
		snprintf(shapes->shapes[i].text, sizeof(shapes->shapes[i].text), "%s", text);
	}
	shapes->shapes[i].n++;
	shapes->shapes[i].bytes += row->end - row->start;
}

static int see_row(const struct cfi_row *row, void *arg)
{
	static const uint8_t saved[PMP_N_SAVED] = {CFI_RBX, CFI_RBP, CFI_R12, CFI_R13,
						   CFI_R14, CFI_R15, CFI_RSP};
	struct object *o = arg;
	struct pmp_rule rule = unwind_rules__from_row(row);
	char text[400] = "";

	o->rows++;
	if (rule.cfa == PMP_CFA_UNSUPPORTED) {
		o->unsupported++;
		o->unsupported_bytes += row->end - row->start;
		describe(&row->cfa, "cfa", text, sizeof(text));
		describe(&row->regs[CFI_RA], "ra", text, sizeof(text));
		describe(&row->regs[CFI_RSP], "rsp", text, sizeof(text));
		note(o->unsupported_shapes, row, text);
		return 0;
	}
	if (rule.cfa == PMP_CFA_SIGNAL || rule.ra == PMP_RA_UNDEFINED)
		return 0;
	for (size_t i = 0; i < PMP_N_SAVED; i++) {
		if (rule.saved[i] == PMP_SAVED_LOST)
			describe(&row->regs[saved[i]], reg_names[saved[i]], text, sizeof(text));
	}
	if (row->regs[CFI_RSP].kind != CFI_UNSPECIFIED)
		describe(&row->regs[CFI_RSP], "(not lost) rsp", text, sizeof(text));
	if (text[0]) {
		o->lost++;
		note(o->lost_shapes, row, text);
	}
	return 0;
}

static int see_nothing(const struct cfi_row *row, void *arg)
{
	return 0;
}

static bool find_sections(Elf *elf, struct eh_frame_bytes *bytes)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (!name || strcmp(name, ".eh_frame") != 0)
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		bytes->eh_frame = data->d_buf;
		bytes->eh_frame_len = data->d_size;
		bytes->eh_frame_addr = shdr.sh_addr;
	}
	return bytes->eh_frame != NULL;
}

static void print_shapes(const char *what, const struct shapes *shapes)
{
	for (size_t i = 0; i < shapes->n; i++)
		printf("  %s: %zu rows, %lu bytes of code, first at %#lx:%s\n", what,
		       shapes->shapes[i].n, (unsigned long)shapes->shapes[i].bytes,
		       (unsigned long)shapes->shapes[i].example, shapes->shapes[i].text);
}

static size_t total_rows, total_table_rows;
static double total_parse, total_table;

static void figures(const char *path, Elf *elf, struct unwind_rules *rules)
{
	struct eh_frame_bytes bytes = {.eh_frame = NULL};
	struct object o = {.rows = 0};
	struct eh_frame *eh;
	double parse = 1e9, table = 1e9, first = 0;
	size_t n = 0, n_rules, rules_before;

	unwind_rules__all(rules, &rules_before);
	eh = find_sections(elf, &bytes) ? eh_frame__new(&bytes) : NULL;
	o.unsupported_shapes = calloc(1, sizeof(*o.unsupported_shapes));
	o.lost_shapes = calloc(1, sizeof(*o.lost_shapes));
	if (!eh || !o.unsupported_shapes || !o.lost_shapes) {
		printf("%s: no .eh_frame\n", path);
		goto out;
	}
	for (int run = 0; run < RUNS; run++) {
		double t0 = now_ms(), t1, t2;
		struct unwind_table *t;

		eh_frame__each_row(eh, see_nothing, NULL, NULL);
		t1 = now_ms();
		t = unwind_table__new(eh, rules);
		t2 = now_ms();
		if (!t) {
			printf("%s: no table: %s\n", path, strerror(errno));
			goto out;
		}
		if (!run)
			first = t2 - t1;
		parse = t1 - t0 < parse ? t1 - t0 : parse;
		table = t2 - t1 < table ? t2 - t1 : table;
		unwind_table__rows(t, &n);
		unwind_table__free(t);
	}
	unwind_rules__all(rules, &n_rules);
	eh_frame__each_row(eh, see_row, &o, NULL);
	printf("%s: parse %.2f ms, table %.2f ms (first %.2f); %zu rows of .eh_frame, %zu of the "
	       "table, %zu bytes, %zu new rules; unsupported: %zu rows, %lu bytes of code; with a "
	       "lost register: %zu rows\n",
	       path, parse, table, first, o.rows, n, n * sizeof(struct pmp_row),
	       n_rules - rules_before, o.unsupported, (unsigned long)o.unsupported_bytes, o.lost);
	print_shapes("unsupported", o.unsupported_shapes);
	print_shapes("lost", o.lost_shapes);
	total_rows += o.rows;
	total_table_rows += n;
	total_parse += parse;
	total_table += table;
out:
	free(o.unsupported_shapes);
	free(o.lost_shapes);
	eh_frame__free(eh);
}

int main(int argc, char **argv)
{
	struct unwind_rules *rules = unwind_rules__new(65536);
	size_t n_rules;

	elf_version(EV_CURRENT);
	if (!rules)
		return 1;
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);

		figures(argv[i], elf, rules);
		elf_end(elf);
		if (fd >= 0)
			close(fd);
	}
	unwind_rules__all(rules, &n_rules);
	printf("all %d: parse %.2f ms, table %.2f ms; %zu rows of .eh_frame, %zu of the tables, "
	       "%zu bytes, %zu rules of %zu bytes\n",
	       argc - 1, total_parse, total_table, total_rows, total_table_rows,
	       total_table_rows * sizeof(struct pmp_row), n_rules,
	       n_rules * sizeof(struct pmp_rule));
	unwind_rules__free(rules);
	return 0;
}
