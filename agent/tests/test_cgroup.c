// SPDX-License-Identifier: GPL-2.0
#include <errno.h>

#include "../lib/cgroup.h"
#include "../lib/meminfo.h"
#include "test.h"

void test_cgroup(void)
{
	static const char stat[] = "nr_descendants 3\nnr_dying_descendants 2000\nnr_dying 17\n";
	static const char info[] = "Slab:   84704 kB\nPercpu:   64128 kB\n";

	CHECK(cgroup_value_in(stat, "nr_descendants") == 3);
	CHECK(cgroup_value_in(stat, "nr_dying") == 17);
	CHECK(cgroup_value_in(stat, "nr_dying_descendants") == 2000);
	CHECK(cgroup_value_in(stat, "descendants") == -ENOENT);
	CHECK(cgroup_value_in("", "nr_dying") == -ENOENT);
	CHECK(cgroup_value("/nowhere", "cgroup.stat", "nr_dying") == -ENOENT);
	CHECK(cgroup_remove("/nowhere", 1000) == -ENOENT);
	CHECK(cgroup_enter("/nowhere") == -ENOENT);
	CHECK(meminfo_field(info, "Percpu") == 64128);
	CHECK(meminfo_field(info, "Per") == -1);
}
