// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"

static int map;

static void prepare(void)
{
	int inner = bpf_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0, 0);

	map = bpf_map(BPF_MAP_TYPE_HASH_OF_MAPS, 8, 4, nr_objects, BPF_F_NO_PREALLOC, inner);
}

static void add(int64_t i)
{
	int inner = bpf_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0, 0);

	bpf_set(map, &i, &inner);
	close(inner);
}

static void remove_one(int64_t i)
{
	bpf_unset(map, &i);
}

static void release(void)
{
	MUST(close(map));
}

KIND(bpf_inner_maps, "bpf", "map in one map of maps", .shape = OF_ONE, .limit = "memory",
     .needs = "CONFIG_BPF_SYSCALL", .privileged = true, .exit = true, .call = "close(map)",
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
