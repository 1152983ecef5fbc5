// SPDX-License-Identifier: GPL-2.0
/*
 * While a script runs, the agent sleeps in sigtimedwait(), never in poll(): a suspend freezes every
 * process, and a task that sleeps there is frozen without waking up (TASK_FREEZABLE in
 * do_sigtimedwait, kernel/signal.c). A process in poll() must wake up first, and the freezer
 * tries again, over all tasks: that would double what is measured.
 */
#define _GNU_SOURCE /* execvp() with another environ, __WALL */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../waits/waits.h"
#include "process.h"

#define FOLDER "/files"
/* What a script leaves may take this long to end by itself, and this long after SIGKILL. */
#define REST_NS 10000000000
#define KILL_NS 10000000000
/* So often a script that runs long is reported: the lab cannot know that it is not hung. */
#define ALIVE_NS 5000000000
/* As a shell has it. */
#define EXIT_NOT_RUN 127

/*
 * A blocked signal is never discarded, whatever its disposition (sig_ignored in kernel/signal.c);
 * without a handler PID 1 would not get them.
 */
static void waited_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGIO);
}

void process_block_signals(void)
{
	sigset_t set;

	waited_signals(&set);
	/* For terminal_enter() in the child. */
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void process_unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Reaps what has ended, orphans too. The script comes first: it is the oldest child. */
static void reap(struct process *p)
{
	int status, pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (pid != p->pid)
			continue;
		p->end_ns = now_ns();
		p->status = status;
		p->ended = true;
	}
	p->children = !pid;
}

/* Waits for the end of the script or, with all, of the last child, until then_ns at the latest. */
static void wait_for(struct process *p, bool all, int64_t then_ns, const struct terminal *t,
		     struct output *o)
{
	struct timespec timeout;
	int64_t left_ns;
	sigset_t set;

	waited_signals(&set);
	for (;;) {
		reap(p);
		if (t)
			terminal_read(t, o);
		left_ns = then_ns - now_ns();
		if ((all ? !p->children : p->ended) || left_ns <= 0)
			return;
		timeout.tv_sec = left_ns / 1000000000;
		timeout.tv_nsec = left_ns % 1000000000;
		/* A signal that came since reap() is pending, so this returns at once. */
		sigtimedwait(&set, NULL, &timeout);
	}
}

__attribute__((noreturn)) static void child(const struct script *s, const struct terminal *t)
{
	char *const *arguments = s->arguments, *const *variables = s->variables;
	const char *name = arguments[0], *what = "exec";
	int error = terminal_enter(t);

	/* The agent ignores it, and an ignored signal stays ignored in a new program. */
	signal(SIGPIPE, SIG_DFL);
	process_unblock_signals();
	if (error) {
		errno = -error;
		what = "terminal of";
	} else if (prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE)) {
		/* Without it root reaches no descriptor and no memory of the agent, see guest.c. */
		what = "capabilities of";
	} else if (chdir(FOLDER)) {
		what = "folder " FOLDER " of";
	} else if (strchr(name, '/')) {
		/* execvp() would silently give a file that is no program to /bin/sh. */
		execve(name, arguments, variables);
	} else {
		/* It searches the PATH of its own environment. */
		environ = (char **)variables;
		execvp(name, arguments);
	}
	dprintf(STDERR_FILENO, "%s %s: %s\n", what, name, strerror(errno));
	_exit(EXIT_NOT_RUN);
}

/* Waits for the end of the script, until its limit. */
static void wait_for_script(struct process *p, struct trial *trial, const struct script *s,
			    const struct terminal *t, struct output *o)
{
	int64_t limit_ns = p->start_ns + s->limit_ms * 1000000, then_ns = p->start_ns;

	for (;;) {
		then_ns = then_ns + ALIVE_NS < limit_ns ? then_ns + ALIVE_NS : limit_ns;
		wait_for(p, false, then_ns, t, o);
		if (p->ended || then_ns == limit_ns)
			return;
		/* Before a ring is full. */
		waits_read();
		wl_alive(trial, "%lld s of %lld s; its last line: %.300s",
			 (long long)(then_ns - p->start_ns) / 1000000000,
			 (long long)s->limit_ms / 1000, output_last(o));
	}
}

int process_run(struct process *p, struct trial *trial, const struct script *s,
		const struct terminal *t, struct output *o)
{
	memset(p, 0, sizeof(*p));
	p->start_ns = now_ns();
	p->pid = fork();
	if (p->pid < 0)
		return -errno;
	if (!p->pid)
		child(s, t);
	wait_for_script(p, trial, s, t, o);
	if (!p->ended) {
		p->limited = true;
		kill(-1, SIGKILL);
		wait_for(p, false, now_ns() + KILL_NS, t, o);
	}
	wait_for(p, true, now_ns() + (p->limited ? KILL_NS : REST_NS), t, o);
	if (!p->children && !p->limited) {
		p->gone_ns = now_ns();
	} else if (p->children) {
		kill(-1, SIGKILL);
		wait_for(p, true, now_ns() + KILL_NS, t, o);
	}
	return 0;
}

bool process_kill_all(void)
{
	struct process p = {0};

	kill(-1, SIGKILL);
	wait_for(&p, true, now_ns() + KILL_NS, NULL, NULL);
	return !p.children;
}
