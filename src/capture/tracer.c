// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/tracer.h"

#include "capture/child.h"
#include "proc/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROBE_SECONDS 30.0 /* for gdb to say whether it knows --readnever */
#define PASS_MS	      10   /* between two looks at the target */
#define MAX_PASSES    300
#define CALM_PASSES   5 /* in a row with nothing to undo, after a program that did not end well */

/* ours was killed: a program that is just starting has yet to find out, its own may go on */
#define CALM_PASSES_KEEPER 30
#define MAX_PASSES_KEEPER  6000

#define SIGSTOP_BIT (1ull << (SIGSTOP - 1)) /* what attaching by ptrace(2) sends */

struct program {
	const char *name;
	const char *package;
};

static const struct program programs[] = {
	[TRACER_GDB] = {"gdb", "gdb"},
	[TRACER_EU] = {"eu-stack", "elfutils"},
	[TRACER_PTEU] = {"pt-eustack-resolver", "percona-toolkit 3.5.7 or later"},
};

struct tracer {
	struct tracer_options options;
	char *path;
	bool probed; /* it knows --readnever */
};

/* What is to be known of a process' threads. */
struct stops {
	bool there;
	bool stopped; /* by job control: a tracing stop ends with the tracer */
	bool pending; /* a SIGSTOP, which will stop it */
	bool traced;
};

/* The target, as it was before. */
struct watched {
	pid_t pid;
	uint64_t start_ticks;
	struct stops before;
};

struct keeper {
	pid_t pid;    /* -1: none */
	int pipe_end; /* nobody else has it: it is closed by our death */
};

struct output {
	tracer_text_fn text;
	void *arg;
	struct eu_join join;
	struct strbuf joined;
	bool joins;
	bool line_start;
	bool frames; /* one was seen */
};

static int need(const struct program *program, struct error *e, char **ret_path)
{
	int err = child__find(program->name, ret_path);

	if (err == -ENOENT)
		return error__set(e, ENOENT,
				  "%s was not found in PATH; install %s, or use --tracer=bpf",
				  program->name, program->package);
	return err;
}

struct tracer *tracer__new(const struct tracer_options *options, struct error *e)
{
	struct tracer *t = calloc(1, sizeof(*t));
	int err = t ? 0 : -ENOMEM;
	char *eu = NULL;

	if (!err) {
		t->options = *options;
		err = need(&programs[options->kind], e, &t->path);
	}
	/* the resolver runs it */
	if (!err && options->kind == TRACER_PTEU)
		err = need(&programs[TRACER_EU], e, &eu);
	free(eu);
	if (err) {
		tracer__free(t);
		errno = -err;
		return NULL;
	}
	return t;
}

void tracer__free(struct tracer *t)
{
	if (!t)
		return;
	free(t->path);
	free(t);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The second script, which sees the lines as the first has joined them. */
static void name_frame(struct eu_join *j, char c, struct strbuf *out)
{
	if (j->blank) {
		j->blank = false;
		j->at = EU_OUTSIDE;
		if (c == '-') {
			strbuf__append_str(out, " ?"
						"?()");
			j->put = true;
		}
		strbuf__append_char(out, ' ');
	}
	if (c == '\n') {
		j->put = false;
		j->at = EU_OUTSIDE;
	} else if (j->at == EU_HEX && c == ' ') {
		j->blank = !j->put;
		j->at = EU_OUTSIDE;
		if (j->blank)
			return;
	} else if (j->at == EU_HEX && is_hex(c)) {
		j->last = c;
	} else if (c == 'x' && (j->at == EU_ZERO || (j->at == EU_HEX && j->last == '0'))) {
		j->at = EU_HEX;
		j->last = c;
	} else {
		j->at = c == '0' ? EU_ZERO : EU_OUTSIDE;
	}
	strbuf__append_char(out, c);
}

void eu_join__feed(struct eu_join *j, const char *bytes, size_t len, struct strbuf *out)
{
	for (size_t i = 0; i < len; i++) {
		if (j->newline) {
			j->newline = false;
			if (bytes[i] == ' ') {
				j->joined = true;
				continue;
			}
			name_frame(j, '\n', out);
		}
		if (bytes[i] == '\n' && !j->joined) {
			j->newline = true;
			continue;
		}
		if (bytes[i] == '\n')
			j->joined = false;
		name_frame(j, bytes[i], out);
	}
}

void eu_join__finish(struct eu_join *j, struct strbuf *out)
{
	if (j->newline)
		name_frame(j, '\n', out);
	if (j->blank)
		strbuf__append_char(out, ' ');
	*j = (struct eu_join)EU_JOIN_INIT;
}

/* One thread's status file; see proc_pid_status(5). */
static void look_at_thread(int pid, const char *tid, struct stops *s)
{
	unsigned long long pending;
	char path[64], line[256];
	int tracer;
	char state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", pid, tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "State: %c", &state) == 1)
			s->stopped |= state == 'T';
		else if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			s->traced |= tracer != 0;
		else if (sscanf(line, "SigPnd: %llx", &pending) == 1 ||
			 sscanf(line, "ShdPnd: %llx", &pending) == 1)
			s->pending |= (pending & SIGSTOP_BIT) != 0;
	}
	if (f)
		fclose(f);
}

