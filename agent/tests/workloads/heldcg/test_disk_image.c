// SPDX-License-Identifier: GPL-2.0
#include "workloads/heldcg/disk_image.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

#define BLOCKS 200
#define INODES 64

static int64_t number(const unsigned char *at, int bytes)
{
	int64_t value = 0;

	while (bytes--)
		value = value << 8 | at[bytes];
	return value;
}

/* How many bits of a block are not set. */
static int64_t zeros(const unsigned char *bitmap)
{
	int64_t found = 0;

	for (int64_t i = 0; i < 8 * DISK_BLOCK; i++)
		found += !(bitmap[i / 8] >> i % 8 & 1);
	return found;
}

void test_disk_image(void)
{
	int64_t used = disk_image_blocks(INODES);
	unsigned char *image = malloc(used * DISK_BLOCK), *superblock = image + 1024;
	unsigned char *group = image + DISK_BLOCK, *root = image + (used - 1) * DISK_BLOCK;
	unsigned char *inode;

	memset(image, 0xff, used * DISK_BLOCK);
	CHECK(disk_image(image, BLOCKS, INODES) == 0);
	CHECK(number(superblock + 56, 2) == 0xef53);
	CHECK(number(superblock + 0, 4) == INODES);
	CHECK(number(superblock + 4, 4) == BLOCKS);

	/* What is free, in the superblock, in the group, and in its bitmaps. */
	CHECK(number(superblock + 12, 4) == BLOCKS - used);
	CHECK(number(group + 12, 2) == BLOCKS - used);
	CHECK(zeros(image + number(group + 0, 4) * DISK_BLOCK) == BLOCKS - used);
	CHECK(number(superblock + 16, 4) == INODES - 10);
	CHECK(number(group + 14, 2) == INODES - 10);
	CHECK(zeros(image + number(group + 4, 4) * DISK_BLOCK) == INODES - 10);

	/* The root folder, inode 2, has the last used block, with "." and "..". */
	inode = image + number(group + 8, 4) * DISK_BLOCK + number(superblock + 88, 2);
	CHECK(number(inode, 2) == 040755);
	CHECK(number(inode + 40, 4) == used - 1);
	CHECK(number(root, 4) == 2 && root[6] == 1 && root[8] == '.');
	CHECK(number(root + 12, 4) == 2 && root[18] == 2 && !memcmp(root + 20, "..", 2));
	CHECK(number(root + 4, 2) + number(root + 16, 2) == DISK_BLOCK);

	CHECK(disk_image(image, used, INODES) == 0);
	CHECK(disk_image(image, used - 1, INODES) == -EFBIG);
	CHECK(disk_image(image, DISK_MAX_BLOCKS + 1, INODES) == -EFBIG);
	CHECK(disk_image(image, BLOCKS, DISK_MAX_INODES + 16) == -EFBIG);
	free(image);
}
