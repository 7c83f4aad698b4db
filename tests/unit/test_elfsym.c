// SPDX-License-Identifier: GPL-2.0-or-later
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "proc/elf_file.h"
#include "sym/debugfile.h"
#include "sym/elfsym.h"

#define F STT_FUNC
#define N STT_NOTYPE

struct symbol {
	const char *name;
	uint64_t value, size;
	int type, bind, section; /* section 1: [0x1000, 0x1800), 2: [0x1800, 0x2000) */
};

/* header, two segments, six sections, symbols, names: at fixed places */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Shdr sections[6];
	Elf64_Sym symbols[32];
	char names[512];
	char section_names[64];
	uint8_t note[36];
};

static const struct symbol standard[] = {
	{"plain", 0x1000, 0x10, F, STB_GLOBAL, 1},
	/* a hole: 0x1010-0x101f */
	{"alias_b", 0x1020, 0x10, F, STB_WEAK, 1},
	{"alias_a", 0x1020, 0x10, F, STB_GLOBAL, 1},
	{"zz_local", 0x1020, 0x10, F, STB_LOCAL, 1},
	{"outer", 0x1040, 0x40, F, STB_GLOBAL, 1},
	{"inner", 0x1050, 0x8, F, STB_GLOBAL, 1},
	{"no_size", 0x1090, 0, N, STB_GLOBAL, 1},
	{"after", 0x10a0, 0x10, F, STB_LOCAL, 1},
	{"ifunc", 0x10b0, 0x10, STT_GNU_IFUNC, STB_GLOBAL, 1},
	{".Llabel", 0x10b8, 0, N, STB_LOCAL, 1},
	{"tail", 0x1700, 0, F, STB_LOCAL, 1},
	{"file", 0x1400, 0x10, STT_FILE, STB_LOCAL, 1},
	{"section", 0x1400, 0x10, STT_SECTION, STB_LOCAL, 1},
	{"absolute", 0x1400, 0x10, F, STB_GLOBAL, SHN_ABS},
	{"undefined", 0x1400, 0x10, F, STB_GLOBAL, SHN_UNDEF},
	{"second", 0x1900, 0xffffffffffffff, F, STB_GLOBAL, 2},
	{"elsewhere", 0x1410, 0x10, F, STB_GLOBAL, 2},
};

static void build(struct image *m, const struct symbol *symbols, size_t n)
{
	static const char names[] = "\0.text\0.text2\0.symtab\0.strtab\0.shstrtab";
	size_t used = 1;

	memset(m, 0, sizeof(*m));
	memcpy(m->header.e_ident, ELFMAG, SELFMAG);
	m->header.e_ident[EI_CLASS] = ELFCLASS64;
	m->header.e_ident[EI_DATA] = ELFDATA2LSB;
	m->header.e_ident[EI_VERSION] = EV_CURRENT;
	m->header.e_version = EV_CURRENT;
	m->header.e_type = ET_DYN;
	m->header.e_machine = EM_X86_64;
	m->header.e_ehsize = sizeof(Elf64_Ehdr);
	m->header.e_phoff = offsetof(struct image, segments);
	m->header.e_phentsize = sizeof(Elf64_Phdr);
	m->header.e_phnum = 2;
	m->header.e_shoff = offsetof(struct image, sections);
	m->header.e_shentsize = sizeof(Elf64_Shdr);
	m->header.e_shnum = 6;
	m->header.e_shstrndx = 5;
	m->segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				      .p_flags = PF_R | PF_X,
				      .p_vaddr = 0x1000,
				      .p_filesz = 64,
				      .p_memsz = 0x1000};
	m->segments[1] = (Elf64_Phdr){.p_type = PT_NOTE,
				      .p_align = 4,
				      .p_offset = offsetof(struct image, note),
				      .p_filesz = 36};
	memcpy(m->note, "\4\0\0\0\24\0\0\0\3\0\0\0GNU\0abcdefghijklmnopqrst", 36);
	m->sections[1] = (Elf64_Shdr){.sh_name = 1,
				      .sh_type = SHT_NOBITS,
				      .sh_addr = 0x1000,
				      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				      .sh_size = 0x800};
	m->sections[2] = (Elf64_Shdr){.sh_name = 7,
				      .sh_type = SHT_NOBITS,
				      .sh_addr = 0x1800,
				      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				      .sh_size = 0x800};
	m->sections[3] = (Elf64_Shdr){.sh_name = 14,
				      .sh_type = SHT_SYMTAB,
				      .sh_link = 4,
				      .sh_offset = offsetof(struct image, symbols),
				      .sh_size = (n + 1) * sizeof(Elf64_Sym),
				      .sh_entsize = sizeof(Elf64_Sym)};
	m->sections[4] = (Elf64_Shdr){.sh_name = 22,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct image, names),
				      .sh_size = sizeof(m->names)};
	m->sections[5] = (Elf64_Shdr){.sh_name = 30,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct image, section_names),
				      .sh_size = sizeof(m->section_names)};
	memcpy(m->section_names, names, sizeof(names));
	for (size_t i = 0; i < n; i++) {
		m->symbols[i + 1] = (Elf64_Sym){
			.st_name = (uint32_t)used,
			.st_info = ELF64_ST_INFO(symbols[i].bind, symbols[i].type),
			.st_shndx = (uint16_t)symbols[i].section,
			.st_value = symbols[i].value,
			.st_size = symbols[i].size,
		};
		strcpy(m->names + used, symbols[i].name);
		used += strlen(symbols[i].name) + 1;
	}
}

