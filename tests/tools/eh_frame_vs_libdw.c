// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * eh_frame_vs_libdw: compares every row of every FDE of every object with libdw's.
 *   usage: eh_frame_vs_libdw FILE...          or: find DIR -type f -print0 | eh_frame_vs_libdw
 * Both sides are walked in step, so that an FDE or a row boundary that only one of them has is a
 * difference too; at each row's first and last address eh_frame__find_row() is asked as well.
 * Exits 1 on any difference.
 *
 * What libdw says otherwise, by its source (0.188), is put in its terms here and counted:
 * - It starts from defaults of its own: rax (meant is rbx, but DWARF's number 0 is rax), rbp,
 *   r12-r15 and the return address "same value", rsp = CFA, others undefined. What we call
 *   unspecified must be exactly that.
 * - DW_CFA_restore_state gives back the start of the row in which DW_CFA_remember_state stood.
 *   The row's end is right. Counted: "stale starts".
 * - DW_CFA_def_cfa_register and _offset after an expression: libdw has no CFA then. GCC's unwinder
 *   and gdb keep the other half from before the expression, and so do we.
 * - A rule "in register n" with n a vector register: undefined for us.
 */
#include "unwind/eh_frame.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
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

#define N_WORKERS	  2
#define MAX_PRINTED	  20
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

enum count {
	OBJECTS,
	FDES,
	EMPTY_FDES,
	ROWS,
	EXPRESSION_ROWS,
	STALE_STARTS,
	VECTOR_REGISTERS,
	REFUSED_CFAS,
	MALFORMED,
	NOT_ELF,
	OTHER_MACHINE,
	RELOCATABLE,
	NO_EH_FRAME,
	UNREADABLE,
	DIFFERENCES,
	N_COUNTS
};

static const char *const count_names[N_COUNTS] = {
	[OBJECTS] = "objects compared",
	[FDES] = "FDEs",
	[EMPTY_FDES] = "FDEs that cover nothing",
	[ROWS] = "rows",
	[EXPRESSION_ROWS] = "rows with expressions",
	[STALE_STARTS] = "rows whose start libdw has from before remember_state",
	[VECTOR_REGISTERS] = "rules that lead to vector registers",
	[REFUSED_CFAS] = "rows whose CFA libdw refuses: a register put in for an expression",
	[MALFORMED] = "malformed FDEs",
	[NOT_ELF] = "skipped: not ELF",
	[OTHER_MACHINE] = "skipped: not x86-64",
	[RELOCATABLE] = "skipped: not linked (addresses are not known yet)",
	[NO_EH_FRAME] = "skipped: no .eh_frame",
	[UNREADABLE] = "skipped: unreadable",
	[DIFFERENCES] = "differences",
};

struct shared {
	atomic_size_t next; /* file to take */
	atomic_ulong counts[N_COUNTS];
};

static struct shared *shared;

static void count(enum count what)
{
	atomic_fetch_add_explicit(&shared->counts[what], 1, memory_order_relaxed);
}

/* One object under comparison. */
struct object {
	const char *path;
	Elf *elf;
	struct eh_frame *eh;
	Dwarf_CFI *cfi;
	const unsigned char *ident;
	Elf_Data *data; /* .eh_frame */
	uint64_t addr;
	Dwarf_Off next;	      /* of libdw's walk over the section */
	uint64_t pc, end;     /* what libdw's current FDE still has to give */
	uint64_t highest_end; /* of all FDEs so far */
	uint64_t fde_start;
};

static void differ(const struct object *o, uint64_t pc, const char *what)
{
	unsigned long n = atomic_fetch_add(&shared->counts[DIFFERENCES], 1);

	if (n < MAX_PRINTED)
		printf("%s: %#lx: %s\n", o->path, (unsigned long)pc, what);
}

/* An independent look at an FDE's range; false: encoded as no linker's output is. */
static bool fde_range(const struct object *o, const Dwarf_FDE *fde, uint64_t *ret_start,
		      uint64_t *ret_end)
{
	Dwarf_CFI_Entry cie;
	Dwarf_Off next;
	const uint8_t *aug, *p = fde->start;
	uint8_t encoding = DW_EH_PE_absptr;
	uint64_t addr = o->addr + (uint64_t)(p - (const uint8_t *)o->data->d_buf);

	if (dwarf_next_cfi(o->ident, o->data, true, fde->CIE_pointer, &next, &cie) ||
	    !dwarf_cfi_cie_p(&cie))
		return false;
	aug = cie.cie.augmentation_data;
	for (const char *c = cie.cie.augmentation; *c; c++) {
		if (*c == 'R')
			encoding = *aug++;
		else if (*c == 'L')
			aug++;
		else if (*c == 'P')
			aug += 1 + ((*aug & 0x07) == 0x03 ? 4 : (*aug & 0x07) == 0x02 ? 2 : 8);
	}
	if ((encoding & 0xf) == DW_EH_PE_sdata4 || (encoding & 0xf) == DW_EH_PE_udata4) {
		int32_t value[2];

		memcpy(value, p, sizeof(value));
		*ret_start = (encoding & 0xf) == DW_EH_PE_sdata4 ? (uint64_t)(int64_t)value[0]
								 : (uint32_t)value[0];
		*ret_end = (uint32_t)value[1];
	} else {
		memcpy(ret_start, p, 8);
		memcpy(ret_end, p + 8, 8);
	}
	if (encoding & DW_EH_PE_pcrel)
		*ret_start += addr;
	*ret_end += *ret_start;
	return true;
}

/* Move libdw's side to its next FDE that covers something. Returns false at the end. */
static bool next_fde(struct object *o)
{
	for (;;) {
		Dwarf_Off offset = o->next;
		Dwarf_CFI_Entry entry;
		int status = dwarf_next_cfi(o->ident, o->data, true, offset, &o->next, &entry);

		if (status > 0)
			return false;
		if (status < 0) {
			differ(o, offset, "libdw does not read the entry at this offset");
			if (o->next == offset)
				return false;
			continue;
		}
		if (dwarf_cfi_cie_p(&entry))
			continue;
		count(FDES);
		if (!fde_range(o, &entry.fde, &o->pc, &o->end)) {
			differ(o, offset, "the tool does not read the FDE at this offset");
			continue;
		}
		o->fde_start = o->pc;
		if (o->pc < o->end)
			return true;
		count(EMPTY_FDES);
	}
}

static bool same_rule(const struct cfi_rule *a, const struct cfi_rule *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->offset == b->offset &&
	       a->expr == b->expr && a->expr_len == b->expr_len;
}

static bool same_row(const struct cfi_row *a, const struct cfi_row *b)
{
	if (a->start != b->start || a->end != b->end || a->signal_frame != b->signal_frame ||
	    !same_rule(&a->cfa, &b->cfa))
		return false;
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++) {
		if (!same_rule(&a->regs[reg], &b->regs[reg]))
			return false;
	}
	return true;
}

