/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A second compressed block device, used as a disk, without the page cache. Functions that
 * fail return -errno.
 */
#ifndef KTEARDOWN_ZRAM_DISK_H
#define KTEARDOWN_ZRAM_DISK_H

#include "workload.h"

struct zram_disk {
	int number;
	int fd; /* -1: not set up */
};

/* Makes a device. It is not set up yet. */
int zram_disk_add(struct zram_disk *d);
/* Sets its size and opens it. */
int zram_disk_start(struct zram_disk *d, int64_t bytes);
/* Closes it and frees its pool, whatever it contains. */
int zram_disk_stop(struct zram_disk *d);
/* Removes the device, set up or not. */
int zram_disk_remove(struct zram_disk *d);

int zram_disk_compact(const struct zram_disk *d);

int zram_disk_discard(const struct zram_disk *d, int64_t at, int64_t bytes);
/* Aligned memory and whole pages only. */
int zram_disk_write(const struct zram_disk *d, int64_t at, const void *data, int64_t bytes);
int zram_disk_read(const struct zram_disk *d, int64_t at, void *data, int64_t bytes);

#endif
