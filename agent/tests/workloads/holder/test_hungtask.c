// SPDX-License-Identifier: GPL-2.0
#include "tests/test.h"
#include "workloads/holder/hungtask.h"

void test_hungtask(void)
{
	CHECK(hungtask_report("INFO: task kteardown-agent:83 blocked for more than 10 seconds."));
	CHECK(!hungtask_report("INFO: task kteardown-agent:83 was killed"));
	CHECK(!hungtask_report("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"));
}
