/* SPDX-License-Identifier: GPL-2.0 */
/* What the plugin has to know about an instruction and an address of x86-64. */
#ifndef X86_H
#define X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it has the prefix LOCK, or is XCHG with memory, which is locked without it. */
bool is_locked(const uint8_t *code, size_t size);
bool is_call(const uint8_t *code, size_t size);
bool is_return(const uint8_t *code, size_t size);
bool is_pause(const uint8_t *code, size_t size);
bool is_halt(const uint8_t *code, size_t size);
/* CMPXCHG8B or CMPXCHG16B. */
bool is_wide_exchange(const uint8_t *code, size_t size);

/* An address of the kernel's map of all memory as a physical one; any other as it is. */
uint64_t without_direct_map(uint64_t address);

#endif