static void expect(const struct elfsym *s, uint64_t addr, const char *name, uint64_t start)
{
	uint64_t found_start = 0;
	const char *found = NULL;
	int err = elfsym__find(s, addr, &found, &found_start);

	if (!name) {
		if (err != -ENOENT)
			fail_msg("%llx: %s, not a hole", (unsigned long long)addr, found);
		return;
	}
	if (err || strcmp(found, name))
		fail_msg("%llx: %s, not %s", (unsigned long long)addr, err ? "hole" : found, name);
	assert_int_equal(found_start, start);
}

static struct elfsym *load(const struct image *m, const struct image *debug)
{
	struct elf_file *f = elf_file__from_memory(m, sizeof(*m));
	struct elf_file *d = debug ? elf_file__from_memory(debug, sizeof(*debug)) : NULL;
	struct elfsym *s;

	assert_non_null(f);
	s = elfsym__new(f, d);
	assert_non_null(s);
	elf_file__free(f);
	elf_file__free(d);
	return s;
}

static void test_lookup(void **state)
{
	struct image m;
	struct elfsym *s;

	build(&m, standard, sizeof(standard) / sizeof(standard[0]));
	s = load(&m, NULL);
	expect(s, 0, NULL, 0);
	expect(s, 0xfff, NULL, 0);
	expect(s, 0x1000, "plain", 0x1000);
	expect(s, 0x100f, "plain", 0x1000);
	expect(s, 0x1010, NULL, 0);
	expect(s, 0x101f, NULL, 0);
	expect(s, 0x1020, "alias_b", 0x1020); /* the last global name, not the local one */
	expect(s, 0x1048, "outer", 0x1040);
	expect(s, 0x1050, "inner", 0x1050);
	expect(s, 0x1058, "outer", 0x1040); /* past inner, still in outer */
	expect(s, 0x107f, "outer", 0x1040);
	expect(s, 0x1080, NULL, 0);
	expect(s, 0x1090, "no_size", 0x1090);
	expect(s, 0x109f, "no_size", 0x1090);
	expect(s, 0x10a0, "after", 0x10a0);
	expect(s, 0x10b9, "ifunc", 0x10b0);
	expect(s, 0x10c0, NULL, 0); /* the label names nothing, no_size ended */
	expect(s, 0x1400, NULL, 0);
	expect(s, 0x1410, NULL, 0);
	expect(s, 0x1700, "tail", 0x1700);
	expect(s, 0x17ff, "tail", 0x1700);
	expect(s, 0x1800, NULL, 0); /* a symbol without a size ends with its section */
	expect(s, 0x1fff, "second", 0x1900);
	expect(s, 0x2000, NULL, 0);
	expect(s, UINT64_MAX, NULL, 0);
	elfsym__free(s);
}

