// SPDX-License-Identifier: GPL-2.0
#include "hunt/work_items.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workload.h"

#define EVENT "/sys/kernel/tracing/events/workqueue/workqueue_queue_work/id"
#define CPUS_MOST 64

static int fds[CPUS_MOST], nr;
/* Some CPU could not be watched. */
static bool incomplete;

static int open_event(int id, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

void work_items_start(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), cpu;
	char text[32];

	nr = 0;
	incomplete = cpus > CPUS_MOST || read_file(EVENT, text, sizeof(text)) <= 0;
	for (cpu = 0; !incomplete && cpu < cpus; cpu++) {
		fds[nr] = open_event(atoi(text), cpu);
		incomplete = fds[nr] < 0;
		nr += !incomplete;
	}
}

int64_t work_items_end(void)
{
	int64_t sum = 0;
	uint64_t count;

	while (nr) {
		int fd = fds[--nr];

		if (read_all(fd, &count, sizeof(count)))
			incomplete = true;
		else
			sum += count;
		close(fd);
	}
	return incomplete ? -1 : sum;
}
