// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "core/agent.h"
#include "lib/parallel.h"
#include "tests/test.h"

static _Atomic int64_t *done;
static int64_t elapsed_ns, failing_share;

static bool work(int64_t count)
{
	*done += count;
	return count != failing_share;
}

static int three_processes(struct trial *t)
{
	return parallel_run(t, 3, 8, work, &elapsed_ns);
}

static const struct workload workload = {
	.name = "parallel", .summary = "three processes", .run = three_processes};

static void work_together(void)
{
	struct trial_plan plan = {.workload = &workload, .repetitions = 1};

	*done = elapsed_ns = 0;
	trial_run(&plan, 1);
}

void test_parallel(void)
{
	done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	failing_share = -1;
	CHECK(strstr(records_of(work_together), "\"status\":\"ok\""));
	CHECK(*done == 8);
	CHECK(elapsed_ns > 0);
	/* Eight pieces for three processes: 3, 3 and 2. */
	failing_share = 2;
	CHECK(strstr(records_of(work_together), "3 of 3 processes started, 1 of them failed"));
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	munmap((void *)done, sizeof(*done));
}