static void test_debug_file(void **state)
{
	static const struct symbol own[] = {{"own", 0x1000, 0x10, F, STB_GLOBAL, 1}};
	static const struct symbol more[] = {{"zz_same", 0x1000, 0x20, F, STB_GLOBAL, 1},
					     {"closer", 0x1008, 0x4, F, STB_LOCAL, 1},
					     {"local", 0x1100, 0x10, F, STB_LOCAL, 1}};
	struct image m, d;
	struct elfsym *s;

	build(&m, own, 1);
	build(&d, more, 3);
	s = load(&m, &d);
	expect(s, 0x1000, "own", 0x1000);
	expect(s, 0x1009, "closer", 0x1008);
	expect(s, 0x1014, "zz_same", 0x1000);
	expect(s, 0x1100, "local", 0x1100);
	elfsym__free(s);
}

/* an image of memory: one stretch of code, no sections */
static void test_debug_file_of_image(void **state)
{
	static const struct symbol more[] = {{"_init", 0x1000, 0, F, STB_GLOBAL, 1},
					     {"second", 0x1900, 0x10, F, STB_LOCAL, 2}};
	struct image m, d;
	struct elfsym *s;

	build(&m, NULL, 0);
	m.header.e_shoff = 0;
	m.header.e_shnum = 0;
	m.header.e_shstrndx = SHN_UNDEF;
	build(&d, more, 2);
	s = load(&m, &d);
	expect(s, 0x1000, "_init", 0x1000);
	expect(s, 0x1900, "second", 0x1900);
	expect(s, 0x1800, NULL, 0); /* not _init, which ended with its section */
	elfsym__free(s);
}

static void test_no_symbols(void **state)
{
	struct image m;
	struct elfsym *s;

	build(&m, NULL, 0);
	s = load(&m, NULL);
	assert_int_equal(elfsym__count(s), 0);
	expect(s, 0x1000, NULL, 0);
	elfsym__free(s);
}

static void test_not_for_us(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} changes[] = {
		{0, 0},
		{EI_CLASS, ELFCLASS32},
		{EI_DATA, ELFDATA2MSB},
		{offsetof(Elf64_Ehdr, e_machine), EM_386},
		{offsetof(Elf64_Ehdr, e_type), ET_CORE},
		{offsetof(Elf64_Ehdr, e_phentsize), 55},
		{offsetof(Elf64_Ehdr, e_phoff) + 7, 1},
	};
	struct image m;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		build(&m, standard, 1);
		((uint8_t *)&m)[changes[i].at] = changes[i].value;
		assert_null(elf_file__from_memory(&m, sizeof(m)));
		assert_int_equal(errno, EINVAL);
	}
	assert_null(elf_file__from_memory(&m, 0));
	assert_null(elf_file__from_memory(&m, 63));
}

/* what the fuzzer does too: everything that reads an ELF file */
static void use(const void *bytes, size_t len)
{
	static const struct debugfile_search nowhere = {.dir = "/nowhere"};
	struct elf_file *f = elf_file__from_memory(bytes, len), *debug = NULL;
	struct elf_range eh_frame, hdr;
	const char *name;
	uint64_t start;
	struct elfsym *s;

	if (!f)
		return;
	if (!elf_file__eh_frame(f, &eh_frame, &hdr)) {
		assert_true(eh_frame.offset <= len && eh_frame.len <= len - eh_frame.offset);
		assert_true(hdr.offset <= len && hdr.len <= len - hdr.offset);
	}
	if (!debugfile__find(&nowhere, f, "/x/y", -1, &debug))
		elf_file__free(debug);
	elf_file__libelf(f);
	s = elfsym__new(f, f);
	assert_non_null(s);
	for (uint64_t addr = 0; addr < 0x2100; addr += 0x31) {
		if (!elfsym__find(s, addr, &name, &start))
			assert_true(start <= addr && strlen(name) < len + 32);
	}
	elfsym__free(s);
	elf_file__free(f);
}

