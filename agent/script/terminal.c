// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* ptsname_r() */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "terminal.h"

/*
 * The agent is the leader of the session, as the shell of a user is, from which a script is
 * started. If the script were, its exit would send SIGHUP to what it has left in the background
 * (disassociate_ctty in drivers/tty/tty_jobctrl.c), which a script that a shell starts does not do.
 */
static int lead_session(int slave)
{
	if (getsid(0) != getpid() && setsid() < 0)
		return -errno;
	return ioctl(slave, TIOCSCTTY, 0) ? -errno : 0;
}

static int set_modes(int slave)
{
	struct termios modes;

	if (tcgetattr(slave, &modes))
		return -errno;
	/* The lines as the script writes them, and nothing of what the agent sends. */
	modes.c_oflag &= ~OPOST;
	modes.c_lflag &= ~(ECHO | ECHONL);
	modes.c_lflag |= ISIG;
	/* ^C does not throw away output that was not read yet (isig in drivers/tty/n_tty.c). */
	modes.c_lflag |= NOFLSH;
	return tcsetattr(slave, TCSANOW, &modes) ? -errno : 0;
}

/*
 * Output sends SIGIO to the agent, for which it can wait in sigtimedwait(). F_SETOWN comes before
 * O_ASYNC: else __tty_fasync() in drivers/tty/tty_io.c chooses the receiver.
 */
static int set_async(int master)
{
	int flags = fcntl(master, F_GETFL);

	if (flags < 0 || fcntl(master, F_SETOWN, getpid()) ||
	    fcntl(master, F_SETFL, flags | O_ASYNC | O_NONBLOCK))
		return -errno;
	return 0;
}

int terminal_open(struct terminal *t)
{
	char path[64];
	int error;

	t->slave = -1;
	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->master < 0)
		return -errno;
	if (unlockpt(t->master) || ptsname_r(t->master, path, sizeof(path)))
		error = -errno;
	else if ((t->slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0)
		error = -errno;
	else if (!(error = set_modes(t->slave)) && !(error = set_async(t->master)))
		error = lead_session(t->slave);
	if (error)
		terminal_close(t);
	return error;
}

int terminal_enter(const struct terminal *t)
{
	int fd;

	if (setpgid(0, 0) || tcsetpgrp(t->slave, getpid()))
		return -errno;
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(t->slave, fd) < 0)
			return -errno;
	return 0;
}

void terminal_read(const struct terminal *t, struct output *o)
{
	char data[4096]; /* as much as the line discipline holds (N_TTY_BUF_SIZE) */
	ssize_t n;

	/*
	 * A read that would wait first moves what was written into the buffer (n_tty_read), so
	 * after the exit of the last writer nothing is missed.
	 */
	while ((n = read(t->master, data, sizeof(data))) > 0 || (n < 0 && errno == EINTR)) {
		int interrupts = n > 0 ? output_add(o, data, n, now_ns()) : 0;

		while (interrupts--)
			if (write(t->master, "\003", 1) < 0 && errno != EAGAIN)
				break;
	}
}

void terminal_close(struct terminal *t)
{
	if (t->slave >= 0)
		close(t->slave);
	/* It hangs up the script's end, which is then the terminal of no session any more. */
	if (t->master >= 0)
		close(t->master);
	t->slave = t->master = -1;
}
