// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/code_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/strbuf.h"
#include "dwarf/worker.h"
#include "proc/object.h"
#include "sym/debugfile.h"
#include "sym/demangle.h"
#include "sym/elfsym.h"
#include "sym/minidebug.h"

#define MAX_TEXT (64u << 20)

struct code_names {
	struct code_names_options options;
	size_t text, left_out; /* bytes of names, also of objects that are gone; names */
	struct worker *worker; /* NULL: debug information is not wanted */
	struct debuginfod *debuginfod;
	struct debugfile_search search;
	struct strbuf refused;
};

/* A name as it is printed, by the raw one. */
struct printed {
	UT_hash_handle hh;
	char *text;
	char raw[]; /* before it a byte: what kind of name it is */
};

/* The frames at one address. */
struct place {
	UT_hash_handle hh;
	uint64_t key;
	size_t n;
	struct named_frame frames[];
};

/* What lies between a call and what it led to. */
struct way {
	UT_hash_handle hh;
	struct {
		uint64_t return_addr, callee_addr;
	} key;
	int n;
	uint64_t addrs[TAIL_CALLS_MAX];
};

#define N_RECENT 1024 /* a power of two */

/* What an object's slot holds. */
struct names {
	struct elfsym *symbols;
	int number; /* of the worker's file; -1: no debug information */
	struct printed *printed;
	struct place *places;
	struct place *recent[N_RECENT]; /* by the end of their keys: a quick look before a search */
	struct way *ways;
};

struct code_names *code_names__new(const struct code_names_options *options)
{
	struct code_names *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->options = *options;
	if (!c->options.max_text)
		c->options.max_text = MAX_TEXT;
	c->debuginfod = debuginfod__new(options->debuginfod);
	if (!c->debuginfod && errno == ENOMEM)
		goto fail;
	c->search = (struct debugfile_search){
		.dir = options->debug_dir,
		.debuginfod = c->debuginfod,
		.refused = &c->refused,
	};
	if (options->no_lines && options->no_inlines)
		return c;
	c->worker = worker__new(options->no_drop);
	if (c->worker)
		return c;
fail:
	code_names__free(c);
	errno = ENOMEM;
	return NULL;
}

void code_names__free(struct code_names *c)
{
	if (!c)
		return;
	worker__free(c->worker);
	debuginfod__free(c->debuginfod);
	strbuf__free(&c->refused);
	free(c);
}

static void names_free(void *data)
{
	struct names *names = data;
	struct printed *p, *next_printed;
	struct place *place, *next_place;
	struct way *way, *next_way;

	HASH_ITER (hh, names->ways, way, next_way) {
		HASH_DEL(names->ways, way);
		free(way);
	}
	HASH_ITER (hh, names->places, place, next_place) {
		HASH_DEL(names->places, place);
		free(place);
	}
	HASH_ITER (hh, names->printed, p, next_printed) {
		HASH_DEL(names->printed, p);
		free(p->text);
		free(p);
	}
	elfsym__free(names->symbols);
	free(names);
}

/* The worker's number for the file with the object's DWARF, -1 (there is none), or -ENOMEM. */
static int add_debug(struct code_names *c, const struct elf_file *object,
		     const struct elf_file *debug, int root)
{
	const struct elf_file *file = debug && elf_file__has_debug_info(debug) ? debug : object;
	int fd, alt = -1, err;

	if (!c->worker || !elf_file__has_debug_info(file))
		return -1;
	fd = elf_file__dup(file);
	if (fd < 0)
		return -1;
	err = debugfile__find_alt(&c->search, file, root, &alt);
	if (err) {
		close(fd);
		return err == -ENOMEM ? err : -1;
	}
	return worker__add(c->worker, fd, alt);
}

static struct names *names_of(struct code_names *c, struct object *obj)
{
	struct names *names = object__slot(obj, OBJECT_SLOT_SYMBOLS);
	const struct elf_file *file = object__file(obj);
	struct minidebug *mini = NULL;
	struct elf_file *debug = NULL;
	int root = object__root(obj), err;

