// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"

static struct bpf_insn code[] = {
	{.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD},
	{0},
	{.code = BPF_ALU64 | BPF_MOV | BPF_K},
	{.code = BPF_JMP | BPF_EXIT},
};

static void prepare(void)
{
	code[0].imm = bpf_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0, 0);
}

static int open_one(int64_t i)
{
	(void)i;
	return bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, code, 4);
}

KIND(bpf_programs_one_map, "bpf", "program with a reference to one map", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_BPF_SYSCALL", .privileged = true, .prepare = prepare,
     .open = open_one);
