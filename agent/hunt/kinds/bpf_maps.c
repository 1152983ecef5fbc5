// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"

static int open_one(int64_t i)
{
	(void)i;
	return bpf_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0, 0);
}

KIND(bpf_maps, "bpf", "map", .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_BPF_SYSCALL",
     .privileged = true, .open = open_one);
