// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "script/process.h"
#include "script/terminal.h"
#include "tests/test.h"

static struct output output;

/* Prints what is not in the way of ^C, asks for it, and waits for it. */
__attribute__((noreturn)) static void script(const struct terminal *t)
{
	if (terminal_enter(t))
		_exit(1);
	process_unblock_signals();
	if (!isatty(0) || getpgrp() != getpid() || tcgetpgrp(2) != getpid())
		_exit(2);
	if (write(1, "one\ntwo\n", 8) != 8 || write(2, "kt-interrupt\n", 13) != 13)
		_exit(3);
	for (;;)
		pause();
}

/* The exit status: 0, or which step was wrong. */
static int session(void)
{
	struct terminal t;
	int status, pid, i;

	process_block_signals();
	for (i = 0; i < 2; i++) {
		if (output_init(&output) || terminal_open(&t))
			return 1;
		pid = fork();
		if (!pid)
			script(&t);
		/* PID 1 waits for signals; here it is enough to look again and again. */
		while (!waitpid(pid, &status, WNOHANG)) {
			terminal_read(&t, &output);
			usleep(1000);
		}
		terminal_read(&t, &output);
		terminal_close(&t);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGINT)
			return 2;
		if (output.nr != 3 || strcmp(output.text, "one") ||
		    strcmp(output_last(&output), OUTPUT_INTERRUPT))
			return 3;
		output_free(&output);
	}
	return 0;
}

/* In a process of its own, since it becomes the leader of a session. */
void test_terminal(void)
{
	int status, pid = fork();

	if (!pid) {
		/* The hangup of a terminal; PID 1 gets no signal without a handler. */
		signal(SIGHUP, SIG_IGN);
		_exit(session());
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