static void test_mutated(void **state)
{
	static const uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
	struct image m, changed;

	build(&m, standard, sizeof(standard) / sizeof(standard[0]));
	for (size_t at = 0; at < offsetof(struct image, symbols) + 200; at++) {
		for (size_t i = 0; i < sizeof(values); i++) {
			changed = m;
			((uint8_t *)&changed)[at] = values[i];
			use(&changed, sizeof(changed));
		}
	}
	for (size_t len = 0; len < sizeof(m); len += 7) {
		void *copy = malloc(len);

		assert_true(copy || !len);
		memcpy(copy, &m, len);
		use(copy, len);
		free(copy);
	}
	srand(1);
	for (int i = 0; i < 2000; i++) {
		changed = m;
		for (int j = 0; j < 8; j++)
			((uint8_t *)&changed)[(size_t)rand() % sizeof(m)] = (uint8_t)rand();
		use(&changed, sizeof(changed));
	}
}

/* a real file: zlib, with .plt, .eh_frame_hdr, .gnu_debuglink; headers and tables changed */
static void test_mutated_library(void **state)
{
	int fd = open("/lib/x86_64-linux-gnu/libz.so.1", O_RDONLY | O_CLOEXEC);
	struct elf_file *f;
	void *bytes;
	size_t size;

	if (fd < 0)
		skip();
	f = elf_file__from_fd(fd);
	assert_non_null(f);
	size = elf_file__size(f);
	assert_int_equal(elf_file__read_alloc(f, 0, size, SIZE_MAX - 1, &bytes), 0);
	srand(2);
	for (int i = 0; i < 300; i++) {
		uint8_t *copy = malloc(size);
		uint64_t shoff = elf_file__header(f)->e_shoff;
		size_t part[3][2] = {{0, 1024}, {shoff, size - shoff}, {0, size}};

		assert_non_null(copy);
		memcpy(copy, bytes, size);
		for (int j = 0; j < 6; j++) {
			size_t *p = part[rand() % 3];

			copy[p[0] + (size_t)rand() % p[1]] = (uint8_t)rand();
		}
		use(copy, size);
		free(copy);
	}
	free(bytes);
	elf_file__free(f);
}

/* the file becomes shorter while it is open: an error, not a signal */
static void test_cut_file(void **state)
{
	char name[] = "/tmp/test_elfsym.XXXXXX";
	int fd = mkstemp(name);
	struct elf_file *f;
	struct elfsym *s;
	struct image m;
	char byte;

	build(&m, standard, 3);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &m, sizeof(m)), sizeof(m));
	f = elf_file__from_fd(dup(fd));
	assert_non_null(f);
	assert_non_null(elf_file__libelf(f));
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(elf_file__read(f, sizeof(m) - 1, &byte, 1), -EIO);
	assert_int_equal(elf_file__read(f, sizeof(m), &byte, 1), -EINVAL);
	assert_int_equal(elf_file__read(f, UINT64_MAX, &byte, 2), -EINVAL);
	s = elfsym__new(f, NULL);
	assert_non_null(s);
	assert_int_equal(elfsym__count(s), 0);
	elfsym__free(s);
	elf_file__free(f);
	close(fd);
	unlink(name);
}

