// SPDX-License-Identifier: GPL-2.0-or-later
#include "cfi_builder.h"
#include "unwind/call_site.h"
#include "unwind/step.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * The target: an object with unwind information, code made at run time without any, and a stack.
 * Every function is 0x100 long; at each of its multiples of 0x10 a call ends.
 */
#define BIAS  0x5000000000ULL
#define JIT   0x6000000000ULL /* its functions end before JIT + 0x1000 */
#define STACK 0x7000000000ULL
#define ALT   0x7000001000ULL /* an alternate signal stack, above */

enum function {
	F_FRAMELESS = 0x1000,  /* rsp + 8 */
	F_PUSHED = 0x1100,     /* rsp + 16, rbx saved below the return address */
	F_RBP = 0x1200,	       /* rbp + 16 */
	F_BOTTOM = 0x1300,     /* return address undefined, as clone3 */
	F_VFORK = 0x1400,      /* rsp + 0, return address in rdi */
	F_RESOLVE = 0x1500,    /* rbx + 24, rbx at CFA - 24 */
	F_PLT = 0x1600,	       /* rsp + 8 + (rip & 15 >= 11) * 8 */
	F_RESTORE_RT = 0x1700, /* signal frame: rsp at [rsp], rip at [rsp + 8], rbp at [rsp + 16] */
	F_SETCONTEXT = 0x1800, /* CFA = rdi, rsp at CFA + 8, rip at CFA + 16 */
	F_EXPRESSION = 0x1900, /* CFA = *(rsp + 8) */
	F_RAX = 0x1a00,	       /* CFA = rax + 8 */
	F_MALFORMED = 0x1b00,
	F_UNKNOWN_RA = 0x1c00, /* no rule for the return address */
	F_NO_RISE = 0x1d00,    /* CFA = rsp - 8 */
	F_SAVED_RA = 0x1e00,   /* rsp + 0, return address in rbx */
	F_NO_CFI = 0x2000,     /* in the object, without unwind information */
	F_END = 0x2100,
};

static struct {
	uint64_t stack[0x300]; /* ALT is within */
	bool calls;	       /* code has calls */
	bool code_readable;
	struct eh_frame *eh;
} target;

/* No call at F_RESTORE_RT: the kernel puts that return address there. */
static int read_word(void *arg, uint64_t addr, uint64_t *ret_word)
{
	if (addr >= STACK && addr % 8 == 0 && (addr - STACK) / 8 < ARRAY_SIZE(target.stack)) {
		*ret_word = target.stack[(addr - STACK) / 8];
		return 0;
	}
	if (!target.code_readable)
		return -EFAULT;
	*ret_word = 0x9090909090909090;
	if (target.calls && addr % 0x10 == 8 &&
	    ((addr >= BIAS + F_FRAMELESS && addr < BIAS + F_END &&
	      (addr < BIAS + F_RESTORE_RT || addr >= BIAS + F_SETCONTEXT)) ||
	     (addr >= JIT && addr < JIT + 0x1000)))
		*ret_word = 0xd0ff909090909090; /* call *%rax */
	return 0;
}

static int find_code(void *arg, uint64_t pc, struct unwind_code *ret_code)
{
	if (pc >= BIAS + F_FRAMELESS && pc < BIAS + F_END)
		*ret_code = (struct unwind_code){.eh = target.eh, .bias = BIAS};
	else if (pc >= JIT && pc < JIT + 0x1000)
		*ret_code = (struct unwind_code){.eh = NULL};
	else
		return -ENOENT;
	return 0;
}

static const struct unwind_space space = {.read_word = read_word, .find_code = find_code};

static struct cfi_builder cfi;

static void add(size_t cie, enum function f, const uint8_t *program, size_t len)
{
	cfi__fde(&cfi, cie, f, 0x100, program, len);
}

