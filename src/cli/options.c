// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/options.h"

#include "cli/option_spec.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES_DEFAULT 4096
#define MAX_WAIT_DEFAULT   5.0
#define FREQUENCY_DEFAULT  99
#define DURATION_DEFAULT   10.0

/* One run of options__parse(). */
struct parse {
	struct plan plan;
	const struct config *config;
	bool as_pt_pmp;
	enum plan_mode mode; /* found out before the options are applied */
	bool has_files;	     /* words that are no options */
	/* options that were met, by index in the table: on the command line; anywhere */
	uint64_t on_line, given;
};

/* The option of this letter or long name, without dashes, or NULL. */
static const struct option_spec *find_by_name(const char *name, size_t len)
{
	for (size_t i = 0; i < n_option_specs; i++) {
		const struct option_spec *o = &option_specs[i];

		if (o->name && ((len == 1 && o->letter && name[0] == o->letter) ||
				(strlen(o->name) == len && !strncmp(name, o->name, len))))
			return o;
	}
	return NULL;
}

/* The option that `word` (of `len` bytes, with its dashes) names, or NULL. */
static const struct option_spec *find_option(const char *word, size_t len)
{
	if (len == 2)
		return find_by_name(word + 1, 1);
	return !strncmp(word, "--", 2) ? find_by_name(word + 2, len - 2) : NULL;
}

static uint64_t bit_of(const struct option_spec *o)
{
	assert(n_option_specs <= 64);
	return UINT64_C(1) << (o - option_specs);
}

/* Whether `set`, as in struct parse, has the option of this long name. */
static bool has(uint64_t set, const char *name)
{
	const struct option_spec *o = find_by_name(name, strlen(name));

	assert(o);
	return set & bit_of(o);
}

static bool is(const struct option_spec *o, const char *name)
{
	return !strcmp(o->name, name);
}

/* The words of a command line, one option or file at a time. */
struct words {
	int argc;
	char *const *argv;
	int at;
	bool options_ended;
};

struct word {
	const char *text;
	bool is_file;
	const struct option_spec *option; /* NULL: there is no such option */
	const char *value;		  /* NULL: none */
};

/* Returns false at the end. */
static bool words__next(struct words *w, struct word *ret_word)
{
	struct word word = {.is_file = true};
	size_t len;

	if (!w->options_ended && w->at < w->argc && !strcmp(w->argv[w->at], "--")) {
		w->options_ended = true;
		w->at++;
	}
	if (w->at >= w->argc)
		return false;
	word.text = w->argv[w->at++];
	if (!w->options_ended && word.text[0] == '-' && word.text[1]) {
		word.is_file = false;
		word.value = strchr(word.text, '=');
		len = word.value ? (size_t)(word.value - word.text) : strlen(word.text);
		word.option = find_option(word.text, len);
		if (word.value)
			word.value++;
		else if (word.option && word.option->value && w->at < w->argc)
			word.value = w->argv[w->at++];
	}
	*ret_word = word;
	return true;
}

/* What has to be known before anything is applied; nothing is wrong yet. */
static void look_ahead(struct parse *p, int argc, char *const argv[])
{
	struct words words = {.argc = argc, .argv = argv};
	const struct config_entry *entry;
	enum plan_mode mode = PLAN_MODE_THREADS;
	struct word word;

	while (words__next(&words, &word)) {
		if (word.is_file)
			p->has_files = true;
		else if (word.option)
			p->on_line |= bit_of(word.option);
		if (word.option && is(word.option, "mode") && word.value)
			option_spec__mode(word.value, &mode, NULL);
	}
	/* files are read in the one mode that there is for them */
	for (size_t i = 0;
	     !p->has_files && !has(p->on_line, "mode") && (entry = config__entry(p->config, i));
	     i++) {
		if (entry->name && entry->value && !entry->shared && !strcmp(entry->name, "mode"))
			option_spec__mode(entry->value, &mode, NULL);
	}
	p->mode = mode;
}

static int apply(struct parse *p, const struct option_spec *o, const char *value, bool replace_pids,
		 struct error *e)
{
	if (!o->value && value)
		return error__set(e, EINVAL, "--%s takes no value", o->name);
	if (o->value && !value)
		return error__set(e, EINVAL, "--%s needs a value (%s)", o->name, o->value);
	if (replace_pids && is(o, "pid"))
		p->plan.n_pids = 0;
	p->given |= bit_of(o);
	if (o->set)
		return o->set(&p->plan, value, e);
	*(bool *)((char *)&p->plan + o->flag) = true;
	return 0;
}

