/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * abi: the records that the BPF programs hand to user space. Fixed widths, no padding that is
 * not named; both sides are built from this one file.
 */
#ifndef PMP_ABI_H
#define PMP_ABI_H

#ifdef __bpf__
typedef __u8 pmp_u8;
typedef __s16 pmp_s16;
typedef __s32 pmp_s32;
typedef __s64 pmp_s64;
typedef __u32 pmp_u32;
typedef __u64 pmp_u64;
#else
#include <stdint.h>
typedef uint8_t pmp_u8;
typedef int16_t pmp_s16;
typedef int32_t pmp_s32;
typedef int64_t pmp_s64;
typedef uint32_t pmp_u32;
typedef uint64_t pmp_u64;
#endif

#define PMP_COMM_LEN	  16
#define PMP_KSYM_LEN	  1024 /* a kernel symbol and its module: KSYM_SYMBOL_LEN is less */
#define PMP_KERNEL_FRAMES 127  /* kernel.perf_event_max_stack's default */
#define PMP_N_REGS	  17   /* x86-64 in DWARF's numbering, 16 is rip */
#define PMP_PAGE	  4096

/*
 * Stack memory per record, in pages, counted from the page that holds sp. An iterator's record
 * has to fit into the kernel's seq buffer of 32 KiB; a sample taken on a CPU has to hold the
 * whole stack at once, for the thread runs on.
 */
#define PMP_TASK_PAGES	 7
#define PMP_SAMPLE_PAGES 63

enum pmp_task_flags {
	PMP_TASK_ON_CPU = 1 << 0, /* was on a CPU while it was read: registers are not its own */
	PMP_TASK_MOVED = 1 << 1,  /* ran between the first and the last word read */
	PMP_TASK_EXITING = 1 << 2,
	PMP_TASK_NO_MEMORY = 1 << 3, /* has no address space: kernel thread, or dead */
	PMP_TASK_SAMPLE = 1 << 4,    /* taken on the CPU itself, hence exact */
};

/*
 * One thread. In the iterator's stream it is followed by n_kernel addresses of 8 bytes and then
 * by stack_len bytes of memory from regs[rsp] upwards, rsp rounded down to a multiple of 8: so
 * each part starts at a multiple of 8, whatever the thread has in rsp.
 */
struct pmp_task {
	pmp_u32 tid;	    /* in the pid namespace of the reader */
	pmp_u32 kernel_tid; /* in the initial pid namespace: the key of `wanted` */
	pmp_u32 flags;	    /* enum pmp_task_flags */
	pmp_u32 state;	    /* task_struct's __state; 0: runnable */
	pmp_u64 switches;   /* voluntary and involuntary context switches so far */
	pmp_u64 runtime;    /* ns on a CPU so far */
	pmp_u64 start_time; /* ns since boot */
	pmp_u64 thread_pointer;
	pmp_u64 regs[PMP_N_REGS];
	pmp_u32 cs; /* 0x33: 64-bit user code */
	pmp_u32 n_kernel;
	pmp_u32 stack_len;
	char comm[PMP_COMM_LEN];
	pmp_u32 reserved;
};

/* A ring buffer record: a thread sampled while it ran. */
struct pmp_sample {
	struct pmp_task task;
	pmp_u64 kernel[PMP_KERNEL_FRAMES];
	pmp_u8 stack[PMP_SAMPLE_PAGES * PMP_PAGE];
};

/*
 * Unwind tables for the samplers: .eh_frame, made ready for a search in BPF. A row holds from its
 * pc up to the next row's; the last row of an object has rule 0.
 */
struct pmp_row {
	pmp_u32 pc;   /* address in the object minus the table's base */
	pmp_u32 rule; /* index into the rules */
};

enum pmp_cfa {
	PMP_CFA_NONE = 0, /* no unwind information: rule 0 */
	PMP_CFA_REG,	  /* cfa_reg + cfa_offset */
	PMP_CFA_DEREF,	  /* *(cfa_reg + cfa_offset) + cfa_offset2 */
	PMP_CFA_PLT,	  /* cfa_reg + cfa_offset + ((pc & 15) >= cfa_offset2 ? 8 : 0) */
	/* All registers lie in the struct sigcontext at cfa_reg + cfa_offset, as the kernel puts it
	 * on the stack of a signal handler (arch/x86/include/uapi/asm/sigcontext.h). */
	PMP_CFA_SIGNAL,
	PMP_CFA_UNSUPPORTED, /* there is unwind information, but it says more than a rule can */
};

