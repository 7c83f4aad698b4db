// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The bytes of an ELF file, on the whole way from an address to its names: symbols, functions,
 * inlined ones, lines, tail calls; what is printed of them.
 *
 * libdw and libelf are not made for files that lie; in the program, a process that may fall reads
 * them (dwarf/worker.h). So a fault of theirs ends the input, and is counted and said at the end,
 * and is no finding. One that is ours is: a fault with the program counter in this program. So is
 * an input that takes longer than libFuzzer's -timeout.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "dwarf/debug_info.h"
#include "proc/elf_file.h"
#include "sym/demangle.h"
#include "sym/elfsym.h"

#define N_ADDRESSES 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};

static struct {
	sigjmp_buf back;
	volatile sig_atomic_t inside;
	struct sigaction before[sizeof(faults) / sizeof(faults[0])];
	unsigned long inputs, fallen;
} state;

/* Whether the code is a library's that reads ELF or DWARF. */
static bool is_theirs(const void *pc)
{
	Dl_info info;

	return dladdr(pc, &info) && info.dli_fname &&
	       (strstr(info.dli_fname, "/libdw.so") || strstr(info.dli_fname, "/libdw-") ||
		strstr(info.dli_fname, "/libelf.so") || strstr(info.dli_fname, "/libelf-"));
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;

	if (state.inside && is_theirs((void *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP])) {
		state.inside = 0;
		siglongjmp(state.back, 1);
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (faults[i] == number)
			sigaction(number, &state.before[i], NULL);
	}
	(void)info; /* it comes again, or is raised */
	if (number == SIGABRT)
		raise(SIGABRT);
}

static void say(void)
{
	fprintf(stderr, "fuzz_debug_info: %lu inputs; libdw or libelf fell over %lu of them\n",
		state.inputs, state.fallen);
}

/* After libFuzzer has set its own. */
static void catch_faults(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (state.inputs++)
		return;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigaction(faults[i], &action, &state.before[i]);
	atexit(say);
}

static void print(const char *name, bool mangled)
{
	struct strbuf text = STRBUF_INIT;

	if (strnlen(name, DEMANGLE_MAX + 1) > DEMANGLE_MAX)
		return;
	if (mangled)
		demangle_function(name, &text);
	else
		demangle(name, &text);
	strbuf__append_untrusted(&text, name, strlen(name), ' ');
	strbuf__free(&text);
}

/* As code_names does, for one address. */
static void look_up(struct debug_info *d, const struct elfsym *s, uint64_t addr, bool exact)
{
	const struct debug_frame *frames = NULL;
	size_t n = debug_info__find(d, addr, exact, &frames);
	const char *name;
	uint64_t start;

	if (n > DEBUG_INFO_MAX_INLINED + 1)
		abort();
	for (size_t i = 0; i < n; i++) {
		if (frames[i].name)
			print(frames[i].name, frames[i].mangled);
		if (frames[i].file)
			print(frames[i].file, false);
		if (frames[i].line < 0)
			abort();
	}
	if (!elfsym__find(s, addr, &name, &start))
		print(name, false);
}

static void look_up_all(struct debug_info *d, const struct elfsym *s, const uint64_t *addrs)
{
	uint64_t between[TAIL_CALLS_MAX];

	for (size_t i = 0; i < N_ADDRESSES; i++) {
		look_up(d, s, addrs[i], i & 1);
		if (debug_info__tail_calls(d, addrs[i], addrs[(i * 7 + 3) % N_ADDRESSES], between) >
		    TAIL_CALLS_MAX)
			abort();
	}
	if (debug_info__damaged(d))
		look_up(d, s, UINT64_MAX, false);
}

/* Spread over what may be run. */
static void choose_addresses(const struct elf_file *f, uint64_t *ret_addrs)
{
	const struct elf_section *sections;
	uint64_t start = 0x200, len = 0x200;
	size_t n;

	sections = elf_file__sections(f, &n);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *h = &sections[i].shdr;

		if ((h->sh_flags & SHF_EXECINSTR) && h->sh_size &&
		    strcmp(sections[i].name, ".text") == 0) {
			start = h->sh_addr;
			len = h->sh_size;
		}
	}
	if (len > 4096)
		len = 4096;
	for (size_t i = 0; i < N_ADDRESSES; i++)
		ret_addrs[i] = start + len * i / N_ADDRESSES;
}

static void look_at(struct elf_file *f, const struct elfsym *s, int fd)
{
	uint64_t addrs[N_ADDRESSES];
	struct debug_info *d;

	choose_addresses(f, addrs);
	if (sigsetjmp(state.back, 1)) {
		state.fallen++; /* and the memory that it had is lost */
		close(fd);
		return;
	}
	state.inside = 1;
	d = debug_info__new(fd, -1);
	if (d)
		look_up_all(d, s, addrs);
	debug_info__free(d);
	state.inside = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elf_file *f = elf_file__from_memory(data, len);
	struct elfsym *s = f ? elfsym__new(f, f) : NULL;
	int fd = s ? memfd_create("input", MFD_CLOEXEC) : -1;

	catch_faults();
	if (fd >= 0 && elf_file__has_debug_info(f) && write(fd, data, len) == (ssize_t)len)
		look_at(f, s, fd);
	else if (fd >= 0)
		close(fd);
	elfsym__free(s);
	elf_file__free(f);
	return 0;
}
