/* SPDX-License-Identifier: GPL-2.0 */
/* A compressed block device of its own, used as a disk, past the page cache. What fails returns
 * -errno. */
#ifndef KTEARDOWN_ZRAM_DISK_H
#define KTEARDOWN_ZRAM_DISK_H

#include "workload.h"

struct zram_disk {
	int number;
	int fd; /* -1: it is not set up */
};

/* Make one. It is not set up. */
int zram_disk_add(struct zram_disk *d);
/* Give it a size, and open it. */
int zram_disk_start(struct zram_disk *d, int64_t bytes);
/* Close it, and give its pool back, whatever is in it. */
int zram_disk_stop(struct zram_disk *d);
/* Away with it, set up or not. */
int zram_disk_remove(struct zram_disk *d);

/* What its pool holds. */
int64_t zram_disk_pool_bytes(const struct zram_disk *d);
/* Writes fail that would make the pool hold more; 0: none do. */
int zram_disk_limit(const struct zram_disk *d, int64_t pool_bytes);
int zram_disk_compact(const struct zram_disk *d);

int zram_disk_discard(const struct zram_disk *d, int64_t at, int64_t bytes);
/* Aligned memory only, and whole pages. */
int zram_disk_write(const struct zram_disk *d, int64_t at, const void *data, int64_t bytes);
int zram_disk_read(const struct zram_disk *d, int64_t at, void *data, int64_t bytes);

#endif
