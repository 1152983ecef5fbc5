/* SPDX-License-Identifier: GPL-2.0 */
/* Swap space in a zram device. */
#ifndef KTEARDOWN_HUNT_SWAP_H
#define KTEARDOWN_HUNT_SWAP_H

#include "hunt/lib/pages.h"

#include <sys/swap.h>
#include <sys/sysinfo.h>

#define SWAP_DEVICE "/dev/zram0"
#define SWAP_PAGES 262144

/* Also ends what the owner before this one left. */
static inline void swap_prepare(void)
{
	struct {
		char boot[1024];
		uint32_t version, last_page;
		char unused[3054];
		char magic[10];
	} __attribute__((packed))
	header = {.version = 1,
		  .last_page = SWAP_PAGES - 1,
		  .magic = {'S', 'W', 'A', 'P', 'S', 'P', 'A', 'C', 'E', '2'}};
	int fd;

	swapoff(SWAP_DEVICE);
	put_file("/sys/block/zram0/reset", "1");
	MUST(put_file("/sys/block/zram0/disksize", "1073741824") ? -1 : 0);
	fd = MUST(open(SWAP_DEVICE, O_RDWR | O_CLOEXEC));
	MUST(write(fd, &header, PAGE));
	close(fd);
	MUST(swapon(SWAP_DEVICE, 0));
}

static inline int64_t swap_used(void)
{
	struct sysinfo info;

	sysinfo(&info);
	return (int64_t)((info.totalswap - info.freeswap) * info.mem_unit / PAGE);
}

/* Pages with contents of their own; written out at once. */
static inline char *swap_out(int64_t count, int64_t content)
{
	char *memory = pages_reserve(count * PAGE);
	int64_t i;

	memset(memory, 1, count * PAGE);
	for (i = 0; i < count; i++)
		memcpy(memory + i * PAGE, &(int64_t){content + i}, sizeof(i));
	MUST(madvise(memory, count * PAGE, MADV_PAGEOUT));
	return memory;
}

/* Reads all of it back. */
static inline void swap_end(void)
{
	MUST(swapoff(SWAP_DEVICE));
}

#endif
