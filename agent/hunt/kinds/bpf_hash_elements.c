// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"

static int map;

static void prepare(void)
{
	map = bpf_map(BPF_MAP_TYPE_HASH, 8, 8, nr_objects, BPF_F_NO_PREALLOC, 0);
}

static void add(int64_t i)
{
	bpf_set(map, &i, &i);
}

static void remove_one(int64_t i)
{
	bpf_unset(map, &i);
}

static void release(void)
{
	MUST(close(map));
}

KIND(bpf_hash_elements, "bpf", "element of one hash map", .shape = OF_ONE, .limit = "memory",
     .needs = "CONFIG_BPF_SYSCALL", .privileged = true, .exit = true, .call = "close(map)",
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
