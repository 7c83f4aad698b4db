/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * demangle: symbol names as gdb prints them: C++ and Rust by libiberty, and what looks like GNAT's
 * encoding of Ada names, as gdb has it, which many a C name does (f.part.0 is f.part, a__b is
 * a.b). The names are not trusted: one of a few hundred bytes can stand for gigabytes.
 */
#ifndef PMP_DEMANGLE_H
#define PMP_DEMANGLE_H

#include "base/strbuf.h"

#define DEMANGLE_MAX (64u << 10) /* bytes of a demangled name */

/*
 * Append the demangled form, parameters included; what stands before a C++ name (`.`, `$`) and
 * from a `@` on is kept. Returns 0; -ENOENT: gdb prints the name as it is; -E2BIG: so long that
 * it is not demangled; -ENOMEM. On failure nothing is appended.
 */
int demangle(const char *name, struct strbuf *ret_text);

/* The same of a function's linkage name from DWARF: gdb shows neither return type nor parameters
 * there (cp_remove_params in its cp-support.c), unless its parser cannot read the name, which is
 * so with what compilers call lambdas; and it does not try Ada. */
int demangle_function(const char *name, struct strbuf *ret_text);

#endif
