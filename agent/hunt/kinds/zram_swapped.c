// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/swap.h>

#define CHUNK (1 << 16)

/* Memory that has been swapped to a compressed device, and is then unmapped. */
static char *memory;

static void prepare(void)
{
	char text[4096] = "";
	int fd;

	put_file("/sys/block/zram0/disksize", "1G");
	/* The header of a swap device, as mkswap writes it. */
	fd = MUST(open("/dev/zram0", O_RDWR | O_CLOEXEC));
	*(uint32_t *)(text + 1024) = 1;
	*(uint32_t *)(text + 1028) = (1 << 18) - 1;
	memcpy(text + 4086, "SWAPSPACE2", 10);
	MUST(pwrite(fd, text, sizeof(text), 0));
	close(fd);
	if (swapon("/dev/zram0", 0) && errno != EBUSY)
		owner_failed("swapon()");
}

static void make(void)
{
	size_t size = nr_objects * CHUNK;

	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST((long)memory);
	MUST(madvise(memory, size, MADV_NOHUGEPAGE));
	for (size_t at = 0; at < size; at += 64)
		memory[at] = at / 64;
	MUST(madvise(memory, size, MADV_PAGEOUT));
}

static void remove_one(int64_t i)
{
	MUST(munmap(memory + i * CHUNK, CHUNK));
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * CHUNK));
}

KIND(zram_swapped, "memory", "64 kB of memory on a compressed swap device", .shape = OF_ONE,
     .limit = "memory", .needs = "ZRAM", .privileged = true, .call = "munmap()", .most = 14000,
     .exit = true, .prepare = prepare, .make = make, .remove = remove_one, .release = release);
