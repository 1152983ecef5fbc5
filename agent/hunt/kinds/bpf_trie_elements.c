// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"

struct key {
	uint32_t bits, data;
};

static int map;

static void prepare(void)
{
	map = bpf_map(BPF_MAP_TYPE_LPM_TRIE, sizeof(struct key), 8, nr_objects, BPF_F_NO_PREALLOC,
		      0);
}

static void add(int64_t i)
{
	struct key key = {32, (uint32_t)i};

	bpf_set(map, &key, &i);
}

static void remove_one(int64_t i)
{
	struct key key = {32, (uint32_t)i};

	bpf_unset(map, &key);
}

static void release(void)
{
	MUST(close(map));
}

KIND(bpf_trie_elements, "bpf", "element of one trie of prefixes", .shape = OF_ONE,
     .limit = "memory", .needs = "CONFIG_BPF_SYSCALL", .privileged = true, .exit = true,
     .call = "close(map)", .prepare = prepare, .add = add, .remove = remove_one,
     .release = release);
