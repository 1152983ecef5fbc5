// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/bpf.h"
#include "hunt/lib/places.h"

/* Of linux/bpf.h since Linux 6.6. */
#define TRACE_UPROBE_MULTI 48

struct uprobe_multi {
	uint32_t program, target, type, flags;
	uint64_t path, offsets, counters, cookies;
	uint32_t count, multi_flags, pid, unused;
};

static int program, link_fd;
static uint64_t *offsets;

static void prepare(void)
{
	static const struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K},
					       {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr attr;
	int64_t i;

	places_prepare();
	offsets = array(sizeof(*offsets));
	for (i = 0; i < nr_objects; i++)
		offsets[i] = i;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.expected_attach_type = TRACE_UPROBE_MULTI;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "GPL";
	program = bpf_call(BPF_PROG_LOAD, &attr);
}

static void make(void)
{
	struct uprobe_multi link = {.program = program,
				    .type = TRACE_UPROBE_MULTI,
				    .path = (uintptr_t)places_path,
				    .offsets = (uintptr_t)offsets,
				    .count = nr_objects};

	link_fd = MUST(syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof(link)));
}

static void release(void)
{
	MUST(close(link_fd));
}

KIND(bpf_uprobe_multi, "bpf", "place in a program (uprobe) of one link", .shape = ON_ONE,
     .limit = "memory", .needs = "CONFIG_BPF_EVENTS", .privileged = true, .most = 1 << 20,
     .exit = true, .call = "close(link)", .prepare = prepare, .make = make, .release = release);
