/* SPDX-License-Identifier: GPL-2.0 */
/* The compressed block device /dev/zram0, and swap on it. Functions that fail return -errno. */
#ifndef KTEARDOWN_ZRAM_H
#define KTEARDOWN_ZRAM_H

#include "workload.h"

#define ZRAM_DEVICE "/dev/zram0"

/* The device's mm_stat. Pages are pages of the system. */
struct zram_stat {
	int64_t stored_bytes; /* data that were written and not discarded, before compression */
	int64_t compressed_bytes;
	int64_t pool_bytes; /* memory that the allocator holds for them, including its overhead */
	int64_t same_pages; /* filled with one word, and therefore not in the pool */
	int64_t compacted_pages; /* freed by compaction since the device was set up */
	int64_t huge_pages; /* did not compress */
};

/*
 * Empties the device and sets its compressor ("lzo-rle", "lzo", "lz4", "zstd") and its
 * size. The device must not be in use. -EINVAL: the kernel does not have the compressor;
 * -ENOENT: it does not have zram.
 */
int zram_open(const char *compressor, int64_t bytes);
/* Empties the device and frees its memory; swap on it is turned off first. */
int zram_close(void);

/*
 * Writes a swap header and turns swap on. The kernel discards a page when its swap slot is
 * freed.
 */
int zram_swapon(void);
int zram_swapoff(void);

int zram_stat_read(struct zram_stat *s);
/* Starts a compaction of the pool; returns when it is done. */
int zram_compact(void);

/* Makes the first page of a swap area of this many pages, as mkswap(8) writes it. */
void swap_header(void *page, size_t page_size, uint32_t pages);
/* Parses the text of mm_stat; false if it is not valid. */
bool zram_stat_parse(const char *text, struct zram_stat *s);

#endif
