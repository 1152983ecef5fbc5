/* SPDX-License-Identifier: GPL-2.0 */
/* perf_event_open(): events of the software clock of a task, or others. */
#ifndef KTEARDOWN_HUNT_PERF_H
#define KTEARDOWN_HUNT_PERF_H

#include "hunt/kind.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

static inline int perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	attr->size = sizeof(*attr);
	return MUST(syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC));
}

/* Counts the clock of a task, in user mode only: what an ordinary user may do. */
static inline int perf_clock(pid_t pid, int cpu, int group)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};

	return perf_open(&attr, pid, cpu, group);
}

/* The number in a file of sysfs, which is in the last characters of its line. */
static inline int perf_number(const char *path)
{
	char text[32] = "";
	int fd = MUST(open(path, O_RDONLY | O_CLOEXEC));

	MUST(read(fd, text, sizeof(text) - 1));
	close(fd);
	return atoi(text);
}

#endif
