// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/detect.h"

#include "read/pmp.h"
#include "read/scan.h"

#define FOLDED_LINES 3 /* so many have to agree, if there are as many */

/* `5795.464084:` */
static bool is_time(struct text word)
{
	const char *dot = word.len ? memchr(word.str, '.', word.len) : NULL;
	uint64_t value;

	if (!dot || !scan__ends(word, ":"))
		return false;
	word.len--;
	return scan__number(scan__until(word, (size_t)(dot - word.str)), &value) &&
	       word.len - (size_t)(dot - word.str) > 3 &&
	       scan__number(scan__from(word, (size_t)(dot + 1 - word.str)), &value);
}

static bool is_tid(struct text word)
{
	const char *slash = word.len ? memchr(word.str, '/', word.len) : NULL;
	uint64_t value;

	if (!slash)
		return scan__number(word, &value);
	return scan__number(scan__until(word, (size_t)(slash - word.str)), &value) &&
	       scan__number(scan__from(word, (size_t)(slash + 1 - word.str)), &value);
}

static bool is_perf_header(struct text line)
{
	bool tid = false, cpu = false;

	if (line.str[0] == '\t' || line.str[0] == '#')
		return false;
	scan__word(&line); /* of the comm */
	while (line.len) {
		struct text word = scan__word(&line);

		if ((tid || cpu) && is_time(word))
			return true;
		cpu = tid && scan__starts(word, "[") && scan__ends(word, "]");
		tid = is_tid(word);
	}
	return false;
}

/* `\t  7f0123456789 symbol` */
static bool is_tab_frame(struct text line)
{
	struct text word;

	if (line.str[0] != '\t')
		return false;
	word = scan__word(&line);
	return scan__hex(word, 4) && scan__trim(line).len;
}

/* `    -                comm (77)` */
static bool is_bcc_thread(struct text line)
{
	struct text pid;
	uint64_t value;

	return scan__starts(line, "    -                ") && scan__object(&line, &pid) &&
	       scan__number(pid, &value);
}

static bool is_map(struct text line)
{
	size_t i = 1;

	while (i < line.len && line.str[i] != '[' && !scan__blank(line.str[i]) &&
	       line.str[i] != ':')
		i++;
	return line.str[0] == '@' && i < line.len && line.str[i] == '[';
}

/* `TID 77:`, `PID 77 - process` */
static bool is_eu_header(struct text line)
{
	bool tid = scan__starts(line, "TID "), pid = scan__starts(line, "PID ");
	struct text word;
	uint64_t value;

	if (!tid && !pid)
		return false;
	scan__word(&line);
	word = scan__word(&line);
	if (tid && scan__ends(word, ":"))
		return scan__number(scan__until(word, word.len - 1), &value);
	return pid && scan__number(word, &value) && scan__is(scan__word(&line), "-");
}

static enum input_format look_at_eu_frame(struct detect *d, struct text line)
{
	struct text word, next;
	const char *module;

	scan__word(&line);
	word = scan__word(&line);
	if (!scan__starts(word, "0x") || !scan__hex(scan__from(word, 2), 8))
		return INPUT_GDB;
	d->eu_frame = true;
	d->eu_frames = true;
	next = line;
	word = scan__word(&next);
	if (scan__is(word, "in") || scan__is(word, "??"
						   "()"))
		return INPUT_GDB;
	if (!word.len || scan__is(word, "-"))
		return INPUT_EU;
	module = memmem(line.str, line.len, " - ", 3);
	if (!module)
		return INPUT_EU;
	/* three blanks: what was the next line's indentation */
	return memmem(module + 3, (size_t)(line.str + line.len - module - 3), "   ", 3)
		       ? INPUT_GDB
		       : INPUT_AUTO;
}

static enum input_format look_at_eu(struct detect *d, struct text line)
{
	bool below_frame = d->eu_frame;

	d->eu_frame = false;
	if (line.str[0] == '#')
		return look_at_eu_frame(d, line);
	if (below_frame && scan__starts(line, "    "))
		return INPUT_EU;
	if (scan__starts(line, "Thread"))
		return INPUT_GDB;
	return INPUT_AUTO;
}

static void look_at_folded(struct detect *d, struct text line)
{
	struct text frames;
	uint64_t count;

	d->n_lines++;
	if (scan__blank(line.str[0]) || !scan__count(line, &frames, &count))
		d->not_folded = true;
	else
		d->has_semicolon |= scan__holds(frames, ";");
}

enum input_format detect__line(struct detect *d, struct text line)
{
	bool mark = d->mark, gdb_frame = d->gdb_frame;
	struct text frames;
	uint64_t count;

	if (!scan__trim(line).len)
		return INPUT_AUTO;
	d->mark = d->gdb_frame = false;
	if (d->eu)
		return look_at_eu(d, line);
	look_at_folded(d, line);
	if (is_tab_frame(line))
		return INPUT_BPFTRACE;
	if (gdb_frame)
		return INPUT_GDB;
	if (is_perf_header(line))
		return INPUT_PERF;
	if (line.str[0] == '#') {
		d->mark = true;
		d->gdb_frame = line.len > 1 && scan__digit(line.str[1]);
		return INPUT_AUTO;
	}
	if (is_eu_header(line)) {
		d->eu = true;
		return INPUT_AUTO;
	}
	if (scan__starts(line, "Thread") || scan__starts(line, "TID"))
		return INPUT_GDB;
	if (is_map(line))
		return INPUT_BPFTRACE;
	if (is_bcc_thread(line) || scan__starts(line, "Sampling at ") ||
	    scan__starts(line, "Tracing off-CPU time "))
		return INPUT_BCC;
	if (pmp__parse(line, &frames, &count) && !mark)
		return INPUT_PMP;
	if (d->n_lines >= FOLDED_LINES && !d->not_folded && d->has_semicolon)
		return INPUT_FOLDED;
	return INPUT_AUTO;
}

enum input_format detect__end(const struct detect *d)
{
	if (d->eu_frames)
		return INPUT_EU;
	return d->n_lines && !d->not_folded && d->has_semicolon ? INPUT_FOLDED : INPUT_GDB;
}