/* What the file for all tools may set: in it, --all and --count are another tool's. */
static bool is_pt_pmps(const struct option_spec *o)
{
	static const char *const names[] = {"binary", "dumper",	      "interval", "iterations",
					    "lines",  "pid",	      "tids",	  "readnever",
					    "help",   "save-samples", "version",  "config"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (is(o, names[i]))
			return true;
	}
	return false;
}

/*
 * A file is for every day, and must not stand in the way of what is asked for today: what makes no
 * sense in this mode, or beside what the command line says, is passed over.
 */
static bool overruled(const struct parse *p, const struct option_spec *o, const char *value)
{
	static const char *const pairs[][2] = {
		{"pid", "pid"},		{"pid", "all"},		 {"binary", "all"},
		{"comm", "all"},	{"all", "pid"},		 {"all", "binary"},
		{"all", "comm"},	{"pid", "comm"},	 {"binary", "comm"},
		{"comm", "pid"},	{"comm", "binary"},	 {"frequency", "count"},
		{"count", "frequency"}, {"format", "functions"}, {"functions", "format"},
		{"percent", "format"},	{"top", "format"},	 {"stacks", "format"},
		{"format", "percent"},
	};

	if (!(o->modes & (1U << p->mode)))
		return true;
	if (p->has_files && (is(o, "mode") || is(o, "annotate") || is(o, "by-process")))
		return true;
	if (is(o, "format") && value && !strcmp(value, "samples") && p->mode != PLAN_MODE_CPU)
		return true;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (is(o, pairs[i][0]) && has(p->on_line, pairs[i][1]))
			return true;
	}
	return false;
}

static int apply_config(struct parse *p, struct error *e)
{
	const struct config_entry *entry;

	for (size_t i = 0; (entry = config__entry(p->config, i)); i++) {
		const struct option_spec *o;
		int err;

		/* as in pt-pmp: arguments lead nowhere, and an empty value is none */
		if (!entry->name)
			continue;
		o = find_by_name(entry->name, strlen(entry->name));
		if (entry->shared && (!o || !is_pt_pmps(o)))
			continue; /* another tool's */
		if (o && o->value && !(entry->value && *entry->value))
			continue;
		if (o && overruled(p, o, entry->value))
			continue;
		if (o)
			err = apply(p, o, entry->value, true, e);
		else
			err = error__set(e, EINVAL, "there is no option '%s'", entry->name);
		if (err)
			return config__blame(entry, err, e);
	}
	return 0;
}

static int apply_words(struct parse *p, int argc, char *const argv[], struct error *e)
{
	struct words words = {.argc = argc, .argv = argv};
	struct word word;
	int err = 0;

	while (!err && words__next(&words, &word)) {
		if (word.is_file)
			p->plan.files[p->plan.n_files++] = word.text;
		else if (!word.option)
			err = error__set(e, EINVAL, "there is no option '%s'; see --help",
					 word.text);
		else
			err = apply(p, word.option, word.value, p->as_pt_pmp, e);
	}
	return err;
}

static int refuse_by_mode(const struct option_spec *o, struct error *e)
{
	const char *first = NULL, *second = NULL;

	if (is(o, "input"))
		return error__set(e, EINVAL, "--input goes with FILES");
	for (int mode = PLAN_MODE_THREADS; mode <= PLAN_MODE_OFFCPU; mode++) {
		if (o->modes & (1U << mode)) {
			second = first ? mode_names[mode] : NULL;
			first = first ? first : mode_names[mode];
		}
	}
	return error__set(e, EINVAL, "--%s goes with --mode=%s%s%s", o->name, first,
			  second ? " and --mode=" : "", second ? second : "");
}

