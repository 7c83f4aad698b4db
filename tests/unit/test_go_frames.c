// SPDX-License-Identifier: GPL-2.0-or-later
/* What unwinds Go programs: .debug_frame, however it is stored, and what is known of the runtime.
 */
#include "capture/go_frames.h"
#include "unwind/table.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#define TEXT 0x401000ULL

/* An ELF file: .text at TEXT, loaded, and what is added to it. */
struct image {
	uint8_t bytes[1 << 16];
	size_t len;
	Elf64_Shdr sections[8];
	size_t n;
	char names[256];
	size_t names_len;
};

static size_t put(struct image *m, const void *bytes, size_t len)
{
	size_t at = m->len;

	assert_true(len <= sizeof(m->bytes) - at);
	memcpy(m->bytes + at, bytes, len);
	m->len += len;
	return at;
}

static Elf64_Shdr *add(struct image *m, const char *name, uint32_t type, const void *bytes,
		       size_t len)
{
	Elf64_Shdr *s = &m->sections[m->n++];

	*s = (Elf64_Shdr){
		.sh_name = (uint32_t)m->names_len,
		.sh_type = type,
		.sh_offset = put(m, bytes, len),
		.sh_size = len,
	};
	memcpy(m->names + m->names_len, name, strlen(name) + 1);
	m->names_len += strlen(name) + 1;
	return s;
}

static struct image *image__new(const uint8_t *code, size_t code_len)
{
	struct image *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->len = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
	m->n = m->names_len = 1;
	add(m, ".text", SHT_PROGBITS, code, code_len);
	return m;
}

/* The file is over the image's bytes. */
static struct elf_file *finish(struct image *m)
{
	Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	Elf64_Phdr load = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = m->sections[1].sh_offset,
		.p_vaddr = TEXT,
		.p_filesz = m->sections[1].sh_size,
		.p_memsz = m->sections[1].sh_size,
	};
	struct elf_file *f;

	add(m, ".shstrtab", SHT_STRTAB, m->names, sizeof(m->names));
	memcpy(m->bytes + m->sections[m->n - 1].sh_offset, m->names, sizeof(m->names));
	header.e_shnum = (uint16_t)m->n;
	header.e_shstrndx = (uint16_t)(m->n - 1);
	m->len = (m->len + 7) / 8 * 8;
	header.e_shoff = put(m, m->sections, m->n * sizeof(m->sections[0]));
	memcpy(m->bytes, &header, sizeof(header));
	memcpy(m->bytes + sizeof(header), &load, sizeof(load));
	f = elf_file__from_memory(m->bytes, m->len);
	assert_non_null(f);
	return f;
}

static const uint8_t plain[] = "what .debug_frame has in it, again and again and again and again";

/* How it is stored, and with what size in front. */
static int debug_frame(const char *name, uint64_t flags, uint32_t type, uint64_t size, size_t cut,
		       void **ret_bytes, size_t *ret_len)
{
	struct image *m = image__new(plain, sizeof(plain));
	uint8_t stored[256];
	uLongf len = sizeof(stored) - sizeof(Elf64_Chdr);
	struct elf_file *f;
	int err;

	if (flags) {
		Elf64_Chdr header = {.ch_type = type, .ch_size = size};

		memcpy(stored, &header, sizeof(header));
		assert_int_equal(compress(stored + sizeof(header), &len, plain, sizeof(plain)),
				 Z_OK);
		len += sizeof(header);
	} else if (size) {
		size = htobe64(size);
		memcpy(stored, "ZLIB", 4);
		memcpy(stored + 4, &size, 8);
		assert_int_equal(compress(stored + 12, &len, plain, sizeof(plain)), Z_OK);
		len += 12;
	} else {
		memcpy(stored, plain, sizeof(plain));
		len = sizeof(plain);
	}
	add(m, name, SHT_PROGBITS, stored, len - cut)->sh_flags = flags;
	f = finish(m);
	err = elf_file__debug_frame(f, ret_bytes, ret_len);
	elf_file__free(f);
	free(m);
	return err;
}

