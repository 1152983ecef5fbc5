// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/agent.h"
#include "tests/test.h"

static void one_of_each(void)
{
	struct param params[] = {{"things", "3"}, {"how", "well"}};
	struct trial_plan trial = {
		.index = 4,
		.workload = workload_find("fake"),
		.params = params,
		.nr_params = 2,
	};
	struct profile profile = {4, 1, 99991, 500000, 10, 2, 2};

	record_trial_start(&trial);
	record_alive(4, "half of it");
	record_sample(4, 0, "a_ns", -5, true);
	record_sample(4, 1, "a_ns", INT64_MAX, false);
	record_ratio(4, 1, "a_share", 0.25, false);
	record_check(4, 1, "all", false, "3 \"left\"");
	record_profile(&profile);
	record_stack(&profile, "a;b", 10, 1000000);
	record_trial_end(4, "void", "all: 3");
	record_error("it broke");
	record_bye(1);
}

static void as_documented(void)
{
	CHECK_TEXT(records_of(one_of_each),
		   "{\"type\":\"trial_start\",\"trial\":4,\"workload\":\"fake\","
		   "\"params\":{\"things\":3,\"how\":\"well\"}}\n"
		   "{\"type\":\"alive\",\"trial\":4,\"detail\":\"half of it\"}\n"
		   "{\"type\":\"sample\",\"trial\":4,\"repetition\":0,\"metric\":\"a_ns\","
		   "\"value\":-5,\"warmup\":true}\n"
		   "{\"type\":\"sample\",\"trial\":4,\"repetition\":1,\"metric\":\"a_ns\","
		   "\"value\":9223372036854775807}\n"
		   "{\"type\":\"sample\",\"trial\":4,\"repetition\":1,\"metric\":\"a_share\","
		   "\"value\":0.250000}\n"
		   "{\"type\":\"check\",\"trial\":4,\"repetition\":1,\"name\":\"all\","
		   "\"ok\":false,\"detail\":\"3 \\\"left\\\"\"}\n"
		   "{\"type\":\"profile\",\"trial\":4,\"repetition\":1,"
		   "\"period_ns\":99991,\"stretch_ns\":500000,\"cpus\":2,\"samples\":10,"
		   "\"lost\":2}\n"
		   "{\"type\":\"stack\",\"trial\":4,\"repetition\":1,\"stack\":\"a;b\","
		   "\"count\":10,\"ns\":1000000}\n"
		   "{\"type\":\"trial_end\",\"trial\":4,\"status\":\"void\","
		   "\"detail\":\"all: 3\"}\n"
		   "{\"type\":\"error\",\"detail\":\"it broke\"}\n"
		   "{\"type\":\"bye\",\"trials\":1}\n");
}

/* If the reader is gone, the agent ends with an error: it neither hangs nor dies of SIGPIPE. */
static void reader_gone(void)
{
	int ends[2], status;
	pid_t pid;

	CHECK(!pipe(ends));
	close(ends[0]); /* before the fork, since the child may write at once */
	pid = fork();
	if (!pid) {
		close(STDERR_FILENO);
		record_to(ends[1]);
		record_bye(0);
		_exit(0);
	}
	close(ends[1]);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
}

void test_record(void)
{
	as_documented();
	reader_gone();
}