/* Options that say nothing to the mode, or to the source. */
static int check_mode(const struct parse *p, struct error *e)
{
	const struct plan *plan = &p->plan;

	for (size_t i = 0; i < n_option_specs; i++) {
		const struct option_spec *o = &option_specs[i];
		/* the one that can sample may be named */
		bool bpf = plan->tracer == PLAN_TRACER_BPF && o->name &&
			   (is(o, "tracer") || is(o, "dumper"));

		if (o->name && (p->on_line & bit_of(o)) && !(o->modes & (1U << plan->mode)) && !bpf)
			return refuse_by_mode(o, e);
	}
	if (plan->mode != PLAN_MODE_THREADS && plan->n_files)
		return error__set(e, EINVAL, "--mode=%s samples processes: without FILES, please",
				  mode_names[plan->mode]);
	if ((plan->annotate || plan->by_process) && plan->n_files)
		return error__set(e, EINVAL, "%s goes with a capture: without FILES, please",
				  plan->annotate ? "--annotate" : "--by-process");
	if ((plan->annotate || plan->by_process) && plan->tracer != PLAN_TRACER_BPF)
		return error__set(e, EINVAL, "%s goes with --tracer=bpf",
				  plan->annotate ? "--annotate" : "--by-process");
	if (has(p->given, "frequency") && has(p->given, "count"))
		return error__set(e, EINVAL, "--frequency and --count exclude each other");
	if (plan->max_us && plan->min_us > plan->max_us)
		return error__set(e, EINVAL,
				  "--min-us is over --max-us: no wait is so long and so short");
	return 0;
}

static int check_format(const struct plan *plan, struct error *e)
{
	const char *format = plan->format == PLAN_FORMAT_FOLDED ? "folded" : "samples";

	if (plan->format == PLAN_FORMAT_SAMPLES && plan->mode != PLAN_MODE_CPU)
		return error__set(e, EINVAL, "--format=samples goes with --mode=cpu");
	if (plan->stacks && plan->format != PLAN_FORMAT_SAMPLES)
		return error__set(e, EINVAL, "--stacks goes with --format=samples");
	if (plan->format == PLAN_FORMAT_PMP)
		return 0;
	if (plan->functions || plan->percent)
		return error__set(e, EINVAL, "--%s goes with --format=pmp, not %s",
				  plan->functions ? "functions" : "percent", format);
	if (plan->top && plan->format == PLAN_FORMAT_SAMPLES)
		return error__set(e, EINVAL, "--top goes with --format=pmp or folded, not samples");
	return 0;
}

/* pt-pmp lets -p overrule -b, and scripts give both; what cannot be meant is refused. */
static int contradictions(const struct parse *p, struct error *e)
{
	const struct plan *plan = &p->plan;
	const char *target = plan->n_pids ? "--pid" : plan->binary ? "--binary" : "--comm";
	int err = check_mode(p, e);

	if (!err)
		err = check_format(plan, e);
	if (err)
		return err;
	if (plan->all && (plan->n_pids || plan->binary || plan->comm))
		return error__set(e, EINVAL, "--all takes the whole machine: without %s, please",
				  target);
	if (plan->comm && (plan->n_pids || plan->binary))
		return error__set(e, EINVAL,
				  "--comm takes all processes of a name: without %s, please",
				  target);
	if (plan->output && plan->save_samples && !strcmp(plan->output, plan->save_samples))
		return error__set(e, EINVAL,
				  "--output and --save-samples name the same file, '%s': one would "
				  "overwrite the other",
				  plan->output);
	return 0;
}

int options__parse(int argc, char *const argv[], const struct config *config, bool as_pt_pmp,
		   struct plan *ret_plan, struct error *e)
{
	struct parse p = {.config = config, .as_pt_pmp = as_pt_pmp};
	int err;

	look_ahead(&p, argc, argv);
	p.plan = (struct plan){
		.iterations = 1,
		.max_frames = MAX_FRAMES_DEFAULT,
		.max_wait = MAX_WAIT_DEFAULT,
		.frequency = FREQUENCY_DEFAULT,
		.duration = DURATION_DEFAULT,
		.states = PLAN_STATE_INTERRUPTIBLE | PLAN_STATE_UNINTERRUPTIBLE,
		.kernel = p.mode != PLAN_MODE_THREADS,
	};
	p.plan.files = calloc((size_t)argc + 1, sizeof(*p.plan.files));
	if (!p.plan.files)
		return error__set(e, ENOMEM, "out of memory");
	err = apply_config(&p, e);
	if (!err)
		err = apply_words(&p, argc, argv, e);
	if (!err)
		err = contradictions(&p, e);
	if (err) {
		options__free(&p.plan);
		return err;
	}
	*ret_plan = p.plan;
	return 0;
}

void options__free(struct plan *plan)
{
	free(plan->files);
	free(plan->pids);
	plan->files = NULL;
	plan->pids = NULL;
	plan->n_files = plan->n_pids = 0;
}