static struct stops look(pid_t pid)
{
	struct stops s = {.there = false};
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		s.there = true;
		look_at_thread((int)pid, entry->d_name, &s);
	}
	if (dir)
		closedir(dir);
	return s;
}

/*
 * The program has ended. Where it has left the target stopped, or with a SIGSTOP of its attaching
 * that nobody has taken yet, SIGCONT undoes both. `calm`: so many looks in a row must find nothing
 * to undo; `max`: and then it is given up.
 */
static void undo_stop(const struct watched *w, unsigned int calm, unsigned int max,
		      bool *ret_continued, bool *ret_still)
{
	const struct timespec pause = {.tv_nsec = PASS_MS * 1000000};
	const struct stops *before = &w->before;
	unsigned int found = 0;

	*ret_continued = *ret_still = false;
	if (!before->there || before->stopped || before->pending)
		return;
	for (unsigned int i = 0; i < max; i++) {
		struct stops s = look(w->pid);
		uint64_t ticks;

		*ret_still = false;
		if (!s.there || find__start_time(w->pid, &ticks) || ticks != w->start_ticks)
			return;
		if (s.traced && !before->traced) {
			found = 0; /* by what is dying just now */
		} else if (s.stopped || s.pending) {
			found = 0;
			*ret_still = true;
			if (kill(w->pid, SIGCONT) == 0)
				*ret_continued = true;
		} else if (++found == calm) {
			return;
		}
		nanosleep(&pause, NULL);
	}
}

/* The keeper's life: never returns. Its pipe ends when we do, and the program is killed then. When
 * all is well it is killed before. */
