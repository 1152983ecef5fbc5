// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/meminfo.h"
#include "tests/test.h"

/* For rmdir() a cgroup is a folder like any other. */
static void check_tree(void)
{
	char top[] = "/tmp/kteardown-cgroup-XXXXXX", path[64];

	CHECK(mkdtemp(top) != NULL);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", top, i == 0 ? "a" : i == 1 ? "a/b" : "c");
		CHECK(!mkdir(path, 0700));
	}
	snprintf(path, sizeof(path), "%s/c/busy", top);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	CHECK(cgroup_remove_tree(top, 1) == -ENOTEMPTY);
	unlink(path);
	CHECK(!cgroup_remove_tree(top, 1));
	CHECK(access(top, F_OK) && errno == ENOENT);
	CHECK(!cgroup_remove_tree(top, 1));
}

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
	check_tree();
	CHECK(meminfo_field(info, "Percpu") == 64128);
	CHECK(meminfo_field(info, "Per") == -1);
}
