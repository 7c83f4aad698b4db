// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/strbuf.h"
#include "dwarf/code_ranges.h"
#include "dwarf/lines.h"
#include "dwarf/names.h"
#include "dwarf/sections.h"
#include "dwarf/subprograms.h"

struct unit {
	UT_hash_handle hh;
	Dwarf_Off offset;
	Dwarf_Die die;	     /* has the line table */
	Dwarf_Die functions; /* the split unit's, where there is one */
	int language;
	struct subprograms *subprograms;
};

struct dwarf_file {
	int fd;
	Elf *elf;
	struct sections *sections;
	Dwarf *dwarf;
};

struct debug_info {
	struct dwarf_file main, alt; /* what .gnu_debugaltlink names; -1: nothing */
	Dwarf_Aranges *aranges;	     /* NULL: there are none */
	struct code_ranges *ranges;  /* of all units; NULL: not needed yet */
	struct unit *units;	     /* those that were needed */
	bool damaged;
	struct strbuf text;
	struct debug_frame frames[DEBUG_INFO_MAX_INLINED + 1];
	struct {
		size_t name, file; /* in text */
	} at[DEBUG_INFO_MAX_INLINED + 1];
};

/* What the units themselves say of their code: all of them have to be read for it. */
static int read_units(struct debug_info *d)
{
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Die die;

	d->ranges = code_ranges__new();
	if (!d->ranges)
		return -ENOMEM;
	while (dwarf_get_units(d->main.dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (code_ranges__add(d->ranges, &die))
			return -ENOMEM;
	}
	code_ranges__sort(d->ranges);
	return 0;
}

/* .debug_aranges is quick, but many a compiler leaves it out, or units out of it. */
static int find_unit_die(struct debug_info *d, uint64_t addr, Dwarf_Die *ret_die)
{
	Dwarf_Arange *range = d->aranges ? dwarf_getarange_addr(d->aranges, addr) : NULL;
	Dwarf_Off offset;

	if (range && !dwarf_getarangeinfo(range, NULL, NULL, &offset) &&
	    dwarf_offdie(d->main.dwarf, offset, ret_die))
		return 0;
	if (!d->ranges && read_units(d)) {
		code_ranges__free(d->ranges);
		d->ranges = NULL;
		return -ENOMEM;
	}
	return code_ranges__find(d->ranges, addr, ret_die);
}

/* Returns 0, -EINVAL or -ENOMEM. */
static int begin(struct dwarf_file *f)
{
	elf_version(EV_CURRENT);
	f->elf = elf_begin(f->fd, ELF_C_READ_MMAP, NULL);
	if (!f->elf)
		return -EINVAL;
	f->sections = sections__prepare(f->elf, f->fd);
	if (!f->sections)
		return -errno;
	f->dwarf = dwarf_begin_elf(f->elf, DWARF_C_READ, NULL);
	return f->dwarf ? 0 : -EINVAL;
}

static void end(struct dwarf_file *f)
{
	if (f->dwarf)
		dwarf_end(f->dwarf);
	elf_end(f->elf);
	sections__free(f->sections);
	if (f->fd >= 0)
		close(f->fd);
}

/* libdw would look for the file itself, wherever the name sends it; and without it what is there
 * cannot be read. */
static int set_alt(struct debug_info *d)
{
	const char *name;
	const void *id;
	int err;

	if (dwelf_dwarf_gnu_debugaltlink(d->main.dwarf, &name, &id) <= 0)
		return 0;
	err = d->alt.fd < 0 ? -EINVAL : begin(&d->alt);
	if (!err)
		dwarf_setalt(d->main.dwarf, d->alt.dwarf);
	return err;
}

struct debug_info *debug_info__new(int fd, int alt_fd)
{
	struct debug_info *d = calloc(1, sizeof(*d));
	int err;

	if (!d) {
		close(fd);
		if (alt_fd >= 0)
			close(alt_fd);
		errno = ENOMEM;
		return NULL;
	}
	d->main.fd = fd;
	d->alt.fd = alt_fd;
	err = begin(&d->main);
	if (!err)
		err = set_alt(d);
	if (!err) {
		size_t n;

		if (dwarf_getaranges(d->main.dwarf, &d->aranges, &n))
			d->aranges = NULL;
		return d;
	}
	debug_info__free(d);
	errno = -err;
	return NULL;
}

void debug_info__free(struct debug_info *d)
{
	struct unit *u, *next;

	if (!d)
		return;
	HASH_ITER (hh, d->units, u, next) {
		HASH_DEL(d->units, u);
		subprograms__free(u->subprograms);
		free(u);
	}
	code_ranges__free(d->ranges);
	end(&d->main);
	end(&d->alt);
	strbuf__free(&d->text);
	free(d);
}

/* Whether opening `path` can do harm: to a FIFO, a device. It may be missing. */
static bool is_special(const char *dir, const char *path)
{
	struct strbuf name = STRBUF_INIT;
	struct stat st;
	bool special;

	if (*path != '/' && dir)
		strbuf__printf(&name, "%s/", dir);
	strbuf__append_str(&name, path);
	special = name.failed || (!stat(name.data, &st) && !S_ISREG(st.st_mode));
	strbuf__free(&name);
	return special;
}

/*
 * Where the file lies, with a slash at its end. Returns 0, or -ENOENT where another file is there
 * by now, or the file is in another root than ours: then what its paths mean is not what we would
 * open.
 */
static int find_folder(int fd, char ret_folder[PATH_MAX])
{
	struct stat own, there;
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret_folder, PATH_MAX - 1);
	if (n <= 0 || ret_folder[0] != '/')
		return -ENOENT;
	ret_folder[n] = '\0';
	if (fstat(fd, &own) || stat(ret_folder, &there) || own.st_ino != there.st_ino ||
	    own.st_dev != there.st_dev)
		return -ENOENT;
	*(strrchr(ret_folder, '/') + 1) = '\0';
	return 0;
}

