/* SPDX-License-Identifier: GPL-2.0 */
/* An empty ext2 file system, as mkfs writes it: one group of blocks, and only the root folder. */
#ifndef KTEARDOWN_DISK_IMAGE_H
#define KTEARDOWN_DISK_IMAGE_H

#include "workload.h"

#define DISK_BLOCK 4096
/* What a group's bitmap of one block describes. */
#define DISK_MAX_BLOCKS (8 * DISK_BLOCK)
#define DISK_MAX_INODES (8 * DISK_BLOCK)

/*
 * How many blocks of an image for this many inodes have content, from the first on. The
 * inodes include those that ext2 reserves.
 */
int64_t disk_image_blocks(int64_t inodes);
/*
 * Writes these blocks to image, for a disk of this many blocks; inodes: a multiple of 16.
 * Returns 0, or -EFBIG if one group cannot have as many, or the disk is too small.
 */
int disk_image(void *image, int64_t blocks, int64_t inodes);

#endif