static bool same_cfa(const struct cfi_rule *ours, const Dwarf_Op *ops, size_t n_ops)
{
	switch (ours->kind) {
	case CFI_REGISTER:
		return n_ops == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == ours->reg &&
		       ops[0].number2 == (Dwarf_Word)ours->offset;
	case CFI_EXPRESSION:
		/* libdw's form of an expression; ours is the bytes: compare the first operation */
		return n_ops >= 1 && ours->expr_len && ops[0].atom == ours->expr[0];
	default:
		return n_ops == 0;
	}
}

/* The kind that libdw's ABI defaults give a register without a rule. */
static enum cfi_kind default_kind(unsigned int reg)
{
	switch (reg) {
	case CFI_RAX:
	case CFI_RBP:
	case CFI_R12:
	case CFI_R13:
	case CFI_R14:
	case CFI_R15:
	case CFI_RA:
		return CFI_SAME;
	case CFI_RSP:
		return CFI_VAL_OFFSET;
	default:
		return CFI_UNDEFINED;
	}
}

static bool same_register(const struct cfi_rule *ours, unsigned int reg, const Dwarf_Op *mem,
			  const Dwarf_Op *ops, size_t n)
{
	enum cfi_kind kind = ours->kind == CFI_UNSPECIFIED ? default_kind(reg) : ours->kind;
	bool value = n && ops[n - 1].atom == DW_OP_stack_value;
	bool simple = ops == mem;

	switch (kind) {
	case CFI_UNDEFINED:
		if (simple && n == 1 && ops[0].atom == DW_OP_regx && ops[0].number >= CFI_N_REGS) {
			count(VECTOR_REGISTERS);
			return true;
		}
		return simple && !n;
	case CFI_SAME:
		return !ops && !n;
	case CFI_OFFSET:
	case CFI_VAL_OFFSET:
		if (!simple || !n || ops[0].atom != DW_OP_call_frame_cfa ||
		    value != (kind == CFI_VAL_OFFSET))
			return false;
		n -= value;
		if (!ours->offset)
			return n == 1;
		return n == 2 && ops[1].atom == DW_OP_plus_uconst &&
		       ops[1].number == (Dwarf_Word)ours->offset;
	case CFI_REGISTER:
		return simple && n == 1 && ops[0].atom == DW_OP_regx && ops[0].number == ours->reg;
	case CFI_EXPRESSION:
	case CFI_VAL_EXPRESSION:
		/* libdw puts the CFA before the expression */
		return !simple && n >= 2 && ops[0].atom == DW_OP_call_frame_cfa && ours->expr_len &&
		       ops[1].atom == ours->expr[0] && value == (kind == CFI_VAL_EXPRESSION);
	default:
		return false;
	}
}

static bool has_expression(const struct cfi_row *row)
{
	if (row->cfa.kind == CFI_EXPRESSION)
		return true;
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++) {
		if (row->regs[reg].kind == CFI_EXPRESSION ||
		    row->regs[reg].kind == CFI_VAL_EXPRESSION)
			return true;
	}
	return false;
}