static int set_up(void **state)
{
	size_t cie = cfi__usual_cie(&cfi), signal_cie = cfi__signal_cie(&cfi);
	size_t bare = cfi__cie(&cfi, 1, "zR", BYTES(0x1b), NO_BYTES);

	add(cie, F_FRAMELESS, NO_BYTES);
	add(cie, F_PUSHED, BYTES(0x0e, 16, 0x80 | CFI_RBX, 2));
	add(cie, F_RBP, BYTES(0x0c, CFI_RBP, 16, 0x80 | CFI_RBP, 2));
	add(cie, F_BOTTOM, BYTES(0x07, CFI_RA));
	add(cie, F_VFORK, BYTES(0x0e, 0, 0x09, CFI_RA, CFI_RDI));
	add(cie, F_RESOLVE, BYTES(0x0c, CFI_RBX, 24, 0x80 | CFI_RBX, 3));
	add(cie, F_PLT,
	    BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22));
	/* the FDE starts a byte early, as glibc's, for the look-up at pc - 1 */
	cfi__fde(&cfi, signal_cie, F_RESTORE_RT - 1, 0x101,
		 BYTES(0x0f, 3, 0x77, 0, 0x06, 0x10, CFI_RSP, 2, 0x77, 0, 0x10, CFI_RA, 2, 0x77, 8,
		       0x10, CFI_RBP, 2, 0x77, 16, 0x10, CFI_RDI, 2, 0x77, 24));
	add(cie, F_SETCONTEXT, BYTES(0x0c, CFI_RDI, 0, 0x11, CFI_RSP, 0x7f, 0x11, CFI_RA, 0x7e));
	add(cie, F_EXPRESSION, BYTES(0x0f, 3, 0x77, 8, 0x06));
	add(cie, F_RAX, BYTES(0x0c, CFI_RAX, 8));
	add(cie, F_MALFORMED, BYTES(0x3f));
	add(bare, F_UNKNOWN_RA, BYTES(0x0c, CFI_RSP, 8));
	add(cie, F_NO_RISE, BYTES(0x12, CFI_RSP, 1, 0x11, CFI_RA, 0x7f));
	add(cie, F_SAVED_RA, BYTES(0x0e, 0, 0x09, CFI_RA, CFI_RBX));
	target.eh = cfi__new(&cfi, NULL);
	return target.eh ? 0 : -1;
}

static int tear_down(void **state)
{
	eh_frame__free(target.eh);
	return 0;
}

#define AT(function, offset) (BIAS + (function) + (offset))
#define S(index)	     (STACK + 8 * (index))
#define ALT_INDEX	     ((ALT - STACK) / 8)

struct word {
	size_t index; /* into the stack */
	uint64_t value;
};

struct step_case {
	const char *name;
	uint64_t pc, rbp, rbx, rdi;
	struct word words[16]; /* until an index and value of 0 */
	enum stack_end end;
	uint64_t frames[10]; /* until 0, the first is pc itself; bit 63: exact */
	size_t max_frames;   /* 0: 100 */
	uint64_t rsp;	     /* 0: S(1) */
	bool no_calls, code_unreadable;
};

#define EXACT (1ULL << 63)

