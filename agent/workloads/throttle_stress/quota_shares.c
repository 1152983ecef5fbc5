// SPDX-License-Identifier: GPL-2.0
/* What throttled tasks get of the CPU, and what the kernel thinks that they need. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quota_cases.h"
#include "quota_parts.h"

/* -- what the kernel thinks a task needs, which it can only learn while its time passes -- */

int64_t sched_value_in(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && (line[len] == ' ' || line[len] == ':'))
			return atoll(line + len + strspn(line + len, " :"));
	}
	return -1;
}

static bool util_comes_to(pid_t pid, int64_t at_least, int64_t at_most)
{
	int64_t end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL, util = -1;
	char path[64], text[8192];

	snprintf(path, sizeof(path), "/proc/%d/sched", (int)pid);
	while (util < at_least || util > at_most) {
		if (now_ns() > end || read_file(path, text, sizeof(text)) < 0)
			return false;
		util = sched_value_in(text, "se.avg.util_avg");
		sleep_ms(5);
	}
	return true;
}

/* All of a CPU is 1024. */
const char *quota_load_follows(const char *cgroup)
{
	quota_scene->spin = true;
	EXPECT(!victim_put(0, VICTIM_TOLD, cgroup), "no process can be started");
	for (int i = 0; i < 2; i++) {
		pid_t pid = quota_scene->pids[0];

		EXPECT(victims_throttled(), "it is not throttled");
		EXPECT(!quota_set(cgroup, "max") && victims_run(), "without quota it does not run");
		EXPECT(util_comes_to(pid, 600, 1100), "it runs all the time, and its load is low");
		quota_scene->spin = false;
		EXPECT(util_comes_to(pid, 0, 300), "it sleeps, and its load is high");
		quota_scene->spin = true;
		EXPECT(util_comes_to(pid, 600, 1100), "it runs again, and its load is low");
		EXPECT(!quota_set(cgroup, QUOTA_SMALLEST), "no quota can be set");
	}
	return NULL;
}

/* -- who gets how much of a quota -- */

#define CROWD 24
#define SHARE_PERCENT 60

/* What the one that gets least gets, in percent of the mean. */
static int64_t least_percent(void)
{
	int64_t from_ns[CROWD], least_ns = INT64_MAX, all_ns = 0;

	for (int i = 0; i < CROWD; i++)
		from_ns[i] = victim_cpu_ns(quota_scene->pids[i]);
	sleep_ms(5000);
	for (int i = 0; i < CROWD; i++) {
		int64_t ns = victim_cpu_ns(quota_scene->pids[i]) - from_ns[i];

		least_ns = ns < least_ns ? ns : least_ns;
		all_ns += ns;
	}
	return all_ns > 0 ? least_ns * CROWD * 100 / all_ns : 0;
}

const char *quota_shared(const char *cgroup)
{
	static char text[80];
	int64_t percent = 0;

	for (int i = 0; i < CROWD; i++)
		EXPECT(!victim_put(i, VICTIM_SPIN, cgroup), "no process can be started");
	victims_pin(1);
	sleep_ms(500);
	/* A host that stops the guest takes it from some, but not always. */
	for (int stretch = 0; stretch < 5 && percent < SHARE_PERCENT; stretch++)
		percent = least_percent();
	snprintf(text, sizeof(text), "one gets %lld%% of what they get on average",
		 (long long)percent);
	return percent < SHARE_PERCENT ? text : NULL;
}