/* libdw opens the file of a split unit by itself: next to `fd`, then where it was compiled. */
static bool may_open_split(int fd, Dwarf_Die *skeleton)
{
	Dwarf_Attribute attr;
	const char *dir = dwarf_formstring(dwarf_attr(skeleton, DW_AT_comp_dir, &attr));
	const char *name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_dwo_name, &attr));
	char folder[PATH_MAX];

	if (!name)
		name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_GNU_dwo_name, &attr));
	return name && !find_folder(fd, folder) && !is_special(NULL, name) &&
	       !is_special(folder, name) && !is_special(dir, name);
}

static struct unit *find_unit(struct debug_info *d, uint64_t addr)
{
	Dwarf_Die die, split;
	struct unit *u;
	Dwarf_Off offset;
	uint8_t type;

	if (find_unit_die(d, addr, &die))
		return NULL;
	if (dwarf_tag(&die) != DW_TAG_compile_unit && dwarf_tag(&die) != DW_TAG_skeleton_unit) {
		d->damaged = true;
		return NULL;
	}
	offset = dwarf_dieoffset(&die);
	HASH_FIND(hh, d->units, &offset, sizeof(offset), u);
	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->offset = offset;
	u->die = u->functions = die;
	if (!dwarf_cu_info(die.cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) &&
	    type == DW_UT_skeleton && may_open_split(d->main.fd, &die) &&
	    !dwarf_cu_info(die.cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) &&
	    dwarf_tag(&split) == DW_TAG_compile_unit)
		u->functions = split;
	u->language = dwarf_srclang(&u->functions);
	u->subprograms = subprograms__new(&u->functions);
	if (u->subprograms)
		HASH_ADD(hh, d->units, offset, sizeof(u->offset), u);
	if (u->subprograms && u->hh.tbl)
		return u;
	subprograms__free(u->subprograms);
	free(u);
	return NULL;
}

#define NO_TEXT SIZE_MAX

static size_t put_file(struct debug_info *d, const Dwarf_Die *unit, const char *source)
{
	size_t at = d->text.len;

	if (!source || lines__append_file(unit, source, &d->text))
		return NO_TEXT;
	strbuf__append_char(&d->text, '\0');
	return at;
}

