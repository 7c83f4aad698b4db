// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * make_trace: prints a trace in gdb's form that is made to be awkward, the same for each seed:
 *
 *	make_trace SEED THREADS full          every frame has an address
 *	make_trace SEED THREADS bare          some have none; no file starts with '/'
 *	make_trace SEED THREADS FILE...       frames out of real captures, mutated
 *
 * It is for comparing ourselves with the packaged pt-pmp, 3.2.1, while our reference is 3.5.7. What
 * these two disagree about is not made:
 * - a frame without an address leaves the file as the frame before it left it in 3.2.1, and sets
 *   it in 3.5.7: hence full and bare;
 * - `TID` lines start a stack only in 3.5.7;
 * - frames before the first `Thread` line are a stack of their own only in 3.2.1, and an input
 *   without anything prints one empty line there: a trace starts with a `Thread` line, and ends
 *   with a frame;
 * - frames beyond --lines still set the carried file in 3.2.1: compare with --lines on bare only.
 */
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define PICK(list)    ((list)[(size_t)rand_r(seed) % ARRAY_SIZE(list)])

static void add_name(struct strbuf *out, unsigned int *seed)
{
	static const char *const names[] = {
		"read",
		"operator new",
		"operator bool",
		"A<b>::operator()",
		"f<a>",
		"?\?",
		"",
		"std::vector<int, std::allocator<int> >::push_back(int const&)",
		"is_const_item",
		"pthread_cond_wait@@GLIBC_2.3.2",
		"void f<int>(int)",
		"x.constprop.0",
		"memcpy(void*, void const*)",
		"<signal handler called>",
		"<lambda()>::operator()",
		"(anonymous namespace)::f",
		"{lambda(int)#1}::operator()",
		"operator<< <char>(int)",
	};
	static const char *const pieces[] = {
		"<",	   ">",	   "::",	"(",	    ")",    " ",    "void",   "const",
		"a",	   "b::c", "operator<", "->",	    "<<",   "?\?",  "@@",     "std::",
		"~",	   "&",	   "*",		", ",	    " in ", " at ", " from ", "0x1",
		".",	   "\t",   ":",		">::",	    "<b>",  "><",   "#",      " void ",
		" const ", "\"",   "\r",	"\xc3\xa9", "\xff", "\x01",
	};

	if (rand_r(seed) % 5 < 2) {
		strbuf__append_str(out, PICK(names));
		return;
	}
	for (int n = rand_r(seed) % 14; n >= 0; n--)
		strbuf__append_str(out, PICK(pieces));
}

static void add_frame(struct strbuf *out, int number, bool bare, unsigned int *seed)
{
	static const char *const addresses[] = {"0x00007f2763f18bcf", "0x0000000000000000", "f0x5",
						"0x1"};
	static const char *const arguments[] = {" ()",
						"",
						" (x=1)",
						"(int)",
						" (f= {void (void)} 0x7)",
						" (s=0x5 \"at x from y in z\")"};
	static const char *const places[] = {" at ./x.c:3", " at ../x.c:3", " from x.so", "", "\r"};
	static const char *const paths[] = {" from /lib/x/libc.so.6", " at /a/b/c.cc:99", " (/x)",
					    " \"/q\"", " /"};

	strbuf__printf(out, "#%d  ", number);
	if (!bare || rand_r(seed) % 2)
		strbuf__printf(out, "%s%s", PICK(addresses), rand_r(seed) % 8 ? " in " : " ");
	add_name(out, seed);
	strbuf__append_str(out, PICK(arguments));
	if (bare || rand_r(seed) % 2)
		strbuf__append_str(out, PICK(places));
	else
		strbuf__append_str(out, PICK(paths));
	strbuf__append_char(out, '\n');
}

/* Frame lines of real captures. */
struct frames {
	char **lines;
	size_t n;
};

