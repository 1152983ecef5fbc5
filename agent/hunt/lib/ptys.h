/* SPDX-License-Identifier: GPL-2.0 */
/* Pseudoterminals, in a mount of their own. */
#ifndef KTEARDOWN_HUNT_PTYS_H
#define KTEARDOWN_HUNT_PTYS_H

#include "hunt/kind.h"

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static inline void ptys_prepare(void)
{
	new_namespaces(CLONE_NEWNS);
	MUST(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL));
	MUST(mkdir("pts", 0700));
	MUST(mount("devpts", "pts", "devpts", 0, "newinstance,ptmxmode=666"));
}

static inline int pty_master(void)
{
	int fd = MUST(open("pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)), unlocked = 0;

	MUST(ioctl(fd, TIOCSPTLCK, &unlocked));
	return fd;
}

static inline int pty_slave(int master)
{
	return MUST(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
}

#endif
