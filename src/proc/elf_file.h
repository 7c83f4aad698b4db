/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_file: bounds-checked access to one x86-64 ELF program, library or debug file, in a file or
 * in memory. Nothing in its bytes is trusted. A file is read with pread, never mapped.
 * What the functions below return is owned by the struct elf_file unless they say otherwise.
 */
#ifndef PMP_ELF_FILE_H
#define PMP_ELF_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct elf_section {
	const char *name; /* "" where it has none */
	Elf64_Shdr shdr;
};

/* Where some of an object's bytes are. */
struct elf_range {
	uint64_t addr;	 /* as the program headers have it */
	uint64_t offset; /* in the file */
	uint64_t len;	 /* in bytes, all of them within the file; 0: there is no such range */
};

/*
 * NULL with errno: EINVAL if this is no 64-bit little-endian x86-64 program, library or debug
 * file (what dwz moves out of several is an ET_REL), ENOMEM, EIO. `fd` is taken over, also on
 * failure; it has to be a regular file.
 */
struct elf_file *elf_file__from_fd(int fd);

/* The bytes are borrowed for as long as the struct lives. */
struct elf_file *elf_file__from_memory(const void *bytes, size_t len);

void elf_file__free(struct elf_file *f);

/* Of the file as it was when it was opened. */
uint64_t elf_file__size(const struct elf_file *f);

/* The file once more, for the caller to close; -EBADF: it is in memory. */
int elf_file__dup(const struct elf_file *f);

/* Whether there is DWARF in it (.debug_info). */
bool elf_file__has_debug_info(const struct elf_file *f);

/* All of [offset, offset + len) or nothing. Returns 0, -EINVAL (not within the file) or -EIO. */
int elf_file__read(const struct elf_file *f, uint64_t offset, void *ret_bytes, size_t len);

/* The same into memory of its own, with a NUL after it, for the caller to free. A `len` over
 * `max` is an -EFBIG. */
int elf_file__read_alloc(const struct elf_file *f, uint64_t offset, uint64_t len, size_t max,
			 void **ret_bytes);

const Elf64_Ehdr *elf_file__header(const struct elf_file *f);
const Elf64_Phdr *elf_file__segments(const struct elf_file *f, size_t *ret_n);

/* Section headers, number 0 included; none where they are absent or make no sense. */
const struct elf_section *elf_file__sections(const struct elf_file *f, size_t *ret_n);

/* The bytes at `addr` up to the end of the PT_LOAD's file data that holds it, or -ENOENT. */
int elf_file__at_address(const struct elf_file *f, uint64_t addr, struct elf_range *ret_range);

/* NULL where there is none. */
const uint8_t *elf_file__build_id(const struct elf_file *f, size_t *ret_len);

/*
 * 8 bytes that other files do not have at this address, for who can read a process' memory but not
 * ask which file is mapped: the start of the build id; without one, e_shoff of the ELF header,
 * which moves with the size of all that is in front. Returns 0, or -ENOENT where neither is loaded
 * into memory that stays as it is.
 */
int elf_file__fingerprint(const struct elf_file *f, uint64_t *ret_addr, uint64_t *ret_word);

/*
 * .eh_frame and .eh_frame_hdr, by way of PT_GNU_EH_FRAME, else of the section headers (then
 * without .eh_frame_hdr). Where only program headers are there, .eh_frame ends with the PT_LOAD
 * that holds it: its terminator may come earlier. Returns 0 or -ENOENT.
 */
int elf_file__eh_frame(const struct elf_file *f, struct elf_range *ret_eh_frame,
		       struct elf_range *ret_hdr);

/*
 * .debug_frame, inflated if it is compressed (zlib only), for the caller to free. Its size is
 * bounded by that of the file. Returns 0; -ENOENT: there is none; -EFBIG, -EINVAL, -EIO, -ENOMEM.
 */
int elf_file__debug_frame(const struct elf_file *f, void **ret_bytes, size_t *ret_len);

/* libelf's handle, made at the first call (ELF_C_READ); NULL if libelf refuses the file. */
Elf *elf_file__libelf(struct elf_file *f);

#endif