static size_t put_name(struct debug_info *d, const struct unit *u, const Dwarf_Die *function,
		       bool *ret_mangled)
{
	size_t at = d->text.len;

	if (names__append(function, u->language, &d->text, ret_mangled))
		return NO_TEXT;
	strbuf__append_char(&d->text, '\0');
	return at;
}

/* Where `inlined` was called, which is where the frame around it is. */
static void put_call_site(struct debug_info *d, Dwarf_Die *inlined, size_t number)
{
	Dwarf_Attribute attr;
	Dwarf_Word file, line;
	Dwarf_Die unit;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attr), &line) || !line ||
	    line > INT32_MAX ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attr), &file) ||
	    !dwarf_diecu(inlined, &unit, NULL, NULL))
		return;
	d->at[number].file = put_file(d, &unit, lines__source(&unit, file));
	if (d->at[number].file == NO_TEXT)
		return;
	d->frames[number].line = (int)line;
	d->frames[number].no_address = true;
}

size_t debug_info__find(struct debug_info *d, uint64_t addr, bool exact,
			const struct debug_frame **ret_frames)
{
	Dwarf_Die scopes[DEBUG_INFO_MAX_INLINED + 1];
	struct unit *u = find_unit(d, addr);
	struct code_line line;
	size_t n = 0;

	if (!u)
		return 0;
	strbuf__reset(&d->text);
	memset(d->frames, 0, sizeof(d->frames));
	if (!subprograms__find(u->subprograms, addr, &scopes[0]))
		n = 1 + subprograms__inlined(&scopes[0], addr, scopes + 1, DEBUG_INFO_MAX_INLINED);
	for (size_t i = 0; i <= DEBUG_INFO_MAX_INLINED; i++)
		d->at[i].name = d->at[i].file = NO_TEXT;
	if (!lines__find(&u->die, addr, &line)) {
		d->at[0].file = put_file(d, &u->die, line.source);
		d->frames[0].line = line.line;
		d->frames[0].no_address = exact && line.is_start;
	}
	for (size_t i = 0; i < n; i++) {
		Dwarf_Die *scope = &scopes[n - 1 - i];

		d->at[i].name = put_name(d, u, scope, &d->frames[i].mangled);
		if (i + 1 < n)
			put_call_site(d, scope, i + 1);
	}
	if (!n && d->at[0].file != NO_TEXT)
		n = 1;
	if (d->text.failed)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (d->at[i].name != NO_TEXT)
			d->frames[i].name = d->text.data + d->at[i].name;
		if (d->at[i].file != NO_TEXT)
			d->frames[i].file = d->text.data + d->at[i].file;
	}
	*ret_frames = d->frames;
	return n;
}

static int function_at(void *arg, uint64_t addr, Dwarf_Die *ret_function)
{
	struct unit *u = find_unit(arg, addr);

	return u ? subprograms__find(u->subprograms, addr, ret_function) : -ENOENT;
}

/* A function that .symtab defines. */
static int symbol(void *arg, const char *name, uint64_t *ret_addr)
{
	struct debug_info *d = arg;
	Elf *elf = dwarf_getelf(d->main.dwarf);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;
		GElf_Sym sym;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 1; data && gelf_getsym(data, i, &sym); i++) {
			const char *text;

			if (sym.st_shndx == SHN_UNDEF)
				continue;
			text = elf_strptr(elf, header.sh_link, sym.st_name);
			if (text && !strcmp(text, name)) {
				*ret_addr = sym.st_value;
				return 0;
			}
		}
	}
	return -ENOENT;
}

size_t debug_info__tail_calls(struct debug_info *d, uint64_t return_addr, uint64_t callee_addr,
			      uint64_t ret_addrs[TAIL_CALLS_MAX])
{
	const struct tail_calls_space space = {
		.function_at = function_at,
		.symbol = symbol,
		.arg = d,
	};

	return tail_calls__find(&space, return_addr, callee_addr, ret_addrs);
}

bool debug_info__damaged(const struct debug_info *d)
{
	return d->damaged || sections__damaged(d->main.sections) ||
	       sections__damaged(d->alt.sections);
}