static void compare_rules(const struct object *o, const struct cfi_row *row, Dwarf_Frame *frame)
{
	Dwarf_Op *ops = NULL, mem[3];
	size_t n_ops = 0;
	char what[32];

	if (dwarf_frame_cfa(frame, &ops, &n_ops)) {
		if (row->cfa.kind == CFI_REGISTER)
			count(REFUSED_CFAS);
		else
			differ(o, row->start, "libdw has no CFA");
	} else if (!same_cfa(&row->cfa, ops, n_ops)) {
		differ(o, row->start, "CFA");
	}
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++) {
		if (!dwarf_frame_register(frame, (int)reg, mem, &ops, &n_ops) &&
		    same_register(&row->regs[reg], reg, mem, ops, n_ops))
			continue;
		snprintf(what, sizeof(what), "rule of register %u", reg);
		differ(o, row->start, what);
	}
}

static void compare_find_row(const struct object *o, const struct cfi_row *row)
{
	const uint64_t pcs[] = {row->start, row->end - 1};
	struct cfi_row found;

	for (size_t i = 0; i < ARRAY_SIZE(pcs); i++) {
		if (eh_frame__find_row(o->eh, pcs[i], &found))
			differ(o, pcs[i], "find_row finds nothing");
		else if (!same_row(&found, row))
			differ(o, pcs[i], "find_row and each_row differ");
	}
}

static void compare_with_libdw(const struct object *o, const struct cfi_row *row)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end;
	bool signal_frame;

	if (dwarf_cfi_addrframe(o->cfi, row->start, &frame)) {
		differ(o, row->start, dwarf_errmsg(-1));
		return;
	}
	if (dwarf_frame_info(frame, &start, &end, &signal_frame) != CFI_RA)
		differ(o, row->start, "return address column");
	if (signal_frame != row->signal_frame)
		differ(o, row->start, "signal frame");
	if (end != row->end)
		differ(o, row->start, "end of the row");
	if (start < row->start && start >= o->fde_start)
		count(STALE_STARTS);
	else if (start != row->start)
		differ(o, row->start, "start of the row");
	compare_rules(o, row, frame);
	free(frame);
}

static int compare_row(const struct cfi_row *row, void *arg)
{
	struct object *o = arg;

	count(ROWS);
	if (has_expression(row))
		count(EXPRESSION_ROWS);
	if (o->pc >= o->end) {
		o->pc = o->end = 0;
		if (!next_fde(o)) {
			differ(o, row->start, "libdw has no FDE here");
			return 0;
		}
	}
	if (o->pc != row->start || row->end > o->end) {
		differ(o, row->start, "libdw's FDE is another one here");
		while (o->pc != row->start && next_fde(o))
			;
	}
	o->pc = row->end;
	compare_find_row(o, row);
	compare_with_libdw(o, row);
	return 0;
}

static bool find_sections(struct object *o, struct eh_frame_bytes *bytes)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(o->elf, &names))
		return false;
	while ((scn = elf_nextscn(o->elf, scn))) {
		GElf_Shdr shdr;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(o->elf, names, shdr.sh_name);
		if (!name || strncmp(name, ".eh_frame", 9) != 0)
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		if (!strcmp(name, ".eh_frame")) {
			o->data = data;
			o->addr = shdr.sh_addr;
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

static void compare_object(struct object *o)
{
	struct eh_frame_bytes bytes = {.eh_frame = NULL};
	size_t malformed = 0;
	GElf_Ehdr ehdr;

	if (elf_kind(o->elf) != ELF_K_ELF || !gelf_getehdr(o->elf, &ehdr)) {
		count(NOT_ELF);
		return;
	}
	if (ehdr.e_machine != EM_X86_64 || ehdr.e_ident[EI_CLASS] != ELFCLASS64) {
		count(OTHER_MACHINE);
		return;
	}
	if (ehdr.e_type == ET_REL) {
		count(RELOCATABLE);
		return;
	}
	o->ident = (const unsigned char *)elf_getident(o->elf, NULL);
	if (!find_sections(o, &bytes)) {
		count(NO_EH_FRAME);
		return;
	}
	count(OBJECTS);
	o->cfi = dwarf_getcfi_elf(o->elf);
	o->eh = eh_frame__new(&bytes);
	if (!o->cfi || !o->eh) {
		differ(o, 0, o->cfi ? "libdw reads it, we do not" : "libdw does not read it");
		goto out;
	}
	eh_frame__each_row(o->eh, compare_row, o, &malformed);
	for (; malformed; malformed--)
		count(MALFORMED);
	if (o->pc < o->end)
		differ(o, o->pc, "libdw's FDE goes on here");
	o->pc = o->end = 0;
	while (next_fde(o))
		differ(o, o->pc, "only libdw has an FDE here");
out:
	eh_frame__free(o->eh);
	dwarf_cfi_end(o->cfi);
}

static void compare_file(const char *path)
{
	struct object o = {.path = path};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		count(UNREADABLE);
		return;
	}
	o.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (o.elf)
		compare_object(&o);
	else
		count(NOT_ELF);
	elf_end(o.elf);
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
	return died || atomic_load(&shared->counts[DIFFERENCES]);
}