static const struct step_case cases[] = {
	{"bottom at once", AT(F_BOTTOM, 4), .end = STACK_WHOLE},
	{"pushed words", AT(F_PUSHED, 4), .end = STACK_WHOLE,
	 .words = {{1, 0xb0}, {2, AT(F_FRAMELESS, 0x10)}, {3, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_FRAMELESS, 0x10), AT(F_BOTTOM, 0x10)}},
	{"return address zero", AT(F_PUSHED, 4), .end = STACK_GUESSED,
	 .words = {{2, AT(F_FRAMELESS, 0x10)}}, .frames = {AT(F_FRAMELESS, 0x10)}},
	{"a noreturn call at the function's end", AT(F_FRAMELESS, 4), .end = STACK_WHOLE,
	 .words = {{1, AT(F_RBP, 0)}, {3, AT(F_BOTTOM, 0x10)}}, /* it is F_PUSHED that called */
	 .frames = {AT(F_RBP, 0), AT(F_BOTTOM, 0x10)}},
	{"the first address of a function is looked up as it is", AT(F_RBP, 0), .rbp = S(4),
	 .end = STACK_WHOLE, .words = {{5, AT(F_BOTTOM, 0x10)}}, .frames = {AT(F_BOTTOM, 0x10)}},
	{"rbp restored on the way", AT(F_RBP, 4), .rbp = S(4), .end = STACK_WHOLE,
	 .words = {{4, S(8)}, {5, AT(F_RBP, 0x10)}, {8, 0}, {9, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RBP, 0x10), AT(F_BOTTOM, 0x10)}},
	{"vfork: the return address in a register", AT(F_VFORK, 4), .rdi = AT(F_FRAMELESS, 0x10),
	 .end = STACK_WHOLE, .words = {{1, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_FRAMELESS, 0x10), AT(F_BOTTOM, 0x10)}},
	{"rdi is not known further out", AT(F_FRAMELESS, 4), .rdi = AT(F_FRAMELESS, 0x10),
	 .end = STACK_BROKEN, .words = {{1, AT(F_VFORK, 0x10)}}, .frames = {AT(F_VFORK, 0x10)}},
	{"a return address in a saved register", AT(F_FRAMELESS, 4), .rbx = AT(F_FRAMELESS, 0x10),
	 .end = STACK_WHOLE, .words = {{1, AT(F_SAVED_RA, 0x10)}, {2, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_SAVED_RA, 0x10), AT(F_FRAMELESS, 0x10), AT(F_BOTTOM, 0x10)}},
	{"the same, for ever", AT(F_FRAMELESS, 4), .rbx = AT(F_SAVED_RA, 0x20), .end = STACK_BROKEN,
	 .words = {{1, AT(F_SAVED_RA, 0x10)}},
	 .frames = {AT(F_SAVED_RA, 0x10), AT(F_SAVED_RA, 0x20), AT(F_SAVED_RA, 0x20)}},
	{"_dl_runtime_resolve: CFA from a saved register", AT(F_PUSHED, 4), .end = STACK_WHOLE,
	 .words = {{1, S(6)}, {2, AT(F_RESOLVE, 0x10)}, {6, 0xb0}, {8, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RESOLVE, 0x10), AT(F_BOTTOM, 0x10)}},
	{"Go's nanotime1: the same, while rsp is on another stack", AT(F_RESOLVE, 4), .rbx = S(6),
	 .rsp = ALT, .end = STACK_WHOLE, .words = {{8, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_BOTTOM, 0x10)}},
	{"a PLT stub, before its push", AT(F_PLT, 10), .end = STACK_WHOLE,
	 .words = {{1, AT(F_BOTTOM, 0x10)}}, .frames = {AT(F_BOTTOM, 0x10)}},
	{"a PLT stub, after its push", AT(F_PLT, 11), .end = STACK_WHOLE,
	 .words = {{1, 3}, {2, AT(F_BOTTOM, 0x10)}}, .frames = {AT(F_BOTTOM, 0x10)}},
	{"CFA by an expression that reads memory", AT(F_EXPRESSION, 4), .end = STACK_WHOLE,
	 .words = {{2, S(6)}, {5, AT(F_BOTTOM, 0x10)}}, .frames = {AT(F_BOTTOM, 0x10)}},
	{"an expression that cannot be evaluated", AT(F_EXPRESSION, 4), .end = STACK_BROKEN,
	 .code_unreadable = true, .words = {{2, 0x1000}}},
	{"a return address of zero, marked as the bottom by rbp", AT(F_FRAMELESS, 4),
	 .end = STACK_GUESSED},
	{"a return address of zero, while rbp says that there is more", AT(F_FRAMELESS, 4),
	 .rbp = S(4), .end = STACK_BROKEN},
	{"a scratch register that a rule further out builds on", AT(F_FRAMELESS, 4),
	 .end = STACK_WHOLE, .words = {{1, AT(F_RAX, 0x10)}, {3, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RAX, 0x10), AT(F_BOTTOM, 0x10)}},
	{"the same twice: the stack does not rise", AT(F_RAX, 4), .end = STACK_BROKEN,
	 .words = {{3, AT(F_RAX, 0x10)}}, .frames = {AT(F_RAX, 0x10)}},
	{"a signal on the same stack", AT(F_FRAMELESS, 4), .end = STACK_WHOLE,
	 .words = {{1, AT(F_RESTORE_RT, 0)},
		   {2, S(9)},
		   {3, AT(F_RBP, 0)},
		   {4, S(10)},
		   {10, 0},
		   {11, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RESTORE_RT, 0), AT(F_RBP, 0) | EXACT, AT(F_BOTTOM, 0x10)}},
	{"a signal on an alternate stack, which lies higher", AT(F_FRAMELESS, 4), .rsp = ALT,
	 .end = STACK_WHOLE,
	 .words = {{ALT_INDEX, AT(F_RESTORE_RT, 0)},
		   {ALT_INDEX + 1, S(1)},
		   {ALT_INDEX + 2, AT(F_FRAMELESS, 0x18)},
		   {1, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RESTORE_RT, 0), AT(F_FRAMELESS, 0x18) | EXACT, AT(F_BOTTOM, 0x10)}},
	{"a signal in vfork: rdi comes from the signal frame", AT(F_FRAMELESS, 4),
	 .end = STACK_WHOLE,
	 .words = {{1, AT(F_RESTORE_RT, 0)},
		   {2, S(9)},
		   {3, AT(F_VFORK, 4)},
		   {5, AT(F_FRAMELESS, 0x10)},
		   {9, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RESTORE_RT, 0), AT(F_VFORK, 4) | EXACT, AT(F_FRAMELESS, 0x10),
		    AT(F_BOTTOM, 0x10)}},
	{"a signal because NULL was called", AT(F_FRAMELESS, 4), .end = STACK_GUESSED,
	 .words = {{1, AT(F_RESTORE_RT, 0)},
		   {2, S(9)},
		   {9, AT(F_FRAMELESS, 0x10)},
		   {10, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RESTORE_RT, 0), EXACT, AT(F_FRAMELESS, 0x10), AT(F_BOTTOM, 0x10)}},
	{"signal frames in a circle", AT(F_FRAMELESS, 4), .end = STACK_BROKEN, .max_frames = 8,
	 .words = {{1, AT(F_RESTORE_RT, 0)}, {2, S(1)}, {3, AT(F_FRAMELESS, 4)}},
	 .frames = {AT(F_RESTORE_RT, 0), AT(F_FRAMELESS, 4) | EXACT}},
	{"setcontext: another stack, lower", AT(F_SETCONTEXT, 4), .rdi = S(20), .rsp = ALT,
	 .end = STACK_WHOLE,
	 .words = {{21, S(4)}, {22, AT(F_FRAMELESS, 0x10)}, {4, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_FRAMELESS, 0x10), AT(F_BOTTOM, 0x10)}},
	{"a CFA that does not rise", AT(F_NO_RISE, 4), .end = STACK_BROKEN,
	 .words = {{1, AT(F_BOTTOM, 0x10)}}},
	{"no rule for the return address", AT(F_UNKNOWN_RA, 4), .end = STACK_BROKEN},
	{"a return address that is no code", AT(F_FRAMELESS, 4), .end = STACK_BROKEN,
	 .words = {{1, 0x1234}}},
	{"a stack that cannot be read", AT(F_FRAMELESS, 4), .rsp = 0x8000, .end = STACK_BROKEN,
	 .code_unreadable = true},
	{"rsp at the end of the address space", AT(F_PUSHED, 4), .rsp = UINT64_MAX - 7,
	 .end = STACK_BROKEN, .code_unreadable = true},

	{"the limit is the depth", AT(F_FRAMELESS, 4), .end = STACK_WHOLE, .max_frames = 2,
	 .words = {{1, AT(F_BOTTOM, 0x10)}}, .frames = {AT(F_BOTTOM, 0x10)}},
	{"one frame too many", AT(F_FRAMELESS, 4), .end = STACK_TRUNCATED, .max_frames = 2,
	 .words = {{1, AT(F_FRAMELESS, 0x10)}, {2, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_FRAMELESS, 0x10)}},
	{"broken at the limit", AT(F_FRAMELESS, 4), .end = STACK_BROKEN, .max_frames = 2,
	 .words = {{1, AT(F_FRAMELESS, 0x10)}, {2, 0x1234}}, .frames = {AT(F_FRAMELESS, 0x10)}},

	{"a call of NULL", 0, .end = STACK_GUESSED,
	 .words = {{1, AT(F_FRAMELESS, 0x10)}, {2, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_FRAMELESS, 0x10), AT(F_BOTTOM, 0x10)}},
	{"a call of NULL keeps saved registers", 0, .rbp = S(4), .end = STACK_GUESSED,
	 .words = {{1, AT(F_RBP, 0x10)}, {5, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RBP, 0x10), AT(F_BOTTOM, 0x10)}},
	{"garbage as pc, and no return address", 0x1234, .rbp = S(4), .end = STACK_BROKEN,
	 .words = {{1, 0x4321}, {4, S(8)}, {5, AT(F_BOTTOM, 0x10)}}},
	{"garbage as pc, no call before [rsp]", 0x1234, .end = STACK_BROKEN,
	 .words = {{1, AT(F_FRAMELESS, 0x14)}, {2, AT(F_BOTTOM, 0x10)}}},

	{"JIT code, nothing pushed yet", JIT + 4, .rbp = S(8), .end = STACK_GUESSED,
	 .words = {{1, AT(F_FRAMELESS, 0x10)},
		   {2, AT(F_BOTTOM, 0x10)},
		   {8, 0},
		   {9, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_FRAMELESS, 0x10), AT(F_BOTTOM, 0x10)}},
	{"JIT code with a frame", JIT + 4, .rbp = S(4), .end = STACK_GUESSED,
	 .words = {{1, 77},
		   {4, S(6)},
		   {5, JIT + 0x20},
		   {6, S(9)},
		   {7, AT(F_RBP, 0x10)},
		   {10, AT(F_BOTTOM, 0x10)}},
	 .frames = {JIT + 0x20, AT(F_RBP, 0x10), AT(F_BOTTOM, 0x10)}},
	{"JIT code, a code pointer on top that no call precedes", JIT + 4, .rbp = S(4),
	 .end = STACK_GUESSED,
	 .words = {{1, AT(F_FRAMELESS, 0x13)}, {4, S(6)}, {5, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_BOTTOM, 0x10)}},
	{"JIT code: no call before the frame's return address either", JIT + 4, .rbp = S(4),
	 .end = STACK_BROKEN, .no_calls = true,
	 .words = {{1, 77}, {4, S(6)}, {5, AT(F_BOTTOM, 0x10)}}},
	{"JIT code, no call before a function's second byte, which is its stack's end", JIT + 4,
	 .rbp = S(4), .end = STACK_GUESSED, .no_calls = true,
	 .words = {{1, 77}, {4, 0}, {5, AT(F_BOTTOM, 1)}},
	 .frames = {AT(F_BOTTOM, 1)}},
	{"JIT code as signal handler", JIT + 4, .rbp = S(4), .end = STACK_GUESSED,
	 .words = {{4, S(6)},
		   {5, AT(F_RESTORE_RT, 0)},
		   {6, S(9)},
		   {7, AT(F_FRAMELESS, 4)},
		   {9, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_RESTORE_RT, 0), AT(F_FRAMELESS, 4) | EXACT, AT(F_BOTTOM, 0x10)}},
	{"JIT code that cannot be read, with a frame", JIT + 4, .rbp = S(4), .end = STACK_GUESSED,
	 .code_unreadable = true, .words = {{4, S(6)}, {5, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_BOTTOM, 0x10)}},
	{"JIT code, rbp below rsp", JIT + 4, .rbp = S(0), .end = STACK_BROKEN,
	 .words = {{0, S(6)}, {1, AT(F_BOTTOM, 0x10) - 1}}},
	{"JIT code, rbp not aligned", JIT + 4, .rbp = S(4) + 4, .end = STACK_BROKEN},
	{"JIT code, rbp far away", JIT + 4, .rbp = S(0) + (9 << 20), .end = STACK_BROKEN},
	{"JIT code, rbp at the end of the address space", JIT + 4, .rbp = UINT64_MAX - 7,
	 .rsp = UINT64_MAX - 31, .end = STACK_BROKEN},
	{"JIT code, the return address is no code", JIT + 4, .rbp = S(4), .end = STACK_BROKEN,
	 .words = {{4, S(6)}, {5, 0x1234}}},
	{"JIT code, a zero return address alone is no bottom", JIT + 4, .rbp = S(4),
	 .end = STACK_BROKEN, .words = {{4, S(6)}}},
	{"JIT code, the outermost frame", JIT + 4, .rbp = S(4), .end = STACK_GUESSED},
	{"JIT code, then a stack that breaks", JIT + 4, .rbp = S(4), .end = STACK_BROKEN,
	 .words = {{4, S(6)}, {5, AT(F_FRAMELESS, 0x10)}, {6, 0x1234}},
	 .frames = {AT(F_FRAMELESS, 0x10)}},
	{"after a guess other saved registers are not known", JIT + 4, .rbp = S(4), .rbx = S(8),
	 .end = STACK_BROKEN, .words = {{4, S(6)}, {5, AT(F_RESOLVE, 0x10)}},
	 .frames = {AT(F_RESOLVE, 0x10)}},
	{"code without an FDE in an object", AT(F_FRAMELESS, 4), .rbp = S(4), .end = STACK_GUESSED,
	 .words = {{1, AT(F_NO_CFI, 0x10)}, {4, 0}, {5, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_NO_CFI, 0x10), AT(F_BOTTOM, 0x10)}},
	{"further out, the top of the stack is no return address", AT(F_FRAMELESS, 4),
	 .end = STACK_BROKEN, .words = {{1, AT(F_NO_CFI, 0x10)}, {2, AT(F_BOTTOM, 0x10)}},
	 .frames = {AT(F_NO_CFI, 0x10)}},
	{"a malformed FDE", AT(F_MALFORMED, 4), .rbp = S(4), .end = STACK_GUESSED,
	 .words = {{4, 0}, {5, AT(F_BOTTOM, 0x10)}}, .frames = {AT(F_BOTTOM, 0x10)}},
};

