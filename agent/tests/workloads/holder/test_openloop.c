// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "core/agent.h"
#include "tests/test.h"
#include "workloads/holder/openloop.h"

#define OPERATIONS 20
#define EVERY_NS 1000000
/* The other operations are done by the other threads. */
#define STALLED 3

static bool can_prepare;
static struct operation operations[OPERATIONS];
static int64_t from_ns, until_ns, missing, failed;

static bool prepare(void)
{
	return can_prepare;
}

static bool operate(int64_t thread, int64_t number)
{
	if (number == STALLED)
		for (;;)
			sleep_ms(1000);
	return number % 2 && thread >= 0 && thread < 3;
}

static int open_loop(struct trial *t)
{
	static const struct openloop_work work = {prepare, operate};

	if (openloop_start(t, &work, 3, OPERATIONS, EVERY_NS))
		return -1;
	from_ns = now_ns();
	openloop_go(from_ns);
	while (openloop_done() < OPERATIONS - 1)
		sleep_ms(1);
	until_ns = now_ns();
	failed = openloop_failed();
	missing = openloop_times(operations, until_ns);
	return 0;
}

static void drop(struct trial *t)
{
	(void)t;
	openloop_drop();
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static const struct workload loop = {
	.name = "loop", .summary = "a loop", .run = open_loop, .cleanup = drop};

static void run_loop(void)
{
	struct trial_plan plan = {.workload = &loop, .repetitions = 1};

	trial_run(&plan, 1);
}

void test_openloop(void)
{
	can_prepare = true;
	CHECK(strstr(records_of(run_loop), "\"status\":\"ok\""));
	CHECK(missing == 1);
	CHECK(failed == OPERATIONS / 2);
	for (int i = 0; i < OPERATIONS; i++) {
		CHECK(operations[i].from_ns == from_ns + i * EVERY_NS);
		CHECK(operations[i].to_ns >= operations[i].from_ns);
		CHECK((operations[i].to_ns == until_ns) == (i == STALLED));
	}
	can_prepare = false;
	CHECK(strstr(records_of(run_loop), "0 of 3 threads that need the lock started"));
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}
