// SPDX-License-Identifier: GPL-2.0
#include "x86.h"

#include <string.h>

/* Documentation/arch/x86/x86_64/mm.rst, with four and with five levels of page tables. */
#define DIRECT_MAP_4 0xffff888000000000ULL
#define DIRECT_MAP_4_SIZE (64ULL << 40)
#define DIRECT_MAP_5 0xff11000000000000ULL
#define DIRECT_MAP_5_SIZE (32ULL << 50)

#define LOCK 0xf0

/* Where the opcode begins: after all prefixes. */
static size_t opcode_of(const uint8_t *code, size_t size)
{
	static const uint8_t prefixes[] = {LOCK, 0x66, 0x67, 0xf2, 0xf3, 0x2e,
					   0x36, 0x3e, 0x26, 0x64, 0x65};
	size_t i;

	for (i = 0; i < size; i++) {
		bool is_rex = (code[i] & 0xf0) == 0x40;

		if (!is_rex && !memchr(prefixes, code[i], sizeof(prefixes)))
			break;
	}
	return i;
}

bool is_locked(const uint8_t *code, size_t size)
{
	size_t at = opcode_of(code, size);

	if (memchr(code, LOCK, at))
		return true;
	return at + 1 < size && (code[at] == 0x86 || code[at] == 0x87) && code[at + 1] < 0xc0;
}

bool is_wide_exchange(const uint8_t *code, size_t size)
{
	size_t at = opcode_of(code, size);

	return at + 2 < size && code[at] == 0x0f && code[at + 1] == 0xc7 &&
	       (code[at + 2] >> 3 & 7) == 1;
}

bool is_call(const uint8_t *code, size_t size)
{
	size_t at = opcode_of(code, size);

	if (at < size && code[at] == 0xe8)
		return true;
	return at + 1 < size && code[at] == 0xff && (code[at + 1] >> 3 & 7) == 2;
}

bool is_return(const uint8_t *code, size_t size)
{
	size_t at = opcode_of(code, size);

	return at < size && (code[at] == 0xc3 || code[at] == 0xc2);
}

bool is_pause(const uint8_t *code, size_t size)
{
	return size == 2 && code[0] == 0xf3 && code[1] == 0x90;
}

bool is_halt(const uint8_t *code, size_t size)
{
	return size == 1 && code[0] == 0xf4;
}

uint64_t without_direct_map(uint64_t address)
{
	if (address - DIRECT_MAP_4 < DIRECT_MAP_4_SIZE)
		return address - DIRECT_MAP_4;
	if (address - DIRECT_MAP_5 < DIRECT_MAP_5_SIZE)
		return address - DIRECT_MAP_5;
	return address;
}
