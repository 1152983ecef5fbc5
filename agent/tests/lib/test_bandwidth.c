// SPDX-License-Identifier: GPL-2.0
#include <errno.h>

#include "lib/bandwidth.h"
#include "tests/test.h"

void test_bandwidth(void)
{
	static const char text[] =
		"usage_usec 4212\nuser_usec 12\nsystem_usec 4200\nnr_periods 31\nnr_throttled 30\n"
		"throttled_usec 812345\nnr_bursts 2\nburst_usec 99\n";
	struct bandwidth_stat s;

	bandwidth_parse(text, &s);
	CHECK(s.usage_us == 4212 && s.periods == 31 && s.throttled == 30);
	CHECK(s.throttled_us == 812345 && s.bursts == 2);
	/* A cgroup of a kernel without CFS_BANDWIDTH. */
	bandwidth_parse("usage_usec 7\n", &s);
	CHECK(s.usage_us == 7 && !s.periods && !s.throttled && !s.throttled_us && !s.bursts);
	CHECK(bandwidth_read("/nowhere", &s) == -ENOENT);
	CHECK(bandwidth_lift("/nowhere") == -ENOENT);
	CHECK(bandwidth_allow("/nowhere") == -ENOENT);
}
