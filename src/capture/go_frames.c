// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/go_frames.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SYMBOLS  (4u << 20)
#define MAX_NAMES    (256u << 20)
#define CHUNK	     512
#define MAX_FRAMES   32
#define MAX_PROLOGUE 24

/*
 * Nothing called these on the stack that they are on: it begins with them, or they have switched to
 * it. What lies above was not cleared, so it need not be zero.
 */
static const char *const ends[] = {
	"runtime.clone",  "runtime.goexit",    "runtime.mcall",
	"runtime.rt0_go", "runtime.morestack", "runtime.systemstack",
};

/* These go over to another stack to call the vDSO; the pointer to their own stays in r12. */
static const char *const switches[] = {"runtime.nanotime1", "runtime.walltime", "time.now"};

/* A thread's first function but runtime.clone. */
static const char *const starts[] = {"runtime.mstart"};

/* What signal handlers return to: the interrupted registers are there. */
static const char *const sigreturns[] = {"runtime.sigreturn", "runtime.sigreturn__sigaction"};

/* Two CIEs in .debug_frame's form: CFA = rsp + 8, RA at CFA - 8; a signal frame. */
static const uint8_t cies[] = {
	14,   0,      0,    0,	     0xff, 0xff,	  0xff, 0xff, 3,    0,	    1,
	0x78, CFI_RA, 0x0c, CFI_RSP, 8,	   0x80 | CFI_RA, 1,	10,   0,    0,	    0,
	0xff, 0xff,   0xff, 0xff,    3,	   'S',		  0,	1,    0x78, CFI_RA,
};
enum { CIE_USUAL = 0, CIE_SIGNAL = 18 };

/* Where the kernel saves registers from rsp + 40 on, which is struct sigcontext. */
static const uint8_t sigcontext[] = {
	CFI_R8,	 CFI_R9,  CFI_R10, CFI_R11, CFI_R12, CFI_R13, CFI_R14, CFI_R15, CFI_RDI,
	CFI_RSI, CFI_RBP, CFI_RBX, CFI_RDX, CFI_RAX, CFI_RCX, CFI_RSP, CFI_RA,
};

struct fde {
	uint32_t len, cie;
	uint64_t start, code_len;
	uint8_t program[112]; /* what is not used is 0, which does nothing */
};

struct builder {
	const struct elf_file *file;
	uint8_t *bytes;
	size_t len;
};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(names[i]);

		/* what follows says by which convention it is called */
		if (!strncmp(name, names[i], len) && (!name[len] || !strcmp(name + len, ".abi0")))
			return true;
	}
	return false;
}

static void add_frame(struct builder *b, const Elf64_Sym *sym, uint32_t cie, const uint8_t *program,
		      size_t len)
{
	/* a handler's return address is the first byte, and is looked up by the one before it */
	bool signal = cie == CIE_SIGNAL;
	struct fde fde = {
		.len = sizeof(fde) - sizeof(fde.len),
		.cie = cie,
		.start = sym->st_value - signal,
		.code_len = sym->st_size + signal,
	};

	if (!sym->st_size || b->len + sizeof(fde) > sizeof(cies) + MAX_FRAMES * sizeof(fde))
		return;
	if (len)
		memcpy(fde.program, program, len);
	memcpy(b->bytes + b->len, &fde, sizeof(fde));
	b->len += sizeof(fde);
}

static void add_end(struct builder *b, const Elf64_Sym *sym)
{
	add_frame(b, sym, CIE_USUAL, (const uint8_t[]){0x07, CFI_RA}, 2);
}

/* It does nothing but call: of use where .debug_frame was left out, for it has no frame pointer. */
static void add_start(struct builder *b, const Elf64_Sym *sym)
{
	struct elf_range range;
	uint8_t first;

	if (!elf_file__at_address(b->file, sym->st_value, &range) &&
	    !elf_file__read(b->file, range.offset, &first, 1) && first == 0xe8)
		add_frame(b, sym, CIE_USUAL, NULL, 0);
}

static void add_sigreturn(struct builder *b, const Elf64_Sym *sym)
{
	/* the CFA is the word at rsp + 160 */
	uint8_t program[sizeof(((struct fde *)0)->program)] = {0x0f, 4, 0x77, 0xa0, 1, 0x06};
	size_t len = 6;

	for (size_t i = 0; i < sizeof(sigcontext); i++) {
		unsigned int offset = 40 + 8 * (unsigned int)i;
		uint8_t rule[] = {0x10, sigcontext[i],		3,
				  0x77, 0x80 | (offset & 0x7f), (uint8_t)(offset >> 7)};

		memcpy(program + len, rule, sizeof(rule));
		len += sizeof(rule);
	}
	add_frame(b, sym, CIE_SIGNAL, program, len);
}

