// SPDX-License-Identifier: GPL-2.0
#include "side_effects.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tasks.h"

#define GROUP 100
/*
 * The waiting tasks of a group are its youngest: what is done to the oldest first reaches
 * them late.
 */
#define WAITERS 4
#define OTHERS 600
#define FIRST_KILLED 50 /* of the others: killed at the same time */
#define READY_MS 60000
#define EVENT_MS 10000
#define GONE_MS 40000
#define NOT_READY "not all processes reach their sleep"

static int epoll_fd, event_pipe[2];
static pid_t group[GROUP], others[OTHERS];

__attribute__((noreturn)) static void sleep_forever(void)
{
	for (;;)
		pause();
}

static void wait_for_event(void)
{
	struct epoll_event event;

	_exit(epoll_wait(epoll_fd, &event, 1, -1) != 1);
}

/*
 * Starts a process in the process group of the leader; 0: in a group of its own. -1 if it
 * cannot.
 */
static pid_t start(pid_t leader, void (*body)(void))
{
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, leader);
		body();
	}
	if (pid > 0)
		/* The child does the same: whichever runs first sets the group. */
		setpgid(pid, leader ? leader : pid);
	return pid;
}

/*
 * Starts a process group; its youngest processes run the body. False if a process does not
 * sleep in time.
 */
static bool start_group(pid_t *pids, int nr, void (*body)(void))
{
	for (int i = 0; i < nr; i++) {
		pids[i] = start(i ? pids[0] : 0, i < nr - WAITERS ? sleep_forever : body);
		if (pids[i] < 0)
			return false;
	}
	for (int i = 0; i < nr; i++)
		if (!task_wait_state(pids[i], 'S', READY_MS))
			return false;
	return true;
}

const char *event_reaches_running_task(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	const char *wrong = NULL;
	pid_t waiter;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || pipe(event_pipe) ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_pipe[0], &event))
		return "cannot make an epoll instance";
	/* The task that began to wait last is woken first. */
	waiter = start(0, wait_for_event);
	/* So many that they are not gone when kill() returns. */
	if (task_wait_state(waiter, 'S', READY_MS) && start_group(others, OTHERS, wait_for_event)) {
		kill(-others[0], SIGKILL);
		if (write(event_pipe[1], "", 1) != 1 || task_reap(waiter, EVENT_MS))
			wrong = "no running task gets the event";
		if (!group_reap(others[0], GONE_MS))
			wrong = "tasks of the group that was killed are left";
	} else {
		wrong = NOT_READY;
	}
	if (waiter > 0)
		kill(waiter, SIGKILL);
	close(epoll_fd);
	close(event_pipe[0]);
	close(event_pipe[1]);
	return wrong;
}

static bool is_among(pid_t pid, const pid_t *pids, int nr)
{
	for (int i = 0; i < nr; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/*
 * Kills the next of the others for each one that has exited. Returns how many of them run
 * when the group is gone, or -1.
 */
static int kill_one_by_one(void)
{
	int64_t end = now_ns() + GONE_MS * 1000000LL;
	int killed = 0, gone = 0;

	while (killed < FIRST_KILLED)
		kill(others[killed++], SIGKILL);
	kill(-group[0], SIGKILL);
	while (gone < GROUP) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid <= 0 && now_ns() > end)
			return -1;
		if (pid <= 0)
			sleep_ms(1);
		else if (is_among(pid, group, GROUP))
			gone++;
		else if (killed < OTHERS)
			kill(others[killed++], SIGKILL);
	}
	return OTHERS - killed;
}

const char *group_exits_beside_others(void)
{
	const char *wrong = NULL;
	int left;

	if (!start_group(group, GROUP, sleep_forever) ||
	    !start_group(others, OTHERS, sleep_forever))
		return NOT_READY;
	left = kill_one_by_one();
	if (left < 0)
		wrong = "tasks of the group that was killed are left";
	else if (left < OTHERS / 4)
		wrong = "the processes that were killed after the group are gone before it";
	kill(-others[0], SIGKILL);
	if (!group_reap(others[0], GONE_MS))
		wrong = "the other processes are not gone";
	return wrong;
}