static void read_frames(const char *path, struct frames *frames)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	FILE *f = fopen(path, "re");

	if (!f) {
		perror(path);
		exit(1);
	}
	while ((len = getline(&line, &size, f)) > 0) {
		/* with an address, see above; the second field stays as it is */
		if (line[0] != '#' || strncmp(line + strcspn(line, " "), "  0x", 4) ||
		    strlen(line) != (size_t)len)
			continue;
		line[len - 1] = '\0';
		frames->lines = reallocarray(frames->lines, frames->n + 1, sizeof(char *));
		if (!frames->lines)
			exit(1);
		frames->lines[frames->n++] = strdup(line);
	}
	free(line);
	fclose(f);
}

static void add_mutated(struct strbuf *out, const struct frames *frames, unsigned int *seed)
{
	static const char *const pieces[] = {
		"<", ">",   "(",  ")", " ",	   "::", "void", "const",
		"@", "?\?", ", ", "/", " from /x", "~",	 "&&",	 ">::"};
	const char *line = frames->lines[(size_t)rand_r(seed) % frames->n];
	size_t fixed = strcspn(line, " ") + 2, at;

	fixed += strcspn(line + fixed, " ");
	at = fixed + (size_t)rand_r(seed) % (strlen(line) - fixed + 1);
	switch (rand_r(seed) % 4) {
	case 0: /* as it is */
		strbuf__append_str(out, line);
		break;
	case 1: /* a piece put in */
		strbuf__append(out, line, at);
		strbuf__append_str(out, PICK(pieces));
		strbuf__append_str(out, line + at);
		break;
	case 2: /* a piece left out */
		strbuf__append(out, line, at);
		at += (size_t)rand_r(seed) % 8;
		if (at < strlen(line))
			strbuf__append_str(out, line + at);
		break;
	default: /* the end of another frame */
		strbuf__append(out, line, at);
		line = frames->lines[(size_t)rand_r(seed) % frames->n];
		strbuf__append_str(out, line + (size_t)rand_r(seed) % strlen(line));
	}
	strbuf__append_char(out, '\n');
}

static void add_trace(struct strbuf *out, int threads, bool bare, const struct frames *frames,
		      unsigned int *seed)
{
	static const char *const others[] = {" #0 0x1 in x\n", "TS 1.2 x\n", "\n",
					     "[New Thread 1]\n", "warning: x\n"};

	for (int i = 0; i < threads; i++) {
		/* the last has a frame: an empty one is printed by 3.2.1 alone */
		int n = rand_r(seed) % 6 + (i + 1 == threads);

		if (rand_r(seed) % 4)
			strbuf__printf(out, "Thread %d (Thread 0x7f01 (LWP %d) \"con\"):\n",
				       threads - i, 100 + i);
		else
			strbuf__printf(out, "Threads%d\n", i);
		for (int j = 0; j < n; j++) {
			if (frames->n)
				add_mutated(out, frames, seed);
			else
				add_frame(out, j, bare, seed);
		}
		if (rand_r(seed) % 10 == 0)
			strbuf__append_str(out, PICK(others));
	}
}

int main(int argc, char *argv[])
{
	struct strbuf out = STRBUF_INIT;
	struct frames frames = {NULL};
	unsigned int seed;
	bool bare;

	if (argc < 4) {
		fprintf(stderr, "usage: make_trace SEED THREADS full|bare|FILE...\n");
		return 2;
	}
	seed = (unsigned int)atoi(argv[1]);
	bare = !strcmp(argv[3], "bare");
	for (int i = 3; i < argc && !bare && strcmp(argv[i], "full"); i++)
		read_frames(argv[i], &frames);
	add_trace(&out, atoi(argv[2]), bare, &frames, &seed);
	fwrite(out.data, 1, out.len, stdout);
	for (size_t i = 0; i < frames.n; i++)
		free(frames.lines[i]);
	free(frames.lines);
	strbuf__free(&out);
	return ferror(stdout) ? 1 : 0;
}
