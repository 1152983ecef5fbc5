// SPDX-License-Identifier: GPL-2.0
/* The layout is that of Documentation/filesystems/ext4 and fs/ext2/ext2.h. */
#include "disk_image.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define SUPERBLOCK 1024 /* bytes from the beginning of the disk */
#define DESCRIPTORS_BLOCK 1
#define BLOCK_BITMAP 2
#define INODE_BITMAP 3
#define INODE_TABLE 4
#define INODE_SIZE 256
#define FIRST_INODE 11 /* those before are reserved */
#define ROOT_INODE 2
#define SECTORS_PER_BLOCK (DISK_BLOCK / 512)

static void put16(char *at, uint16_t value)
{
	value = htole16(value);
	memcpy(at, &value, sizeof(value));
}

static void put32(char *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

/* The root folder is the block after the inodes. */
static int64_t root_block(int64_t inodes)
{
	return INODE_TABLE + inodes * INODE_SIZE / DISK_BLOCK;
}

int64_t disk_image_blocks(int64_t inodes)
{
	return root_block(inodes) + 1;
}

static void write_superblock(char *s, int64_t blocks, int64_t inodes)
{
	put32(s + 0, inodes);
	put32(s + 4, blocks);
	put32(s + 12, blocks - disk_image_blocks(inodes)); /* free */
	put32(s + 16, inodes - (FIRST_INODE - 1)); /* free */
	put32(s + 24, 2); /* blocks of 1024 << 2 bytes */
	put32(s + 28, 2);
	put32(s + 32, DISK_MAX_BLOCKS); /* blocks in a group */
	put32(s + 36, DISK_MAX_BLOCKS);
	put32(s + 40, inodes); /* in a group */
	put16(s + 54, 0xffff); /* no check after a number of mounts */
	put16(s + 56, 0xef53);
	put16(s + 58, 1); /* clean */
	put16(s + 60, 1); /* continue after an error */
	put32(s + 76, 1); /* the revision with the sizes below */
	put32(s + 84, FIRST_INODE);
	put16(s + 88, INODE_SIZE);
	put32(s + 96, 2); /* entries of folders have the type of the file */
}

static void write_descriptor(char *d, int64_t blocks, int64_t inodes)
{
	put32(d + 0, BLOCK_BITMAP);
	put32(d + 4, INODE_BITMAP);
	put32(d + 8, INODE_TABLE);
	put16(d + 12, blocks - disk_image_blocks(inodes)); /* free */
	put16(d + 14, inodes - (FIRST_INODE - 1)); /* free */
	put16(d + 16, 1); /* folders */
}

/* The first ones are used, and those that do not exist count as used. */
static void write_bitmap(char *bitmap, int64_t used, int64_t existing)
{
	for (int64_t i = 0; i < 8 * DISK_BLOCK; i++) {
		if (i < used || i >= existing)
			bitmap[i / 8] |= 1 << i % 8;
	}
}

static void write_root(char *image, int64_t inodes)
{
	char *inode = image + INODE_TABLE * DISK_BLOCK + (ROOT_INODE - 1) * INODE_SIZE;
	char *entry = image + root_block(inodes) * DISK_BLOCK;

	put16(inode + 0, 040755);
	put32(inode + 4, DISK_BLOCK); /* size */
	put16(inode + 26, 2); /* links */
	put32(inode + 28, SECTORS_PER_BLOCK);
	put32(inode + 40, root_block(inodes));

	/* "." and "..": inode, length of the entry, length of the name, folder, name. */
	put32(entry, ROOT_INODE);
	put16(entry + 4, 12);
	memcpy(entry + 6, "\1\2.", 3);
	put32(entry + 12, ROOT_INODE);
	put16(entry + 16, DISK_BLOCK - 12);
	memcpy(entry + 18, "\2\2..", 4);
}

int disk_image(void *image, int64_t blocks, int64_t inodes)
{
	char *at = image;

	if (blocks > DISK_MAX_BLOCKS || inodes > DISK_MAX_INODES ||
	    disk_image_blocks(inodes) > blocks)
		return -EFBIG;
	memset(at, 0, disk_image_blocks(inodes) * DISK_BLOCK);
	write_superblock(at + SUPERBLOCK, blocks, inodes);
	write_descriptor(at + DESCRIPTORS_BLOCK * DISK_BLOCK, blocks, inodes);
	write_bitmap(at + BLOCK_BITMAP * DISK_BLOCK, disk_image_blocks(inodes), blocks);
	write_bitmap(at + INODE_BITMAP * DISK_BLOCK, FIRST_INODE - 1, inodes);
	write_root(at, inodes);
	return 0;
}