	if (names)
		return names;
	names = calloc(1, sizeof(*names));
	if (!names)
		return NULL;
	err = debugfile__find(&c->search, file, object__path(obj), root, &debug);
	if (err == -ENOENT) {
		mini = minidebug__new(file);
		err = !mini && errno == ENOMEM ? -ENOMEM : 0;
	}
	if (!err) {
		names->symbols = elfsym__new(file, mini ? minidebug__file(mini) : debug);
		names->number = add_debug(c, file, debug, root);
	}
	minidebug__free(mini);
	elf_file__free(debug);
	if (!names->symbols || names->number == -ENOMEM) {
		names_free(names);
		return NULL;
	}
	object__set_slot(obj, OBJECT_SLOT_SYMBOLS, names, names_free);
	return names;
}

enum name_kind { SYMBOL = 'S', FUNCTION = 'F', PLAIN = 'P' };

static int demangle_as(enum name_kind kind, const char *raw, struct strbuf *text)
{
	/* no compiler makes a name with a blank, and one would shift a trace's fields */
	if (kind == PLAIN || strchr(raw, ' '))
		return -ENOENT;
	return kind == SYMBOL ? demangle(raw, text) : demangle_function(raw, text);
}

static char *print_name(enum name_kind kind, const char *raw)
{
	struct strbuf name = STRBUF_INIT, text = STRBUF_INIT;
	char *printed = NULL;
	int err = demangle_as(kind, raw, &name);

	if (err == -ENOENT || err == -E2BIG) {
		err = strbuf__append_untrusted(&text, raw, strlen(raw), kind == PLAIN ? ' ' : '?');
	} else if (!err) {
		err = strbuf__append_untrusted(&text, name.data, name.len, ' ');
	}
	if (!err && !text.failed)
		printed = strdup(text.data ? text.data : "");
	strbuf__free(&name);
	strbuf__free(&text);
	return printed;
}

/* NULL: no memory. */
static const char *printed_name(struct code_names *c, struct names *names, enum name_kind kind,
				const char *raw)
{
	size_t len = strnlen(raw, DEMANGLE_MAX + 1) + 1;
	struct printed *p, *known;

	if (len > DEMANGLE_MAX + 1)
		return "??";
	p = malloc(sizeof(*p) + 1 + len);
	if (!p)
		return NULL;
	p->raw[0] = (char)kind;
	memcpy(p->raw + 1, raw, len);
	HASH_FIND(hh, names->printed, p->raw, len, known);
	if (known || c->text > c->options.max_text) {
		c->left_out += !known;
		free(p);
		return known ? known->text : "??";
	}
	p->text = print_name(kind, raw);
	if (p->text)
		HASH_ADD_KEYPTR(hh, names->printed, p->raw, len, p);
	if (p->text && p->hh.tbl) {
		c->text += len + strlen(p->text);
		return p->text;
	}
	free(p->text);
	free(p);
	return NULL;
}

static const char *symbol_name(struct code_names *c, struct names *names, uint64_t addr)
{
	const char *raw;
	uint64_t start;

	if (elfsym__find(names->symbols, addr, &raw, &start))
		return "??";
	return printed_name(c, names, SYMBOL, raw);
}

/* Returns 0 or -ENOMEM. */
static int name_frame(struct code_names *c, struct names *names, uint64_t addr,
		      const struct debug_frame *from, bool outermost, struct named_frame *ret_frame)
{
	bool lines = !c->options.no_lines;
	struct named_frame frame = {.name = "??", .no_address = from->no_address && lines};

	if (from->name)
		frame.name = printed_name(c, names, from->mangled ? FUNCTION : PLAIN, from->name);
	else if (outermost)
		frame.name = symbol_name(c, names, addr);
	if (frame.name && from->file && lines) {
		frame.file = printed_name(c, names, PLAIN, from->file);
		frame.line = from->line;
		if (!frame.file)
			return -ENOMEM;
	}
	*ret_frame = frame;
	return frame.name ? 0 : -ENOMEM;
}

static struct place *new_place(uint64_t key, size_t n)
{
	struct place *place = calloc(1, sizeof(*place) + n * sizeof(place->frames[0]));