static enum stack_end run(const struct step_case *c, struct raw_frame *ret_frames, size_t *ret_n)
{
	struct unwind_regs regs = {.known = (1U << CFI_N_REGS) - 1};

	memset(target.stack, 0, sizeof(target.stack));
	for (size_t i = 0; i < ARRAY_SIZE(c->words) && (c->words[i].index || c->words[i].value);
	     i++)
		target.stack[c->words[i].index] = c->words[i].value;
	target.calls = !c->no_calls;
	target.code_readable = !c->code_unreadable;
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++)
		regs.value[reg] = 0xbad00 + reg;
	regs.value[CFI_RA] = c->pc;
	regs.value[CFI_RSP] = c->rsp ? c->rsp : S(1);
	regs.value[CFI_RBP] = c->rbp;
	regs.value[CFI_RBX] = c->rbx;
	regs.value[CFI_RDI] = c->rdi;
	regs.value[CFI_RAX] = S(3);
	return unwind__stack(&space, &regs, c->max_frames ? c->max_frames : 100, ret_frames, ret_n);
}

static void test_cases(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct step_case *c = &cases[i];
		struct raw_frame frames[100];
		size_t n = 0, expected = 1;
		enum stack_end end = run(c, frames, &n);

		if (end != c->end)
			fail_msg("%s: ends as %d after %zu frames", c->name, end, n);
		if (frames[0].pc != c->pc || !frames[0].exact)
			fail_msg("%s: frame 0", c->name);
		for (; expected <= ARRAY_SIZE(c->frames) && c->frames[expected - 1]; expected++) {
			uint64_t pc = c->frames[expected - 1];

			if (expected >= n || frames[expected].pc != (pc & ~EXACT) ||
			    frames[expected].exact != !!(pc & EXACT))
				fail_msg("%s: frame %zu of %zu", c->name, expected, n);
			/* the trampoline is the frame before the one that was interrupted */
			if (frames[expected - 1].signal != frames[expected].exact)
				fail_msg("%s: frame %zu: signal", c->name, expected - 1);
		}
		if (n != expected)
			fail_msg("%s: %zu frames", c->name, n);
	}
}