enum pmp_ra {
	PMP_RA_OFFSET = 0, /* saved at CFA + ra_offset */
	PMP_RA_REG,	   /* in register ra_reg */
	PMP_RA_UNDEFINED,  /* this is the outermost frame */
};

/* The registers whose place a rule knows; all others are the caller's own. */
enum pmp_saved {
	PMP_SAVED_RBX,
	PMP_SAVED_RBP,
	PMP_SAVED_R12,
	PMP_SAVED_R13,
	PMP_SAVED_R14,
	PMP_SAVED_R15,
	PMP_SAVED_RSP, /* PMP_SAVED_SAME: it is the CFA, as almost always */
	PMP_N_SAVED
};

#define PMP_SAVED_SAME 0x7fff /* the register is the caller's own */
#define PMP_SAVED_LOST 0x7ffe /* the caller's value cannot be had */

#define PMP_RULE_SIGNAL_FRAME (1 << 0) /* what it returns to was interrupted, not calling */

struct pmp_rule {
	pmp_u8 cfa; /* enum pmp_cfa */
	pmp_u8 cfa_reg;
	pmp_u8 ra; /* enum pmp_ra */
	pmp_u8 ra_reg;
	pmp_u8 flags;
	pmp_u8 saved_reg; /* PMP_N_REGS: saved[] counts from the CFA; else from this register */
	pmp_u8 reserved[2];
	pmp_s32 cfa_offset;
	pmp_s32 cfa_offset2;
	pmp_s32 ra_offset;
	pmp_s16 saved[PMP_N_SAVED]; /* offsets in bytes, or PMP_SAVED_SAME or _LOST */
	pmp_u8 reserved2[6];
};

_Static_assert(sizeof(struct pmp_row) == 8, "pmp_row is an ABI");
_Static_assert(sizeof(struct pmp_rule) == 40, "pmp_rule is an ABI");

/* Executable memory of a process. A process' mappings ascend and do not overlap. */
struct pmp_mapping {
	pmp_u64 start, end;
	pmp_u64 base; /* where the table's base is in the target: what row.pc counts from */
	/*
	 * 8 bytes of the object's build id, and where they are in the target: what lies there while
	 * the mapping still is what the table was made from. check_addr 0: not known.
	 */
	pmp_u64 check_addr, check;
	pmp_u32 first_row, n_rows; /* n_rows 0: no unwind information (JIT code, unreadable file) */
};

/* A process that is sampled, by its pid in the reader's pid namespace. */
struct pmp_process {
	pmp_u32 first_mapping, n_mappings; /* n_mappings 0: not known yet */
	pmp_u32 generation; /* of its mappings: no other process or time has the same; 0: none */
	pmp_u32 asked;	    /* user space has been asked to look at its mappings (again) */
};

/*
 * The pid of no process: what is wanted but cannot be given an entry of its own (there is no room,
 * or it is about to end, and nobody would remove the entry) is sampled as this one.
 */
#define PMP_NOBODY (~0u)

/* How the unwinding of a user stack ended. */
enum pmp_status {
	PMP_STATUS_WHOLE,
	PMP_STATUS_TRUNCATED,	    /* more frames than max_frames */
	PMP_STATUS_GUESSED,	    /* whole, but over a frame-pointer step */
	PMP_STATUS_FRAME_POINTERS,  /* the kernel's own walk: ends anywhere */
	PMP_STATUS_NO_CFI,	    /* no unwind information, and no frame pointer to go by */
	PMP_STATUS_UNSUPPORTED,	    /* unwind information that a rule cannot say */
	PMP_STATUS_UNREADABLE,	    /* stack memory that is not there (paged out?) */
	PMP_STATUS_IMPLAUSIBLE,	    /* led to where no caller can be */
	PMP_STATUS_NO_MAPPING,	    /* code that was mapped since user space last looked */
	PMP_STATUS_STALE,	    /* the same place holds another object since then */
	PMP_STATUS_UNKNOWN_PROCESS, /* user space has not looked at the process yet */
	PMP_STATUS_NOT_64_BIT,
	PMP_N_STATUS
};

/* Added to a status: whether the code is still what it was could not be read. */
#define PMP_STATUS_UNVERIFIED 0x100