	if (place) {
		place->key = key;
		place->n = n;
	}
	return place;
}

static struct place *make_place(struct code_names *c, struct names *names, uint64_t addr,
				bool exact, uint64_t key)
{
	const struct debug_frame *frames = NULL;
	struct place *place;
	bool lines = !c->options.no_lines;
	int n = 0, first;

	if (names->number >= 0)
		n = worker__find(c->worker, names->number, addr, exact, &frames);
	if (n < 0)
		return NULL;
	if (n == 0) {
		place = new_place(key, 1);
		if (place)
			place->frames[0].name = symbol_name(c, names, addr);
		if (place && place->frames[0].name)
			return place;
		free(place);
		return NULL;
	}
	first = c->options.no_inlines ? n - 1 : 0;
	place = new_place(key, (size_t)(n - first));
	for (int i = first; place && i < n; i++) {
		/* the frame of an inlined function's caller has the address of the call */
		if (name_frame(c, names, addr, &frames[i], i == n - 1, &place->frames[i - first])) {
			free(place);
			place = NULL;
		}
	}
	if (place && !lines)
		for (size_t i = 1; i < place->n; i++)
			place->frames[i].no_address = true;
	if (place && c->options.no_inlines)
		place->frames[0].no_address = false;
	return place;
}

int code_names__find(struct code_names *c, struct object *object, uint64_t addr, bool exact,
		     const struct named_frame **ret_frames)
{
	struct names *names = names_of(c, object);
	uint64_t key = addr << 1 | exact;
	struct place **recent, *place;

	if (!names)
		return -ENOMEM;
	recent = &names->recent[(key ^ key >> 10) & (N_RECENT - 1)];
	place = *recent;
	if (!place || place->key != key)
		HASH_FIND(hh, names->places, &key, sizeof(key), place);
	if (!place) {
		place = make_place(c, names, addr, exact, key);
		if (!place)
			return -ENOMEM;
		HASH_ADD(hh, names->places, key, sizeof(place->key), place);
		if (!place->hh.tbl) {
			free(place);
			return -ENOMEM;
		}
	}
	*recent = place;
	*ret_frames = place->frames;
	return (int)place->n;
}

int code_names__tail_calls(struct code_names *c, struct object *object, uint64_t return_addr,
			   uint64_t callee_addr, const uint64_t **ret_addrs)
{
	struct names *names = names_of(c, object);
	struct way *way, key = {.key = {return_addr, callee_addr}};

	if (!names)
		return -ENOMEM;
	if (names->number < 0 || c->options.no_inlines)
		return 0;
	HASH_FIND(hh, names->ways, &key.key, sizeof(key.key), way);
	if (!way) {
		way = calloc(1, sizeof(*way));
		if (!way)
			return -ENOMEM;
		way->key = key.key;
		way->n = worker__tail_calls(c->worker, names->number, return_addr, callee_addr,
					    way->addrs);
		if (way->n >= 0)
			HASH_ADD(hh, names->ways, key, sizeof(way->key), way);
		if (way->n < 0 || !way->hh.tbl) {
			free(way);
			return -ENOMEM;
		}
	}
	*ret_addrs = way->addrs;
	return way->n;
}

int code_names__gaps(const struct code_names *c, struct strbuf *ret_text)
{
	unsigned int n = c->worker ? worker__given_up(c->worker) : 0;
	const char *problem = debuginfod__problem(c->debuginfod);

	if (n)
		strbuf__printf(
			ret_text,
			"the debug information of %u file%s could not be read (damaged, or "
			"it took too long): source lines and inlined functions are missing\n",
			n, n == 1 ? "" : "s");
	if (c->left_out)
		strbuf__printf(ret_text,
			       "names take more than %zu MiB: %zu of them are shown as ??\n",
			       c->options.max_text >> 20, c->left_out);
	if (problem)
		strbuf__printf(ret_text, "debuginfod: %s: it was not asked further\n", problem);
	strbuf__append(ret_text, c->refused.data, c->refused.len);
	return ret_text->failed ? -ENOMEM : 0;
}
