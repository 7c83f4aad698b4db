// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct row {
	Dwarf_Addr addr;
	int line;
	bool is_stmt, ends_sequence;
	const char *source;
	unsigned int discriminator;
};

static bool read_row(Dwarf_Lines *lines, size_t i, struct row *ret_row)
{
	Dwarf_Line *line = dwarf_onesrcline(lines, i);
	struct row row = {0};

	if (!line || dwarf_lineaddr(line, &row.addr) || dwarf_lineno(line, &row.line) ||
	    dwarf_linebeginstatement(line, &row.is_stmt) ||
	    dwarf_lineendsequence(line, &row.ends_sequence) ||
	    dwarf_linediscriminator(line, &row.discriminator) || row.line < 0)
		return false;
	row.source = dwarf_linesrc(line, NULL, NULL);
	*ret_row = row;
	return true;
}

static bool same_source(const struct row *a, const struct row *b)
{
	return a->source == b->source || (a->source && b->source && !strcmp(a->source, b->source));
}

/* The number of the last row at or before `addr`, or n. */
static size_t last_row(Dwarf_Lines *lines, size_t n, uint64_t addr)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		Dwarf_Addr at;

		if (!dwarf_lineaddr(dwarf_onesrcline(lines, mid), &at) && at <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : n;
}

/*
 * Step back over rows that gdb does not take up: those of no line; and one that changes the file
 * in the middle of a statement, where one begins at the same address.
 */
static bool step_back(Dwarf_Lines *lines, size_t *i, struct row *row)
{
	struct row before;

	for (;;) {
		bool ignored = row->line == 0;

		if (row->ends_sequence)
			return false;
		if (!ignored && !row->is_stmt && *i > 0 && read_row(lines, *i - 1, &before) &&
		    before.addr == row->addr && !before.ends_sequence &&
		    !same_source(&before, row)) {
			for (size_t j = *i; j > 0 && !ignored; j--)
				if (!read_row(lines, j - 1, &before) || before.addr != row->addr ||
				    before.ends_sequence)
					break;
				else
					ignored = before.is_stmt;
		}
		if (!ignored)
			return true;
		if (*i == 0 || !read_row(lines, --*i, row))
			return false;
	}
}

/* At the same address and of the same file, one that begins a statement is preferred. */
static void prefer_statement(Dwarf_Lines *lines, size_t *i, struct row *row)
{
	struct row before;

	for (size_t j = *i; !row->is_stmt && j > 0; j--) {
		if (!read_row(lines, j - 1, &before) || before.addr != row->addr ||
		    before.ends_sequence || !before.line || !same_source(&before, row))
			return;
		if (before.is_stmt) {
			*row = before;
			*i = j - 1;
		}
	}
}

/* Rows that only tell discriminators apart begin nothing of their own. */
static bool repeats(Dwarf_Lines *lines, size_t i, const struct row *row)
{
	bool discriminators = row->discriminator != 0;
	struct row before;

	while (i > 0 && read_row(lines, --i, &before) && !before.ends_sequence &&
	       before.line == row->line && same_source(&before, row)) {
		discriminators |= before.discriminator != 0;
		if (discriminators && before.addr < row->addr)
			return true;
	}
	return false;
}

int lines__find(const Dwarf_Die *unit, uint64_t addr, struct code_line *ret_line)
{
	Dwarf_Die die = *unit;
	Dwarf_Lines *lines;
	struct row row;
	size_t n, i;

	if (dwarf_getsrclines(&die, &lines, &n))
		return -ENOENT;
	i = last_row(lines, n, addr);
	if (i == n || !read_row(lines, i, &row) || !step_back(lines, &i, &row))
		return -ENOENT;
	prefer_statement(lines, &i, &row);
	if (!row.source)
		return -ENOENT;
	*ret_line = (struct code_line){
		.source = row.source,
		.line = row.line,
		.is_start = row.addr == addr && row.is_stmt && !repeats(lines, i, &row),
	};
	return 0;
}

const char *lines__source(const Dwarf_Die *unit, uint64_t index)
{
	Dwarf_Die die = *unit;
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(&die, &files, &n) || index >= n)
		return NULL;
	return dwarf_filesrc(files, index, NULL, NULL);
}

static const char *string_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr(die, attribute, &attr));
}

/* Whether `source` is right in the folder `dir`. */
static bool is_in(const char *source, const char *dir)
{
	size_t len = strlen(dir);

	return !strncmp(source, dir, len) && source[len] == '/' && !strchr(source + len + 1, '/');
}

/* Whether the unit's table has the folder of `source` with its full path. libdw puts the folder of
 * compilation before what is relative, so this and a relative one look the same. */
static bool has_absolute_folder(Dwarf_Die *unit, const char *source, const char *comp_dir)
{
	const char *const *dirs;
	Dwarf_Files *files;
	size_t n, n_files, comp_len = strlen(comp_dir);
	Dwarf_Half version = 4;
	bool found = false;

	if (dwarf_getsrcfiles(unit, &files, &n_files) || dwarf_getsrcdirs(files, &dirs, &n))
		return false;
	dwarf_cu_info(unit->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
	/* number 0 is the folder of compilation: up to DWARF 4 it is not in the table */
	for (size_t i = version < 5; i < n; i++) {
		if (!dirs[i])
			continue;
		if (dirs[i][0] == '/')
			found |= is_in(source, dirs[i]);
		else if (is_in(source + comp_len + 1, dirs[i]))
			return false;
	}
	return found;
}

int lines__append_file(const Dwarf_Die *unit, const char *source, struct strbuf *ret_text)
{
	Dwarf_Die die = *unit;
	const char *comp_dir = string_of(&die, DW_AT_comp_dir);
	const char *name = string_of(&die, DW_AT_name);
	size_t len = comp_dir ? strlen(comp_dir) : 0;

	if (len && !strncmp(source, comp_dir, len) && source[len] == '/') {
		if ((name && !strcmp(source + len + 1, name)) ||
		    !has_absolute_folder(&die, source, comp_dir))
			source += len + 1;
	}
	return strbuf__append_str(ret_text, source);
}
