/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * child: runs a program and hands out what it writes, as it comes, so that any amount takes the
 * same memory. The program is the leader of a session, and so of a process group, of its own;
 * whatever is left in that group when it has ended, or has to end, is killed. It dies with us.
 * The bytes that the callback is given are borrowed: valid until it returns.
 */
#ifndef PMP_CHILD_H
#define PMP_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* A value other than 0 ends the program and is handed on. */
typedef int (*child_text_fn)(void *arg, const char *bytes, size_t len);

struct child_options {
	const char *path;  /* the file to run: see child__find() */
	char *const *argv; /* with argv[0], ended by NULL; no shell reads it */
	double timeout;	   /* seconds; 0: none */
	bool drop_stderr;  /* else its standard error is ours */
};

struct child_end {
	bool started;
	int status;	 /* its exit status, -1: none */
	int killed_by;	 /* the signal that ended it, 0: none */
	int interrupted; /* SIGHUP, SIGINT, SIGQUIT or SIGTERM that was sent to us, 0: none */
};

/*
 * The file that a shell would run for `name`: the first executable regular file of that name in
 * the folders of PATH. *ret_path is the caller's to free. Returns 0, -ENOENT or -ENOMEM.
 */
int child__find(const char *name, char **ret_path);

/*
 * Run it, with /dev/null as its standard input, until it ends; text() is called with what it
 * writes to its standard output. Returns 0 if it ended by itself, in whatever way; what text()
 * returned; -ETIMEDOUT; -EINTR: a signal was sent to us; or -errno if it could not be started.
 * It is asked to end by SIGTERM (a gdb then lets go of its target) and killed a second later.
 *
 * *ret_end is set in every case. A signal that it tells of is taken: the caller acts upon it, by
 * child__die_by(), when its own work is done. Signals that are ignored stay so. A SIGTSTP waits:
 * with us stopped, a full pipe would stop a gdb that has stopped its target.
 */
int child__run(const struct child_options *options, child_text_fn text, void *arg,
	       struct child_end *ret_end);

/*
 * Keep the signals above waiting, and release them. child__release() returns the one that came
 * meanwhile, if any, which is taken, or 0. May be nested around child__run().
 */
void child__hold(sigset_t *ret_before);
int child__release(const sigset_t *before);

/* End this process by the signal, as if it had never been held. */
void child__die_by(int signal);

#endif
