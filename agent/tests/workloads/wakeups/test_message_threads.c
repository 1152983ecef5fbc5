// SPDX-License-Identifier: GPL-2.0
#include "workloads/wakeups/message_threads.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static struct message_threads_result *result;

/* In a process of its own, as required. */
static bool run(struct message_threads_plan plan)
{
	pid_t child;
	int status;

	memset(result, 0, sizeof(*result));
	child = fork();
	if (child == 0)
		_exit(message_threads_run(&plan, result) ? 1 : 0);
	return waitpid(child, &status, 0) == child && status == 0;
}

/* Every wakeup is followed by its request, whatever other threads do. */
static void all_are_counted(struct message_threads_plan plan)
{
	int64_t rps_percentile = 0;

	CHECK(run(plan));
	CHECK(result->request.count > 0);
	CHECK(result->wakeup.count == result->request.count);
	CHECK(result->took_ns >= plan.runtime_ns);
	CHECK(histogram_percentile(&result->request, 0) >= plan.sleep_us * 998);
	for (int i = 0; i < result->intervals; i++)
		rps_percentile += result->rps[i];
	CHECK(rps_percentile > 0);
}

void test_message_threads(void)
{
	struct message_threads_plan plan = {.message_threads = 1,
					    .workers = 2,
					    .sleep_us = 100,
					    .cache_kb = 4,
					    .operations = 1,
					    .locking = true,
					    .runtime_ns = 100000000,
					    .interval_ns = 20000000};

	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(result != MAP_FAILED);
	if (result == MAP_FAILED)
		return;
	all_are_counted(plan);
	plan.message_threads = 3;
	plan.workers = 5;
	plan.locking = false;
	all_are_counted(plan);
	plan.sleep_us = 0;
	plan.operations = 0;
	plan.cache_kb = 0;
	all_are_counted(plan);
	munmap(result, sizeof(*result));
}