/* The frame is made by `sub $IMM,%rsp`, since Go 1.21 after `push %rbp; mov %rsp,%rbp`. */
static void add_switch(struct builder *b, const Elf64_Sym *sym)
{
	static const uint8_t push[] = {0x55, 0x48, 0x89, 0xe5}, sub[] = {0x48, 0x83, 0xec},
			     keep[] = {0x49, 0x89, 0xe4}; /* mov %rsp,%r12 */
	uint8_t code[MAX_PROLOGUE], frame, pushed = 0, at;
	const uint8_t *kept;
	struct elf_range range;

	if (sym->st_size < sizeof(code) || elf_file__at_address(b->file, sym->st_value, &range) ||
	    range.len < sizeof(code) || elf_file__read(b->file, range.offset, code, sizeof(code)))
		return;
	if (!memcmp(code, push, sizeof(push)))
		pushed = sizeof(push);
	kept = memmem(code, sizeof(code), keep, sizeof(keep));
	at = pushed + sizeof(sub) + 1; /* behind `sub` and its operand */
	if (memcmp(code + pushed, sub, sizeof(sub)) != 0 || !kept || kept < code + at)
		return;
	frame = code[at - 1];
	if (frame < 8 || frame > 0x60)
		return;
	frame += pushed ? 16 : 8;
	add_frame(b, sym, CIE_USUAL,
		  (const uint8_t[]){
			  0x40 | (pushed ? 1 : 0),
			  0x0e,
			  pushed ? 16 : 8, /* push */
			  0x40 | (uint8_t)(at - (pushed ? 1 : 0)),
			  0x0e,
			  frame, /* sub */
			  /* rbp has been saved; then r12 is there */
			  0x40 | (uint8_t)(kept - code - at),
			  0x80 | CFI_RBP,
			  2,
			  0x40 | sizeof(keep),
			  0x0d,
			  CFI_R12,
		  },
		  12);
}

static void add_symbol(struct builder *b, const Elf64_Sym *sym, const char *name)
{
	if (is_one_of(name, ends, sizeof(ends) / sizeof(ends[0])))
		add_end(b, sym);
	else if (is_one_of(name, switches, sizeof(switches) / sizeof(switches[0])))
		add_switch(b, sym);
	else if (is_one_of(name, sigreturns, sizeof(sigreturns) / sizeof(sigreturns[0])))
		add_sigreturn(b, sym);
	else if (is_one_of(name, starts, sizeof(starts) / sizeof(starts[0])))
		add_start(b, sym);
}

static void add_symbols(struct builder *b, const Elf64_Shdr *symbols, const char *names,
			size_t names_len)
{
	size_t n = symbols->sh_size / sizeof(Elf64_Sym);
	Elf64_Sym chunk[CHUNK];

	if (n > MAX_SYMBOLS)
		n = MAX_SYMBOLS;
	for (size_t at = 0; at < n; at += CHUNK) {
		size_t len = n - at < CHUNK ? n - at : CHUNK;

		if (elf_file__read(b->file, symbols->sh_offset + at * sizeof(*chunk), chunk,
				   len * sizeof(*chunk)))
			return;
		for (size_t i = 0; i < len; i++) {
			if (ELF64_ST_TYPE(chunk[i].st_info) == STT_FUNC &&
			    chunk[i].st_name < names_len)
				add_symbol(b, &chunk[i], names + chunk[i].st_name);
		}
	}
}

/* Returns .symtab, or NULL where this is no Go program. */
static const Elf64_Shdr *find_symbols(const struct elf_section *sections, size_t n)
{
	const Elf64_Shdr *symbols = NULL;
	bool is_go = false;

	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i].shdr;

		is_go |= !strcmp(sections[i].name, ".gopclntab") ||
			 !strcmp(sections[i].name, ".data.rel.ro.gopclntab");
		if (s->sh_type == SHT_SYMTAB && s->sh_entsize == sizeof(Elf64_Sym) &&
		    s->sh_link < n && sections[s->sh_link].shdr.sh_type == SHT_STRTAB)
			symbols = s;
	}
	return is_go ? symbols : NULL;
}

struct eh_frame *go_frames__new(const struct elf_file *file)
{
	const struct elf_section *sections;
	const Elf64_Shdr *symbols;
	struct builder b = {.file = file, .len = sizeof(cies)};
	struct eh_frame_bytes bytes = {.is_debug_frame = true};
	uint64_t names_len;
	size_t n;
	void *names;

	sections = elf_file__sections(file, &n);
	symbols = find_symbols(sections, n);
	if (!symbols)
		return NULL;
	names_len = sections[symbols->sh_link].shdr.sh_size;
	if (elf_file__read_alloc(file, sections[symbols->sh_link].shdr.sh_offset, names_len,
				 MAX_NAMES, &names))
		return NULL;
	b.bytes = malloc(sizeof(cies) + MAX_FRAMES * sizeof(struct fde));
	if (b.bytes) {
		memcpy(b.bytes, cies, sizeof(cies));
		add_symbols(&b, symbols, names, names_len);
		bytes.eh_frame = bytes.owned = b.bytes;
		bytes.eh_frame_len = b.len;
	}
	free(names);
	return b.bytes ? eh_frame__new(&bytes) : NULL;
}
