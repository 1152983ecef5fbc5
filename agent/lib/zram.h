/* SPDX-License-Identifier: GPL-2.0 */
/* The compressed block device /dev/zram0, and swap on it. What fails returns -errno. */
#ifndef KTEARDOWN_ZRAM_H
#define KTEARDOWN_ZRAM_H

#include "workload.h"

#define ZRAM_DEVICE "/dev/zram0"

/* What the device's mm_stat says. Pages are the system's. */
struct zram_stat {
	int64_t stored_bytes; /* what was written and is not discarded, not compressed */
	int64_t compressed_bytes;
	int64_t pool_bytes; /* what the allocator holds for it, with its own loss */
	int64_t same_pages; /* filled with one word: in no pool */
	int64_t compacted_pages; /* given back by compaction, since the device was set up */
	int64_t huge_pages; /* did not compress */
};

/*
 * Empty the device and give it a compressor ("lzo-rle", "lzo", "lz4", "zstd") and a size. It must
 * not be in use. -EINVAL: the kernel has no such compressor; -ENOENT: it has no zram.
 */
int zram_open(const char *compressor, int64_t bytes);
/* Empty it, give its memory back; swap on it is turned off first. */
int zram_close(void);

/* Write a swap header and swap to the device; pages written are freed when their slot is. */
int zram_swapon(void);
int zram_swapoff(void);

int zram_stat_read(struct zram_stat *s);
/* Ask for the pool's compaction; returns when it is done. */
int zram_compact(void);

/* The first page of a swap area of this many pages, as mkswap(8) writes it. */
void swap_header(void *page, size_t page_size, uint32_t pages);
/* The text of mm_stat; false: it is none. */
bool zram_stat_parse(const char *text, struct zram_stat *s);

#endif
