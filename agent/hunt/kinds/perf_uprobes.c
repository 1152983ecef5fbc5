// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/perf.h"

static char path[4096];
static int type;

static void prepare(void)
{
	int fd = make_file("file");

	MUST(write(fd, path, sizeof(path)));
	close(fd);
	MUST((long)getcwd(path, sizeof(path) - 10));
	strcat(path, "/file");
	type = perf_number("/sys/bus/event_source/devices/uprobe/type");
}

static int open_one(int64_t i)
{
	struct perf_event_attr attr = {.type = type, .config1 = (uintptr_t)path};

	(void)i;
	return perf_open(&attr, 0, -1, -1);
}

KIND(perf_uprobes, "perf", "event of one place of a program (uprobe)", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_UPROBE_EVENTS", .privileged = true, .prepare = prepare,
     .open = open_one);
