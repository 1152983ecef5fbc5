/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The terminal of a script. With a pipe instead of it, standard output would be buffered, each
 * forked child would print the buffer of its parent once more, and there would be no ^C.
 */
#ifndef KTEARDOWN_SCRIPT_TERMINAL_H
#define KTEARDOWN_SCRIPT_TERMINAL_H

#include "output.h"

struct terminal {
	int master; /* the agent's end */
	/*
	 * The script's end, which the agent keeps open as the shell of a user does: without any
	 * user the session would lose its terminal, and so /dev/tty (tty_release).
	 */
	int slave;
};

/* A new terminal, which becomes that of the agent's session. 0 or -errno. */
int terminal_open(struct terminal *t);
/*
 * In the forked child: makes it the foreground process group of the terminal, and the terminal its
 * standard input, output and error. SIGTTOU must be blocked. 0 or -errno.
 */
int terminal_enter(const struct terminal *t);
/*
 * Reads what was printed and is not read yet, without waiting, and sends ^C if a line asks for it.
 */
void terminal_read(const struct terminal *t, struct output *o);
void terminal_close(struct terminal *t);

#endif