static void write_file(const char *name, const void *bytes, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static void test_find_debug_file(void **state)
{
	char dir[] = "/tmp/test_elfsym.XXXXXX", command[64];
	struct strbuf refused = STRBUF_INIT;
	const struct debugfile_search search = {.dir = dir, .refused = &refused};
	struct elf_file *f, *debug = NULL;
	struct image m, other;

	build(&m, standard, 3);
	build(&other, standard, 1);
	other.note[20]++;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(mkdir(".build-id", 0700), 0);
	assert_int_equal(mkdir(".build-id/61", 0700), 0);
#define DEBUG_NAME ".build-id/61/62636465666768696a6b6c6d6e6f7071727374.debug"
	f = elf_file__from_memory(&m, sizeof(m));
	assert_non_null(f);
	assert_int_equal(debugfile__find(&search, f, "/x", -1, &debug), -ENOENT);
	assert_int_equal(refused.len, 0);
	write_file(DEBUG_NAME, &other, sizeof(other)); /* another build's */
	assert_int_equal(debugfile__find(&search, f, "/x", -1, &debug), -ENOENT);
	assert_non_null(strstr(refused.data, DEBUG_NAME " is not used: it is not of the same build "
							"as /x\n"));
	assert_int_equal(unlink(DEBUG_NAME), 0);
	assert_int_equal(mkfifo(DEBUG_NAME, 0600), 0); /* would wait for ever */
	assert_int_equal(debugfile__find(&search, f, "/x", -1, &debug), -ENOENT);
	assert_int_equal(unlink(DEBUG_NAME), 0);
	write_file(DEBUG_NAME, &m, sizeof(m));
	strbuf__reset(&refused);
	assert_int_equal(debugfile__find(&search, f, "/x", -1, &debug), 0);
	assert_int_equal(refused.len, 0);
	strbuf__free(&refused);
	elf_file__free(debug);
	elf_file__free(f);
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void test_debug_link(void **state)
{
	char dir[] = "/tmp/test_elfsym.XXXXXX", path[64], name[64], want[256];
	struct strbuf refused = STRBUF_INIT;
	const struct debugfile_search search = {.refused = &refused};
	struct elf_file *f, *debug = NULL;
	struct image m, d;
	uint32_t crc;

	build(&d, standard, 3);
	crc = (uint32_t)crc32(0, (const Bytef *)&d, sizeof(d));
	build(&m, standard, 1);
	memset(m.note, 0, sizeof(m.note));
	memcpy(m.section_names + 1, ".gnu_debuglink", 15);
	m.sections[1].sh_type = SHT_PROGBITS;
	m.sections[1].sh_offset = offsetof(struct image, names) + 256;
	m.sections[1].sh_size = 12;
	memcpy(m.names + 256, "a.debug\0", 8);
	memcpy(m.names + 264, &crc, 4);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/lib.so", dir);
	snprintf(name, sizeof(name), "%s/a.debug", dir);
	f = elf_file__from_memory(&m, sizeof(m));
	assert_non_null(f);
	assert_int_equal(debugfile__find(&search, f, path, -1, &debug), -ENOENT);
	write_file(name, &m, sizeof(m));
	assert_int_equal(debugfile__find(&search, f, path, -1, &debug), -ENOENT);
	snprintf(want, sizeof(want), "%s is not used: it is not of the same build as %s\n", name,
		 path);
	assert_string_equal(refused.data, want);
	strbuf__free(&refused);
	write_file(name, &d, sizeof(d));
	assert_int_equal(debugfile__find(&search, f, path, -1, &debug), 0);
	assert_int_equal(elf_file__size(debug), sizeof(d));
	elf_file__free(debug);
	assert_int_equal(debugfile__find(&search, f, "lib.so", -1, &debug), -ENOENT);
	assert_int_equal(debugfile__find(&search, f, "", -1, &debug), -ENOENT);
	elf_file__free(f);
	unlink(name);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_debug_file),
		cmocka_unit_test(test_debug_file_of_image),
		cmocka_unit_test(test_no_symbols),
		cmocka_unit_test(test_not_for_us),
		cmocka_unit_test(test_mutated),
		cmocka_unit_test(test_mutated_library),
		cmocka_unit_test(test_cut_file),
		cmocka_unit_test(test_find_debug_file),
		cmocka_unit_test(test_debug_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
