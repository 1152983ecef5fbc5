// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/perf.h"
#include "hunt/lib/places.h"

static int type;

static void prepare(void)
{
	places_prepare();
	type = perf_number("/sys/bus/event_source/devices/uprobe/type");
}

static int open_one(int64_t i)
{
	struct perf_event_attr attr = {
		.type = type, .config1 = (uintptr_t)places_path, .config2 = i};

	return perf_open(&attr, -1, 0, -1);
}

KIND(perf_uprobes_places, "perf", "event of a place of its own in a program (uprobe)",
     .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_UPROBE_EVENTS", .privileged = true,
     .prepare = prepare, .open = open_one);
