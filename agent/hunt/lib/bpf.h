/* SPDX-License-Identifier: GPL-2.0 */
/* bpf(): maps, and programs that do nothing. */
#ifndef KTEARDOWN_HUNT_BPF_H
#define KTEARDOWN_HUNT_BPF_H

#include "hunt/kind.h"

#include <linux/bpf.h>

static inline int bpf_call(int command, union bpf_attr *attr)
{
	return MUST(syscall(SYS_bpf, command, attr, sizeof(*attr)));
}

/* `flags` of the map; `inner` is the map that the elements of a map of maps are like. */
static inline int bpf_map(int type, int key, int value, int64_t elements, int flags, int inner)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key;
	attr.value_size = value;
	attr.max_entries = elements;
	attr.map_flags = flags;
	attr.inner_map_fd = inner;
	return bpf_call(BPF_MAP_CREATE, &attr);
}

static inline void bpf_set(int map, const void *key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = map;
	attr.key = (uintptr_t)key;
	attr.value = (uintptr_t)value;
	bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
}

static inline void bpf_unset(int map, const void *key)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = map;
	attr.key = (uintptr_t)key;
	bpf_call(BPF_MAP_DELETE_ELEM, &attr);
}

static inline int bpf_load(int type, const struct bpf_insn *code, int length)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = length;
	attr.license = (uintptr_t) "GPL";
	return bpf_call(BPF_PROG_LOAD, &attr);
}

/* A program that returns 0. */
static inline int bpf_program(int type)
{
	static const struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K},
					       {.code = BPF_JMP | BPF_EXIT}};

	return bpf_load(type, code, 2);
}

#endif
