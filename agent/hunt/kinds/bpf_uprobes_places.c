// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"
#include "hunt/lib/perf.h"
#include "hunt/lib/places.h"

static int type, program;

static void prepare(void)
{
	places_prepare();
	type = perf_number("/sys/bus/event_source/devices/uprobe/type");
	program = bpf_program(BPF_PROG_TYPE_KPROBE);
}

static int open_one(int64_t i)
{
	struct perf_event_attr attr = {
		.type = type, .config1 = (uintptr_t)places_path, .config2 = i};
	int fd = perf_open(&attr, -1, 0, -1);

	MUST(ioctl(fd, PERF_EVENT_IOC_SET_BPF, program));
	return fd;
}

KIND(bpf_uprobes_places, "bpf", "program at a place of its own in another program (uprobe)",
     .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_BPF_EVENTS", .privileged = true,
     .prepare = prepare, .open = open_one);
