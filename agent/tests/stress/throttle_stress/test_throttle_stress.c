// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress/throttle_stress/cases.h"
#include "stress/throttle_stress/victims.h"
#include "tests/test.h"

static void test_sched_file(void)
{
	static const char text[] =
		"agent (12, #threads: 1)\n"
		"---------------------------\n"
		"se.avg.load_avg                              :                 1024\n"
		"se.avg.util_avg                              :                  731\n"
		"se.avg.util_avg_more                         :                    5\n"
		"policy:0\n";

	CHECK(sched_value_in(text, "se.avg.util_avg") == 731);
	CHECK(sched_value_in(text, "se.avg.load_avg") == 1024);
	CHECK(sched_value_in(text, "policy") == 0);
	CHECK(sched_value_in(text, "se.avg.util") == -1);
	CHECK(sched_value_in("", "policy") == -1);
}

static void test_cases(void)
{
	int nr = 0;

	for (const struct throttle_case *c = throttle_cases; c->invariant; c++, nr++)
		for (const struct throttle_case *other = c + 1; other->invariant; other++)
			CHECK(strcmp(c->invariant, other->invariant) != 0);
	CHECK(nr == 21);
}

/* The CPU time of a process that uses some, and of one that is gone. */
static void test_cpu_time(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			;
	CHECK(pid > 0);
	while (victim_cpu_ns(pid) < 2000000)
		sleep_ms(1);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	CHECK(victim_cpu_ns(pid) >= 2000000);
	CHECK(victim_cpu_ns(pid) == victim_cpu_ns(pid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(victim_cpu_ns(pid) == -1);
}

void test_throttle_stress(void)
{
	CHECK(quota_set("/nowhere", "max") == -ENOENT);
	CHECK(quota_allow_below("/nowhere") == -ENOENT);
	CHECK(victim_move(1, "/nowhere") == -ENOENT);
	test_sched_file();
	test_cases();
	test_cpu_time();
}
