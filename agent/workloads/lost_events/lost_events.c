// SPDX-License-Identifier: GPL-2.0
/*
 * Many processes wait for the same events, and after them a reader begins to wait. All but
 * the reader are killed, and an event comes each millisecond: how many events do processes
 * consume that are about to exit, before the reader gets one?
 */
#define _GNU_SOURCE /* struct msgbuf */
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tasks.h"
#include "workload.h"

#define READY_MS 60000
#define GONE_MS 60000
#define MAX_EVENTS 10000

struct shared {
	_Atomic uint32_t futex;
	_Atomic bool got;
	pid_t pids[];
};

struct message {
	long type;
	char text;
};

/* One way to wait: waits for one event; sends one. Both return false if they cannot. */
struct way {
	const char *name;
	bool (*wait)(void);
	bool (*send)(void);
};

static struct shared *shared;
static size_t shared_size;
static int fds[2], queue, epoll_fd;
static pid_t reader;
static int64_t processes;

static bool wait_pipe(void)
{
	char byte;

	return read(fds[0], &byte, 1) == 1;
}

static bool send_pipe(void)
{
	return write(fds[1], "", 1) == 1;
}

static bool wait_futex(void)
{
	return !syscall(SYS_futex, &shared->futex, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static bool send_futex(void)
{
	return syscall(SYS_futex, &shared->futex, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0;
}

static bool wait_message(void)
{
	struct message m;

	return msgrcv(queue, &m, sizeof(m.text), 0, 0) == sizeof(m.text);
}

static bool send_message(void)
{
	struct message m = {.type = 1};

	return !msgsnd(queue, &m, sizeof(m.text), 0);
}

static bool wait_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, -1) == 1 && wait_pipe();
}

/* An epoll instance of its own, of which one is to be woken. */
static bool wait_exclusive(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
	int own = epoll_create1(0);

	return !epoll_ctl(own, EPOLL_CTL_ADD, fds[0], &event) &&
	       epoll_wait(own, &event, 1, -1) == 1 && wait_pipe();
}

static const struct way ways[] = {
	{"pipe", wait_pipe, send_pipe},		  {"futex", wait_futex, send_futex},
	{"message", wait_message, send_message},  {"epoll", wait_epoll, send_pipe},
	{"exclusive", wait_exclusive, send_pipe},
};
static const struct way *way;

static pid_t start_waiter(pid_t group)
{
	pid_t pid = fork();

	if (!pid) {
		bool last = group < 0;

		setpgid(0, last ? 0 : group);
		if (way->wait() && last)
			shared->got = true;
		_exit(0);
	}
	if (pid > 0)
		/* The child does the same: whichever runs first sets the group. */
		setpgid(pid, group > 0 ? group : pid);
	return pid;
}

static int start_waiters(struct trial *t)
{
	struct epoll_event event = {.events = EPOLLIN};

	memset(shared, 0, shared_size);
	/* The others do without System V IPC, which the kernel may not have. */
	queue = way->wait == wait_message ? msgget(IPC_PRIVATE, 0600) : 0;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (queue < 0 || pipe(fds) || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[0], &event))
		return wl_fail(t, "cannot make what is waited for: %m");
	for (int64_t i = 0; i < processes; i++) {
		shared->pids[i] = start_waiter(i ? shared->pids[0] : 0);
		if (shared->pids[i] < 0)
			return wl_fail(t, "cannot fork: %m");
	}
	for (int64_t i = 0; i < processes; i++)
		if (!task_wait_state(shared->pids[i], 'S', READY_MS))
			return wl_fail(t, "process %lld does not sleep", (long long)i);
	reader = start_waiter(-1);
	if (!task_wait_state(reader, 'S', READY_MS))
		return wl_fail(t, "the last process does not sleep");
	return 0;
}

static void clean_up(void)
{
	if (shared->pids[0] > 0)
		kill(-shared->pids[0], SIGKILL);
	kill_and_reap_all(reader);
	shared->pids[0] = reader = 0;
	if (way->wait == wait_message)
		msgctl(queue, IPC_RMID, NULL);
	close(epoll_fd);
	close(fds[0]);
	close(fds[1]);
}

static int run(struct trial *t)
{
	int64_t from_ns, events = 0;

	if (start_waiters(t))
		return -1;
	wl_settle(t, 20);
	if (kill(-shared->pids[0], SIGKILL))
		return wl_fail(t, "cannot send the signal: %m");
	from_ns = now_ns();
	while (!shared->got && events < MAX_EVENTS) {
		if (!way->send())
			return wl_fail(t, "cannot send an event: %m");
		events++;
		sleep_ms(1);
	}
	wl_sample(t, "event_ns", now_ns() - from_ns);
	wl_sample(t, "lost_count", events - 1);
	wl_check(t, "one_arrives", shared->got, "none of %lld", (long long)events);
	wl_check(t, "all_gone", group_reap(shared->pids[0], GONE_MS), "some are left after %d s",
		 GONE_MS / 1000);
	clean_up();
	return 0;
}

static int setup(struct trial *t)
{
	const char *on = wl_param_str(t, "on");
	int error = raise_limits();

	processes = wl_param_int(t, "processes");
	reader = 0;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (!strcmp(on, ways[i].name))
			way = &ways[i];
	shared_size = sizeof(*shared) + processes * sizeof(pid_t);
	shared = mmap(NULL, shared_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	return error ? wl_fail(t, "cannot raise the limits on tasks: %s", strerror(-error)) : 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	if (reader)
		clean_up();
	munmap(shared, shared_size);
}

static const char *const params[] = {"processes", "on", NULL};
static const struct workload lost_events = {
	.name = "lost_events",
	.summary = "events that killed processes consume before a running process gets one",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(lost_events);