static void keep(const struct watched *w, int pipe_end)
{
	bool continued, still;
	sigset_t all;
	char byte;
	ssize_t n;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	setsid();
	/* nobody is to wait for the end of a pipe for its sake */
	if (dup2(pipe_end, STDIN_FILENO) < 0)
		_exit(1);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	do
		n = read(STDIN_FILENO, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		undo_stop(w, CALM_PASSES_KEEPER, MAX_PASSES_KEEPER, &continued, &still);
	_exit(0);
}

/* Start a process that looks after the target should we be killed. Where that is not possible,
 * there is none: the trace is wanted all the same. */
static void start_keeper(struct keeper *k, const struct watched *w)
{
	int fds[2];

	*k = (struct keeper){.pid = -1, .pipe_end = -1};
	if (pipe2(fds, O_CLOEXEC))
		return;
	k->pid = fork();
	if (!k->pid) {
		close(fds[1]);
		keep(w, fds[0]);
	}
	close(fds[0]);
	if (k->pid > 0)
		k->pipe_end = fds[1];
	else
		close(fds[1]);
}

static void dismiss_keeper(struct keeper *k)
{
	if (k->pid <= 0)
		return;
	kill(k->pid, SIGKILL);
	close(k->pipe_end);
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int pass_on(struct output *o, const char *bytes, size_t len)
{
	const char *p = bytes, *end = bytes + len;

	while (!o->frames && p < end) {
		o->frames = o->line_start && *p == '#';
		o->line_start = false;
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			break;
		o->line_start = true;
		p++;
	}
	return len ? o->text(o->arg, bytes, len) : 0;
}

static int on_text(void *arg, const char *bytes, size_t len)
{
	struct output *o = arg;

	if (!o->joins)
		return pass_on(o, bytes, len);
	strbuf__reset(&o->joined);
	eu_join__feed(&o->join, bytes, len, &o->joined);
	if (o->joined.failed)
		return -ENOMEM;
	return pass_on(o, o->joined.data, o->joined.len);
}

static int finish_text(struct output *o)
{
	if (!o->joins)
		return 0;
	strbuf__reset(&o->joined);
	eu_join__finish(&o->join, &o->joined);
	if (o->joined.failed)
		return -ENOMEM;
	return pass_on(o, o->joined.data, o->joined.len);
}

static int ignore_text(void *arg, const char *bytes, size_t len)
{
	return 0;
}

static int start_failed(const struct tracer *t, int err, struct error *e)
{
	return error__set(e, -err, "cannot run %s: %s", t->path, strerror(-err));
}

/* As stock finds out: by trying. */
static int probe_readnever(struct tracer *t, struct error *e, struct tracer_result *ret_result)
{
	char *argv[] = {"gdb", "-nx", "--quiet", "--batch", "--readnever", NULL};
	const struct child_options options = {
		.path = t->path,
		.argv = argv,
		.timeout = PROBE_SECONDS,
		.drop_stderr = true,
	};
	struct child_end end;
	int err;

	if (t->options.kind != TRACER_GDB || !t->options.readnever || t->probed)
		return 0;
	err = child__run(&options, ignore_text, NULL, &end);
	ret_result->signal = end.interrupted;
	if (err == -EINTR)
		return error__set(e, EINTR, "interrupted by signal %d (%s)", end.interrupted,
				  strsignal(end.interrupted));
	if (err && err != -ETIMEDOUT)
		return start_failed(t, err, e);
	if (err || end.status)
		return error__set(e, EOPNOTSUPP, "%s does not support --readnever", t->path);
	t->probed = true;
	return 0;
}

static int run_child(struct tracer *t, pid_t pid, struct output *o, struct child_end *ret_end)
{
	char number[16];
	char *gdb[10], **argv = gdb;
	char *eu[] = {"eu-stack", "-s", "-m", "-p", number, NULL};
	char *pteu[] = {"pt-eustack-resolver", number, NULL};
	struct child_options options = {.path = t->path, .timeout = t->options.timeout};
	int err;

	snprintf(number, sizeof(number), "%d", (int)pid);
	switch (t->options.kind) {
	case TRACER_GDB:
		*argv++ = "gdb";
		if (t->options.readnever)
			*argv++ = "--readnever";
		*argv++ = "-ex";
		*argv++ = "set pagination 0";
		*argv++ = "-ex";
		*argv++ = "thread apply all bt";
		*argv++ = "-batch";
		*argv++ = "-p";
		*argv++ = number;
		*argv = NULL;
		options.argv = gdb;
		break;
	case TRACER_EU:
		options.argv = eu;
		break;
	case TRACER_PTEU:
		options.argv = pteu;
		break;
	}
	err = child__run(&options, on_text, o, ret_end);
	return err ? err : finish_text(o);
}

/* Why it is an error, if it is one. */
static int explain(const struct tracer *t, pid_t pid, const struct child_end *end, bool frames,
		   int err, struct error *e)
{
	const char *name = programs[t->options.kind].name;

	if (end->interrupted)
		return error__set(e, EINTR, "%s was ended: interrupted by signal %d (%s)", name,
				  end->interrupted, strsignal(end->interrupted));
	if (err == -ETIMEDOUT)
		return error__set(e, ETIMEDOUT,
				  "%s was ended: it took longer than %g s (see --timeout)", name,
				  t->options.timeout);
	if (err)
		return err;
	if (end->killed_by)
		return error__set(e, EIO, "%s was killed by signal %d (%s)", name, end->killed_by,
				  strsignal(end->killed_by));
	if (!frames && end->status > 0)
		return error__set(e, ENODATA, "%s printed no stack of process %d (exit status %d)",
				  name, (int)pid, end->status);
	if (!frames)
		return error__set(e, ENODATA, "%s printed no stack of process %d", name, (int)pid);
	return 0;
}

static void note_stop(const struct tracer *t, pid_t pid, bool still, int err, struct error *e)
{
	const char *name = programs[t->options.kind].name;
	char *first = err && e ? e->text : NULL;
	const char *sep = first ? "; " : "";

	if (first)
		e->text = NULL;
	if (still)
		error__set(e, err ? -err : EIO,
			   "%s%s%s left process %d stopped, and SIGCONT did not help",
			   first ? first : "", sep, name, (int)pid);
	else
		error__set(e, err ? -err : EIO,
			   "%s%s%s left process %d stopped: it was continued (SIGCONT)",
			   first ? first : "", sep, name, (int)pid);
	free(first);
}

int tracer__run(struct tracer *t, pid_t pid, tracer_text_fn text, void *arg, struct error *e,
		struct tracer_result *ret_result)
{
	struct output o = {
		.text = text,
		.arg = arg,
		.join = EU_JOIN_INIT,
		.joins = t->options.kind == TRACER_EU,
		.line_start = true,
	};
	struct child_end end = {.status = -1};
	struct watched w = {.pid = pid};
	struct keeper keeper;
	bool still = false;
	sigset_t mask;
	int err, sig;

	*ret_result = (struct tracer_result){.status = -1};
	child__hold(&mask);
	err = probe_readnever(t, e, ret_result);
	if (err)
		goto out;
	w.before = look(pid);
	if (w.before.there && find__start_time(pid, &w.start_ticks))
		w.before.there = false;
	start_keeper(&keeper, &w);
	err = run_child(t, pid, &o, &end);
	ret_result->status = end.status;
	undo_stop(&w, !err && end.status == 0 ? 1 : CALM_PASSES, MAX_PASSES, &ret_result->continued,
		  &still);
	dismiss_keeper(&keeper);
	if (err && !end.started && !end.interrupted)
		err = start_failed(t, err, e);
	else
		err = explain(t, pid, &end, o.frames, err, e);
	ret_result->signal = end.interrupted;
	if (ret_result->continued || still)
		note_stop(t, pid, still, err, e);
	if (still && !err)
		err = -EIO;
out:
	sig = child__release(&mask);
	if (sig && !ret_result->signal) {
		ret_result->signal = sig;
		if (!err)
			err = error__set(e, EINTR, "interrupted by signal %d (%s)", sig,
					 strsignal(sig));
	}
	strbuf__free(&o.joined);
	return err;
}
