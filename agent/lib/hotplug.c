// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* CPU sets */
#include "hotplug.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_CPUS 64

/* Of the servers that are stopped, in ns; "": the CPU has no server, or it was not stopped. */
static char runtimes[MAX_CPUS][32];

static const char *server(int cpu)
{
	static char file[96];

	snprintf(file, sizeof(file), "/sys/kernel/debug/sched/fair_server/cpu%d/runtime", cpu);
	return file;
}

static void stop_server(int cpu)
{
	if (!runtimes[cpu][0] && read_file(server(cpu), runtimes[cpu], sizeof(runtimes[cpu])) >= 0)
		write_file(server(cpu), "0");
}

/*
 * Done on the CPU itself, because its server runs then: if a server is not running, 6.12
 * stops it twice.
 */
void hotplug_begin(void)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (int cpu = 0; cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &all) && !stay_on_cpu(cpu))
			stop_server(cpu);
	sched_setaffinity(0, sizeof(all), &all);
}

int hotplug_cpu1(bool online)
{
	return write_file("/sys/devices/system/cpu/cpu1/online", "%d", online);
}

void hotplug_end(void)
{
	hotplug_cpu1(true);
	for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (runtimes[cpu][0])
			write_file(server(cpu), "%s", runtimes[cpu]);
		runtimes[cpu][0] = '\0';
	}
}
