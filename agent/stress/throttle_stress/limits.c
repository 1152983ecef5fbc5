// SPDX-License-Identifier: GPL-2.0
#include "limits.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "cases.h"
#include "lib/cgroup.h"
#include "lib/tasks.h"
#include "victims.h"

#define QUOTA_US 10000 /* of LIMITED_QUOTA */
#define PERIODS 160
/*
 * Usage may be twice the quota: what is over at the end of a system call is paid for in later
 * periods. A thread that is not limited uses ten times the quota.
 */
#define MOST_PERCENT 200
/* On average in each period; a thread of the kernel that sleeps tests nothing. */
#define LEAST_US 100
/*
 * The other task runs in each of so many periods, however long one call is. Two workers that read
 * at the same time are paid for in 54 periods on the instruction clock.
 */
#define ITS_TURN 80
/* A call takes some periods. What is not limited for 160 periods takes 1600 to pay for. */
#define DEATH_PERIODS 80

enum { IN_KERNEL, SPINNING };

char limited[128];

int64_t limited_periods(void)
{
	return cgroup_value(limited, "cpu.stat", "nr_periods");
}

static int64_t usage_us(void)
{
	return cgroup_value(limited, "cpu.stat", "usage_usec");
}

/* Waits for so many periods; the spinning task must progress meanwhile. */
static bool spins_for(int64_t count)
{
	int64_t end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL, from = limited_periods();
	uint64_t before = victims_shared->progress[SPINNING];

	while (limited_periods() < from + count) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return victims_shared->progress[SPINNING] != before;
}

static const char *start(enum victim_work work)
{
	EXPECT(!quota_set(limited, LIMITED_QUOTA), "no quota can be set");
	EXPECT(!victim_put(IN_KERNEL, work, limited) && !victim_put(SPINNING, VICTIM_SPIN, limited),
	       "no process can be started in the cgroup");
	victim_pin(IN_KERNEL, 0);
	victim_pin(SPINNING, 1);
	return NULL;
}

static const char *limit(enum victim_work work)
{
	static char text[160];
	const char *wrong = start(work);
	int64_t from, from_us, in_kernel_ns, percent, died;
	bool turns = true;

	EXPECT(!wrong, wrong);
	sleep_ms(500);
	from = limited_periods();
	from_us = usage_us();
	in_kernel_ns = victim_cpu_ns(victims_shared->pids[IN_KERNEL]);
	for (int i = 0; i < PERIODS; i += ITS_TURN)
		turns = spins_for(ITS_TURN) && turns;
	from = limited_periods() - from;
	percent = (usage_us() - from_us) * 100 / (from * QUOTA_US);
	in_kernel_ns = victim_cpu_ns(victims_shared->pids[IN_KERNEL]) - in_kernel_ns;
	EXPECT(in_kernel_ns / 1000 >= LEAST_US * from, "the thread in the kernel does not run");
	died = limited_periods();
	EXPECT(victims_end(true), "not all of them exit");
	died = limited_periods() - died;
	snprintf(text, sizeof(text),
		 "%lld%% of the quota used, %s progress, exit after %lld periods",
		 (long long)percent, turns ? "with" : "without", (long long)died);
	return percent <= MOST_PERCENT && turns && died <= DEATH_PERIODS ? NULL : text;
}

const char *limit_polled(void)
{
	return limit(VICTIM_POLLED);
}

const char *limit_reads(void)
{
	return limit(VICTIM_READS);
}

const char *limit_long_call(void)
{
	return limit(VICTIM_CALL);
}

/* -- a task that was killed and has not exited yet -- */

/* The debt of a tick takes up to ten periods, that of a long system call forty or more. */
#define EXIT_PERIODS 20

/*
 * Until the group has a debt of many periods: nothing is used for some of them. Where the group
 * is stopped in the middle of a long call it never has.
 */
static void await_debt(void)
{
	int64_t end = now_ns() + 20000000000, before;

	do {
		before = usage_us();
		sleep_ms(500);
	} while (usage_us() != before && now_ns() < end);
}

/* False if it does not stop before it exits. */
static bool kill_until_exit_stop(pid_t pid)
{
	int64_t end = now_ns() + QUOTA_DEATH_MS * 1000000LL;
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT) || kill(pid, SIGKILL))
		return false;
	while (waitpid(pid, &status, WNOHANG | __WALL) != pid) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return WIFSTOPPED(status) && status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

/*
 * It is killed, stops for its tracer before it exits, and has requests of io_uring that it must
 * cancel then. It must not wait until the group has paid for the long call of another task.
 */
const char *limit_exit(void)
{
	static char text[80];
	int64_t from, status;
	pid_t pid;

	EXPECT(!quota_set(limited, "1000 100000"), "no quota can be set");
	EXPECT(!victim_put(SPINNING, VICTIM_RING, limited) && spins_for(EXIT_PERIODS) &&
		       !victim_put(IN_KERNEL, VICTIM_CALL, limited),
	       "no process can be started in the cgroup");
	victims_pin(1);
	await_debt();
	pid = victims_shared->pids[SPINNING];
	EXPECT(kill_until_exit_stop(pid), "it does not stop before it exits");
	await_debt();
	from = limited_periods();
	EXPECT(!ptrace(PTRACE_CONT, pid, 0, 0), "it cannot be continued");
	status = task_reap(pid, QUOTA_DEATH_MS);
	victim_gone(pid);
	snprintf(text, sizeof(text), "it exits after %lld periods",
		 (long long)(limited_periods() - from));
	return WIFSIGNALED(status) && limited_periods() - from <= EXIT_PERIODS ? NULL : text;
}

int limits_setup(const char *top)
{
	snprintf(limited, sizeof(limited), "%s/limited", top);
	return cgroup_make(limited);
}
