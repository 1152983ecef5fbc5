// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/perf.h"

static int first;
static void *buffer;

static void prepare(void)
{
	first = perf_clock(0, -1, -1);
	buffer = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, first, 0);
	MUST((long)buffer);
}

static int open_one(int64_t i)
{
	int fd = perf_clock(0, -1, -1);

	(void)i;
	MUST(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, first));
	return fd;
}

static void release(void)
{
	MUST(munmap(buffer, 8192));
}

KIND(perf_one_buffer, "perf", "event of one task that writes into one buffer", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_PERF_EVENTS", .privileged = true, .call = "munmap(buffer)",
     .prepare = prepare, .open = open_one, .release = release);
