// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/perf.h"

static int type;

static void prepare(void)
{
	type = perf_number("/sys/bus/event_source/devices/kprobe/type");
}

static int open_one(int64_t i)
{
	struct perf_event_attr attr = {.type = type, .config1 = (uintptr_t) "kernel_halt"};

	(void)i;
	return perf_open(&attr, -1, 0, -1);
}

KIND(perf_kprobes, "perf", "event of one function of the kernel (kprobe)", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_KPROBE_EVENTS", .privileged = true, .prepare = prepare,
     .open = open_one);
