// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* CLONE_VFORK, memfd_create() */
#include "crowd.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tasks.h"

#define PAGE 4096L

/* -- in the children of the holder -- */

/*
 * All map the same pages of one object: unmapping them takes time, and costs no memory. The
 * end of vfork() wakes the holder in the middle of the exit, and the holder has the higher
 * priority.
 */
__attribute__((noreturn)) static void exit_in_time(int object, int64_t pages)
{
	struct sched_param lower = {.sched_priority = CROWD_PRIORITY - 1};
	int how = MAP_SHARED | MAP_POPULATE;

	if (pages && mmap(NULL, pages * PAGE, PROT_READ, how, object, 0) == MAP_FAILED)
		_exit(1);
	_exit(sched_setscheduler(0, SCHED_FIFO, &lower) ? 1 : 0);
}

/* Its zombies are left to the holder when it is killed. */
__attribute__((noreturn)) static void fork_for_ever(void)
{
	for (;;)
		if (!fork())
			_exit(0);
}

/* -- in the holder -- */

/* From now on it runs only while nothing else does, the kernel's own threads included. */
static int run_last(pid_t pid)
{
	struct sched_param none = {0};

	return sched_setscheduler(pid, SCHED_IDLE, &none) ? -errno : 0;
}

static int start_exiting(struct crowd *c, int64_t pages)
{
	int object = memfd_create("pages", 0);

	if (object < 0 || ftruncate(object, pages * PAGE))
		return -errno;
	for (int64_t i = 0; i < c->count; i++) {
		/* Like vfork(), but with memory of its own. */
		pid_t pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, NULL, NULL, 0);

		if (!pid)
			exit_in_time(object, pages);
		if (pid < 0 || run_last(pid))
			return -errno;
		c->exiting[i] = pid;
	}
	close(object);
	return 0;
}

static pid_t forkers[CROWD_FORKERS];

static int start_forkers(int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		forkers[i] = fork();
		if (!forkers[i])
			fork_for_ever();
		if (forkers[i] < 0 || run_last(forkers[i]))
			return -errno;
	}
	return 0;
}

/* What the forkers leave is the holder's, since it is a subreaper. */
static void end_all(int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		if (forkers[i] > 0)
			kill(forkers[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

__attribute__((noreturn)) static void hold(struct crowd *c, int orders, int answers, int64_t pages,
					   int64_t nr_forkers)
{
	struct sched_param first = {.sched_priority = CROWD_PRIORITY};
	int error = 0;
	char order;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		error = -errno;
	error = error ? error : start_forkers(nr_forkers);
	error = error ? error : start_exiting(c, pages);
	if (write_all(answers, &error, sizeof(error)))
		_exit(1);
	/* It is frozen while it waits; then the agent is gone, or the measurement is over. */
	read_all(orders, &order, sizeof(order));
	end_all(nr_forkers);
	_exit(0);
}

/* -- in the agent -- */

int crowd_start(struct crowd *c, int64_t exiting, int64_t pages, int64_t nr_forkers)
{
	int orders[2], answers[2], error;

	c->count = exiting;
	c->exiting = mmap(NULL, (exiting + 1) * sizeof(pid_t), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->exiting == MAP_FAILED)
		return -errno;
	if (pipe(orders) || pipe(answers))
		return -errno;
	c->holder = fork();
	if (c->holder < 0) {
		c->holder = 0;
		return -errno;
	}
	if (!c->holder) {
		close(orders[1]);
		close(answers[0]);
		hold(c, orders[0], answers[1], pages, nr_forkers);
	}
	close(orders[0]);
	close(answers[1]);
	c->orders = orders[1];
	c->answers = answers[0];
	if (read_all(c->answers, &error, sizeof(error)))
		return -EPIPE;
	return error;
}

int64_t crowd_exited(const struct crowd *c)
{
	int64_t zombies = 0;

	for (int64_t i = 0; i < c->count; i++)
		zombies += task_state(c->exiting[i]) == 'Z';
	return zombies;
}

int crowd_dismiss(struct crowd *c)
{
	int status;

	if (!c->holder)
		return 0;
	close(c->orders);
	while (waitpid(c->holder, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	c->holder = 0;
	close(c->answers);
	munmap(c->exiting, (c->count + 1) * sizeof(pid_t));
	return 0;
}
