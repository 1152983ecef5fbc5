// SPDX-License-Identifier: GPL-2.0
#include "workloads/wakeups/messages.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static struct messages_seen *seen;

/* In a process of its own, as it must be. */
static bool run(struct messages_plan plan)
{
	pid_t child;
	int status;

	memset(seen, 0, sizeof(*seen));
	child = fork();
	if (child == 0)
		_exit(messages_run(&plan, seen) ? 1 : 0);
	return waitpid(child, &status, 0) == child && status == 0;
}

/* Every wakeup is followed by its request, whoever else is at work. */
static void all_are_counted(struct messages_plan plan)
{
	int64_t of_intervals = 0;

	CHECK(run(plan));
	CHECK(seen->request.count > 0);
	CHECK(seen->wakeup.count == seen->request.count);
	CHECK(seen->took_ns >= plan.runtime_ns);
	CHECK(histogram_percentile(&seen->request, 0) >= plan.sleep_us * 998);
	for (int i = 0; i < seen->intervals; i++)
		of_intervals += seen->rps[i];
	CHECK(of_intervals > 0);
}

void test_messages(void)
{
	struct messages_plan plan = {.message_threads = 1,
				     .workers = 2,
				     .sleep_us = 100,
				     .cache_kb = 4,
				     .operations = 1,
				     .locking = true,
				     .runtime_ns = 100000000,
				     .interval_ns = 20000000};

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(seen != MAP_FAILED);
	if (seen == MAP_FAILED)
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
	munmap(seen, sizeof(*seen));
}
