// SPDX-License-Identifier: GPL-2.0
#include "workers.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "lib/tasks.h"
#include "limits.h"
#include "rings.h"
#include "victims.h"

/*
 * The requests take a quarter of a second of CPU time, for which a quota of 10% pays in 25
 * periods. What need not wait for that ends within a few.
 */
#define SOON_PERIODS 10
#define DEBT_PERIODS 60

static bool await(bool (*reached)(void), int64_t most_periods)
{
	int64_t from = limited_periods(), end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL;

	while (!reached()) {
		if (limited_periods() - from > most_periods || now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

static const char *soon(const char *what, int64_t from)
{
	static char text[80];

	snprintf(text, sizeof(text), "%s ends after %lld periods", what,
		 (long long)(limited_periods() - from));
	return limited_periods() - from <= SOON_PERIODS ? NULL : text;
}

static bool submitted(void)
{
	return victims_shared->progress[0] > 0;
}

static const char *put(enum victim_work work)
{
	victims_shared->progress[0] = 0;
	EXPECT(!quota_set(limited, LIMITED_QUOTA), "no quota can be set");
	EXPECT(!ring_share(), "no ring can be made");
	EXPECT(!victim_put(0, work, limited), "no process can be started in the cgroup");
	EXPECT(await(submitted, DEBT_PERIODS), "it cannot submit its requests");
	return NULL;
}

/* Not the agent: the workers of a process belong to the first ring that it has used. */
static pid_t write_from_outside(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (ring_write_once())
		_exit(EXIT_FAILURE);
	for (;;)
		pause();
}

/* One at a time writes to a file, for all processes that share a ring. */
static const char *hashed(void)
{
	const char *wrong = put(VICTIM_WRITES);
	int64_t from;
	pid_t pid;
	bool wrote;

	EXPECT(!wrong, wrong);
	sleep_ms(200);
	from = limited_periods();
	pid = write_from_outside();
	EXPECT(pid > 0, "no process can be started");
	wrote = await(ring_wrote_once, DEBT_PERIODS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT(wrote, "a write through the same ring does not end");
	return soon("a write through the same ring", from);
}

const char *workers_hashed(void)
{
	const char *wrong = hashed();

	ring_unshare();
	return wrong;
}

/* The worker of the victim, which has one; 0 if it has none. */
static pid_t worker(void)
{
	pid_t found = 0, victim = victims_shared->pids[0];
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)victim);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != victim)
			found = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return found;
}

static bool sleeps(void)
{
	return task_state(worker()) == 'S';
}

/*
 * Without a request it is on the list of those that a new request can wake. If it waits for quota
 * meanwhile it is not woken, and the request waits with it.
 */
static const char *idle(void)
{
	const char *wrong = put(VICTIM_READ);
	int64_t from;

	EXPECT(!wrong, wrong);
	EXPECT(await(ring_read_done, DEBT_PERIODS), "the read does not end");
	from = limited_periods();
	EXPECT(await(sleeps, DEBT_PERIODS), "an idle worker does not sleep");
	return soon("what an idle worker does before it sleeps", from);
}

const char *workers_idle(void)
{
	const char *wrong = idle();

	ring_unshare();
	return wrong;
}

/* The name changes after execve() has waited for the workers. */
static bool has_other_name(void)
{
	char path[64], ours[32], its[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)victims_shared->pids[0]);
	return read_file("/proc/self/comm", ours, sizeof(ours)) > 0 &&
	       read_file(path, its, sizeof(its)) > 0 && strcmp(ours, its);
}

static const char *execs(void)
{
	const char *wrong = put(VICTIM_EXECS);
	int64_t from = limited_periods();

	EXPECT(!wrong, wrong);
	EXPECT(await(has_other_name, DEBT_PERIODS), "execve() does not end");
	return soon("execve()", from);
}

const char *workers_execs(void)
{
	const char *wrong = execs();

	ring_unshare();
	return wrong;
}
