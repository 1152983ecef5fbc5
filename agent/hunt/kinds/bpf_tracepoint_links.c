// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"

static int program;

static void prepare(void)
{
	program = bpf_program(BPF_PROG_TYPE_RAW_TRACEPOINT);
}

static int open_one(int64_t i)
{
	union bpf_attr attr;

	(void)i;
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t) "oom_score_adj_update";
	attr.raw_tracepoint.prog_fd = program;
	return bpf_call(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

KIND(bpf_tracepoint_links, "bpf", "link of one program to one tracepoint", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_BPF_EVENTS", .privileged = true, .prepare = prepare,
     .open = open_one);