#define PMP_USER_FRAMES 512

/* Marks in the addresses of user frames; addresses end below. */
#define PMP_FRAME_SIGNAL (1ULL << 63) /* a signal's trampoline */
#define PMP_FRAME_EXACT	 (1ULL << 62) /* not a return address */
#define PMP_FRAME_PC	 (PMP_FRAME_EXACT - 1)

/* What the samplers' ring buffer holds: a struct pmp_event first, by its type what follows. */
enum pmp_event_type {
	PMP_EVENT_USER_STACK,	/* struct pmp_stack_event */
	PMP_EVENT_KERNEL_STACK, /* struct pmp_stack_event */
	PMP_EVENT_THREAD,	/* struct pmp_thread_event */
	PMP_EVENT_SAMPLE,	/* struct pmp_sample_event */
	PMP_EVENT_LOOK,		/* look at this process' mappings, please */
	PMP_EVENT_FORK,		/* pid, child of other_pid, begins with its mappings */
	PMP_EVENT_EXEC,
	PMP_EVENT_EXIT,
};

struct pmp_event {
	pmp_u32 type; /* enum pmp_event_type */
	pmp_u32 pid;  /* the process, in the reader's pid namespace */
	pmp_u32 other_pid;
	pmp_u32 generation;
	pmp_u64 time; /* ns, CLOCK_MONOTONIC */
};

/* A stack, the first time that it is met; later only its id. */
struct pmp_stack_event {
	struct pmp_event event;
	pmp_u64 id;	/* hash of all that follows and of the generation; never 0 */
	pmp_u32 status; /* enum pmp_status; of a kernel stack 0, or 1: it has more frames */
	pmp_u32 n;	/* frames that follow, innermost first, 8 bytes each */
};

/* A thread, the first time that it is met under this name; only where threads are told apart. */
struct pmp_thread_event {
	struct pmp_event event;
	pmp_u64 id;
	pmp_u32 tid; /* in the reader's pid namespace */
	char comm[PMP_COMM_LEN];
	pmp_u32 reserved;
};

/* What was counted. */
struct pmp_count_key {
	pmp_u64 user; /* stack ids; 0: there is none */
	pmp_u64 kernel;
	pmp_u64 thread; /* 0: threads are not told apart */
	pmp_u32 pid;
	pmp_u32 runnable; /* off-CPU: it was preempted, it did not wait */
};

struct pmp_count {
	pmp_u64 n;
	pmp_u64 ns; /* off-CPU: time spent there */
};

struct pmp_sample_event {
	struct pmp_event event;
	struct pmp_count_key key;
	pmp_u32 tid;
	pmp_u32 cpu;
	pmp_u32 n_user, n_kernel;
	char comm[PMP_COMM_LEN];
};

/* A thread off the CPU, by its number in the initial pid namespace. */
struct pmp_wait {
	struct pmp_count_key key;
	pmp_u64 since;	     /* ns, CLOCK_MONOTONIC */
	pmp_u64 switches;    /* its switch count then: it must be the same when it comes back */
	pmp_u32 from_before; /* put there by user space: it was off the CPU at the start */
	pmp_u32 reserved;
};

/* What may happen to a tick of the clock; a counter each, per CPU. */
struct pmp_stats {
	pmp_u64 ticks;	    /* times that the program was run by a sampling event */
	pmp_u64 idle;	    /* of these, on a CPU that had nothing to do */
	pmp_u64 samples;    /* of these, in a process that is sampled; off-CPU: waits that ended */
	pmp_u64 unsent;	    /* samples lost: the ring buffer had no room for a new stack */
	pmp_u64 uncounted;  /* samples lost: the counts had no room for a new key */
	pmp_u64 unbegun;    /* off-CPU: waits that ended whose begin is not known */
	pmp_u64 waits_full; /* off-CPU: waits that could not be put down when they began */
	pmp_u64 asks_lost;  /* asks or news of processes that found no room */
	pmp_u64 preempted_ns; /* off-CPU: time spent runnable, whether it is counted or not */
};

_Static_assert(sizeof(struct pmp_task) == 216, "pmp_task is an ABI");
_Static_assert(sizeof(struct pmp_task) + PMP_KERNEL_FRAMES * 8 + PMP_TASK_PAGES * PMP_PAGE <= 32768,
	       "an iterator record must fit into the seq buffer");

#endif