/* Bytes that end at a return address, and what they are. */
static uint64_t code_word;

static int read_code(void *arg, uint64_t addr, uint64_t *ret_word)
{
	if (addr != 0x1000)
		return -EFAULT;
	*ret_word = code_word;
	return 0;
}

static void test_call_sites(void **state)
{
	const struct {
		uint8_t code[8];
		enum call_site expected;
	} sites[] = {
		{{0x90, 0x90, 0x90, 0xe8, 0xf0, 0xff, 0xff, 0xff}, CALL_SITE_DIRECT},
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0}, CALL_SITE_INDIRECT}, /* *%rax */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4}, CALL_SITE_INDIRECT}, /* *%r12 */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x13},
		 CALL_SITE_INDIRECT}, /* *(%rbx) */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0x24},
		 CALL_SITE_INDIRECT}, /* *(%rsp) */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x53, 0x18},
		 CALL_SITE_INDIRECT}, /* 24(%rbx) */
		{{0x90, 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x18},
		 CALL_SITE_INDIRECT},					    /* 24(%rsp) */
		{{0x90, 0x90, 0xff, 0x15, 1, 2, 3, 4}, CALL_SITE_INDIRECT}, /* (%rip) */
		{{0x90, 0x90, 0xff, 0x90, 1, 2, 3, 4}, CALL_SITE_INDIRECT}, /* disp32(%rax) */
		{{0x90, 0xff, 0x94, 0x24, 1, 2, 3, 4}, CALL_SITE_INDIRECT}, /* disp32(%rsp) */
		{{0x90, 0xff, 0x94, 0xe8, 1, 2, 3, 4}, CALL_SITE_INDIRECT}, /* SIB e8: not direct */
		{{0x90, 0xff, 0x14, 0xc5, 1, 2, 3, 4}, CALL_SITE_INDIRECT}, /* disp32(,%rax,8) */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0}, CALL_SITE_NONE}, /* jmp *%rax */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x15}, CALL_SITE_NONE},
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0x25}, CALL_SITE_NONE},
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x0f, 0x05}, CALL_SITE_NONE},
		{{0xe8, 0, 0, 0, 0, 0x90, 0x90, 0x90}, CALL_SITE_NONE},
	};
	uint64_t ret_target = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sites); i++) {
		memcpy(&code_word, sites[i].code, 8);
		if (call_site__before(read_code, NULL, 0x1008, &ret_target) != sites[i].expected)
			fail_msg("site %zu", i);
	}
	assert_int_equal(ret_target, 0xff8);
	assert_int_equal(call_site__before(read_code, NULL, 0x1009, &ret_target),
			 CALL_SITE_UNREADABLE);
	assert_int_equal(call_site__before(read_code, NULL, 3, &ret_target), CALL_SITE_UNREADABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_call_sites),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
