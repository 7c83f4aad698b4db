/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugfile: finds the separate debug file of an object, as gdb does: by build id, then by the
 * name and checksum in .gnu_debuglink, then by asking debuginfod's servers. Only regular files are
 * read, and only one that proves to belong to the object is taken.
 */
#ifndef PMP_DEBUGFILE_H
#define PMP_DEBUGFILE_H

#include "base/strbuf.h"
#include "proc/elf_file.h"
#include "sym/debuginfod.h"

/* Where to look, and what was met there. All is borrowed. */
struct debugfile_search {
	const char *dir;	       /* NULL: /usr/lib/debug */
	struct debuginfod *debuginfod; /* NULL: not to be asked */
	/* a line is added for each file that has the name, but belongs to another build; NULL: not
	 */
	struct strbuf *refused;
};

/*
 * `path`: of the object, as mapped; `root`: that it is in (proc/root.h), which has debug files of
 * its own, or -1 for ours. Returns 0 and a file for the caller to free; -ENOENT: there is none;
 * -ENOMEM.
 */
int debugfile__find(const struct debugfile_search *search, const struct elf_file *object,
		    const char *path, int root, struct elf_file **ret_file);

/*
 * The file that dwz moved common debug information to, which .gnu_debugaltlink of `file` names: by
 * its build id in the folder of debug files, then by name, and only if the build id is the right
 * one. `root`: which `file` may be from, or -1. Returns 0 and a descriptor for the caller to close,
 * -1 if `file` has no such section; -ENOENT: it is not to be found; -ENOMEM.
 */
int debugfile__find_alt(const struct debugfile_search *search, const struct elf_file *file,
			int root, int *ret_fd);

#endif
