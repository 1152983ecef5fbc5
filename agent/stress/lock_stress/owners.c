// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* F_OFD_SETLK, CLONE_FILES */
#include "owners.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FD 1024 /* more than the agent ever has */

static int open_lock_file(void)
{
	return open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int set_lock(int fd, int command, const struct request *r)
{
	struct flock lock = {
		.l_type = r->type,
		.l_whence = SEEK_SET,
		.l_start = r->first,
		.l_len = r->bytes,
	};

	return fcntl(fd, command, &lock) ? errno : 0;
}

/* A child that has the same descriptors: its own copy, or with CLONE_FILES the same table. */
static pid_t fork_with(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

static int wait_for(pid_t pid)
{
	return waitpid(pid, NULL, 0) == pid ? 0 : errno;
}

/* The file stays open in a child, and comes back from there. */
static int pass_file(int *fd)
{
	pid_t owner = getpid(), pid = fork_with(0);
	int pidfd, passed;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == owner)
			pause();
		_exit(0);
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	close(*fd);
	passed = (int)syscall(SYS_pidfd_getfd, pidfd, *fd, 0);
	close(pidfd);
	kill(pid, SIGKILL);
	*fd = passed;
	return passed < 0 ? errno : wait_for(pid);
}

static int dup_file(int *fd)
{
	int copy = dup(*fd);

	if (copy < 0)
		return errno;
	close(*fd);
	*fd = copy;
	return 0;
}

static int share_files(int *fd, bool closes)
{
	pid_t pid = fork_with(CLONE_FILES);

	if (pid == 0) {
		if (closes)
			close(*fd);
		_exit(0);
	}
	if (pid < 0 || wait_for(pid))
		return errno;
	if (closes)
		*fd = open_lock_file();
	return *fd < 0 ? errno : 0;
}

static int file_do(int *fd, const struct request *r)
{
	switch (r->order) {
	case ORDER_SET:
		return set_lock(*fd, F_OFD_SETLK, r);
	case ORDER_CLOSE:
		close(*fd);
		*fd = open_lock_file();
		return *fd < 0 ? errno : 0;
	case ORDER_DUP:
		return dup_file(fd);
	case ORDER_PASS:
		return pass_file(fd);
	default:
		return share_files(fd, r->order == ORDER_SHARED_CLOSE);
	}
}

/* In the process that owns the locks. */
static int process_do(int *fd, const struct request *r)
{
	int other;
	pid_t pid;

	switch (r->order) {
	case ORDER_SET:
		return set_lock(*fd, F_SETLK, r);
	case ORDER_CLOSE:
		other = open_lock_file();
		return other < 0 || close(other) ? errno : 0;
	case ORDER_DUP:
		return dup_file(fd);
	case ORDER_PASS:
		pid = fork_with(0);
		if (pid == 0)
			_exit(close(*fd));
		return wait_for(pid);
	default:
		return share_files(fd, r->order == ORDER_SHARED_CLOSE);
	}
}

bool owner_keeps(const struct lock_owner *o, enum order order)
{
	if (order == ORDER_DUP)
		return !o->pid; /* every close() of a process takes its POSIX locks */
	return order == ORDER_PASS || order == ORDER_SHARED_EXIT;
}

static void serve(int ask, int answer)
{
	struct request r;
	int fd, result;

	/* The files of other owners must be open in no other process. */
	for (fd = 3; fd < MAX_FD; fd++)
		if (fd != ask && fd != answer)
			close(fd);
	fd = open_lock_file();
	result = fd < 0 ? errno : 0;
	write_all(answer, &result, sizeof(result));
	while (!read_all(ask, &r, sizeof(r))) {
		result = process_do(&fd, &r);
		if (write_all(answer, &result, sizeof(result)))
			break;
	}
	_exit(0);
}

static int read_answer(const struct lock_owner *o)
{
	int result;

	return read_all(o->answer, &result, sizeof(result)) ? EPIPE : result;
}

int start_owner(struct lock_owner *o, bool process)
{
	int asks[2], answers[2];

	*o = (struct lock_owner){.fd = -1, .ask = -1, .answer = -1};
	if (!process) {
		o->fd = open_lock_file();
		return o->fd < 0 ? errno : 0;
	}
	if (pipe2(asks, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		return errno;
	o->pid = fork();
	if (o->pid == 0)
		serve(asks[0], answers[1]);
	close(asks[0]);
	close(answers[1]);
	o->ask = asks[1];
	o->answer = answers[0];
	return o->pid < 0 ? errno : read_answer(o);
}

int owner_do(struct lock_owner *o, const struct request *r)
{
	if (!o->pid)
		return file_do(&o->fd, r);
	return write_all(o->ask, r, sizeof(*r)) ? EPIPE : read_answer(o);
}

void owner_stop(struct lock_owner *o)
{
	if (o->pid > 0) {
		kill(o->pid, SIGKILL);
		waitpid(o->pid, NULL, 0);
	}
	if (o->fd >= 0)
		close(o->fd);
	if (o->ask >= 0)
		close(o->ask);
	if (o->answer >= 0)
		close(o->answer);
	*o = (struct lock_owner){.fd = -1, .ask = -1, .answer = -1};
}
