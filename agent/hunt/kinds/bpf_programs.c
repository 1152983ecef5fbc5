// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"

static int open_one(int64_t i)
{
	(void)i;
	return bpf_program(BPF_PROG_TYPE_SOCKET_FILTER);
}

KIND(bpf_programs, "bpf", "program", .shape = OF_ONE, .limit = "nofile",
     .needs = "CONFIG_BPF_SYSCALL", .privileged = true, .open = open_one);