static void test_debug_frame(void **state)
{
	static const struct {
		const char *name;
		uint64_t flags;
		uint32_t type;
		uint64_t size;
		size_t cut;
		int err;
	} cases[] = {
		{".debug_frame", 0, 0, 0, 0, 0},
		{".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, sizeof(plain), 0, 0},
		{".zdebug_frame", 0, 0, sizeof(plain), 0, 0},
		{".debug_info", 0, 0, 0, 0, -ENOENT},
		{".debug_frame", SHF_COMPRESSED, 77, sizeof(plain), 0, -EINVAL},
		{".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, sizeof(plain), 1, -EINVAL},
		{".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, sizeof(plain) - 1, 0, -EINVAL},
		{".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, sizeof(plain) + 1, 0, -EINVAL},
		{".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, 0, 0, -EFBIG},
		/* more than zlib could make of it, and more than we want */
		{".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, 1 << 20, 0, -EFBIG},
		{".debug_frame", SHF_COMPRESSED, ELFCOMPRESS_ZLIB, UINT64_MAX, 0, -EFBIG},
		{".zdebug_frame", 0, 0, sizeof(plain), 9, -EINVAL},
		{".zdebug_frame", 0, 0, UINT64_MAX, 0, -EFBIG},
		{".zdebug_frame", 0, 0, 0, 0, -EINVAL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		void *bytes = NULL;
		size_t len = 0;
		int err = debug_frame(cases[i].name, cases[i].flags, cases[i].type, cases[i].size,
				      cases[i].cut, &bytes, &len);

		if (err != cases[i].err)
			fail_msg("case %zu: %d", i, err);
		if (!err) {
			assert_int_equal(len, sizeof(plain));
			assert_memory_equal(bytes, plain, len);
		}
		free(bytes);
	}
}

/* sub $0x18,%rsp; mov %rbp,0x10(%rsp); lea 0x10(%rsp),%rbp; mov %rsp,%r12: Go 1.19's */
#define OLD                                                                                        \
	0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48, 0x8d, 0x6c, 0x24, 0x10, 0x49,  \
		0x89, 0xe4
/* push %rbp; mov %rsp,%rbp; sub $0x10,%rsp; mov %rsp,%r12: Go 1.21's */
#define NEW 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x49, 0x89, 0xe4

enum {
	AT_OLD = 0,
	AT_NEW = 0x40,
	AT_GOEXIT = 0x80,
	AT_MSTART = 0xa0,
	AT_SIGRETURN = 0xc0,
	AT_OTHER = 0xe0,
	AT_END = 0x100
};

static const uint8_t text[AT_END] = {
	[AT_OLD] = OLD, [AT_NEW] = NEW, [AT_GOEXIT] = 0x90, 0xe8, [AT_MSTART] = 0xe8,
};

static struct eh_frame *go(const char *pclntab)
{
	static const char strings[] = "\0runtime.nanotime1.abi0\0time.now\0runtime.goexit.abi0\0"
				      "runtime.mstart\0runtime.sigreturn\0runtime.goexits";
	const Elf64_Sym symbols[] = {
		{0},
		{1, STT_FUNC, 0, 1, TEXT + AT_OLD, 0x40},
		{24, STT_FUNC, 0, 1, TEXT + AT_NEW, 0x40},
		{33, STT_FUNC, 0, 1, TEXT + AT_GOEXIT, 0x20},
		{53, STT_FUNC, 0, 1, TEXT + AT_MSTART, 0x20},
		{68, STT_FUNC, 0, 1, TEXT + AT_SIGRETURN, 0x20},
		{86, STT_FUNC, 0, 1, TEXT + AT_OTHER, 0x20},
		{5000, STT_FUNC, 0, 1, TEXT, 0x100},
	};
	struct image *m = image__new(text, sizeof(text));
	struct eh_frame *eh;
	struct elf_file *f;
	Elf64_Shdr *s;

	add(m, pclntab, SHT_PROGBITS, "", 1);
	add(m, ".strtab", SHT_STRTAB, strings, sizeof(strings));
	m->len = (m->len + 7) / 8 * 8;
	s = add(m, ".symtab", SHT_SYMTAB, symbols, sizeof(symbols));
	s->sh_entsize = sizeof(Elf64_Sym);
	s->sh_link = 3;
	f = finish(m);
	eh = go_frames__new(f);
	elf_file__free(f);
	free(m);
	return eh;
}

static void expect_cfa(struct eh_frame *eh, uint64_t at, unsigned int reg, int64_t offset)
{
	struct cfi_row row;

	assert_int_equal(eh_frame__find_row(eh, TEXT + at, &row), 0);
	assert_int_equal(row.cfa.kind, CFI_REGISTER);
	assert_int_equal(row.cfa.reg, reg);
	assert_int_equal(row.cfa.offset, offset);
	assert_int_equal(row.regs[CFI_RA].kind, CFI_OFFSET);
	assert_int_equal(row.regs[CFI_RA].offset, -8);
	if (reg == CFI_R12) {
		assert_int_equal(row.regs[CFI_RBP].kind, CFI_OFFSET);
		assert_int_equal(row.regs[CFI_RBP].offset, -16);
	}
}

static void test_runtime(void **state)
{
	struct eh_frame *eh = go(".gopclntab");
	struct cfi_row row;
	struct pmp_rule rule;

	assert_non_null(eh);
	expect_cfa(eh, AT_OLD, CFI_RSP, 8);
	expect_cfa(eh, AT_OLD + 3, CFI_RSP, 8);
	expect_cfa(eh, AT_OLD + 4, CFI_RSP, 0x20);
	expect_cfa(eh, AT_OLD + 16, CFI_RSP, 0x20);
	expect_cfa(eh, AT_OLD + 17, CFI_R12, 0x20);
	expect_cfa(eh, AT_OLD + 0x3f, CFI_R12, 0x20);
	expect_cfa(eh, AT_NEW, CFI_RSP, 8);
	expect_cfa(eh, AT_NEW + 1, CFI_RSP, 16);
	expect_cfa(eh, AT_NEW + 7, CFI_RSP, 16);
	expect_cfa(eh, AT_NEW + 8, CFI_RSP, 0x20);
	expect_cfa(eh, AT_NEW + 11, CFI_R12, 0x20);
	expect_cfa(eh, AT_MSTART + 5, CFI_RSP, 8);
	assert_int_equal(eh_frame__find_row(eh, TEXT + AT_GOEXIT, &row), 0);
	assert_int_equal(row.regs[CFI_RA].kind, CFI_UNDEFINED);
	assert_int_equal(row.fde_start, TEXT + AT_GOEXIT);
	/* a handler returns to its first byte, and is looked up by the one before */
	assert_int_equal(eh_frame__find_row(eh, TEXT + AT_SIGRETURN - 1, &row), 0);
	assert_true(row.signal_frame);
	rule = unwind_rules__from_row(&row);
	assert_int_equal(rule.cfa, PMP_CFA_SIGNAL);
	assert_int_equal(rule.cfa_reg, CFI_RSP);
	assert_int_equal(rule.cfa_offset, 40);
	/* a longer name is another function's */
	assert_int_equal(eh_frame__find_row(eh, TEXT + AT_OTHER, &row), -ENOENT);
	eh_frame__free(eh);
	eh = go(".data.rel.ro.gopclntab");
	assert_non_null(eh);
	eh_frame__free(eh);
	/* a program of another language may have such names, too */
	assert_null(go(".rodata"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
