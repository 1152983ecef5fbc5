// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"

static int map;

static void prepare(void)
{
	map = bpf_map(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, nr_objects, 0, 0);
}

static void add(int64_t i)
{
	int program = bpf_program(BPF_PROG_TYPE_SOCKET_FILTER);
	uint32_t key = i;

	bpf_set(map, &key, &program);
	close(program);
}

static void remove_one(int64_t i)
{
	uint32_t key = i;

	bpf_unset(map, &key);
}

static void release(void)
{
	MUST(close(map));
}

KIND(bpf_tail_calls, "bpf", "program in one map of programs", .shape = OF_ONE, .limit = "memory",
     .needs = "CONFIG_BPF_SYSCALL", .privileged = true, .exit = true, .call = "close(map)",
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
