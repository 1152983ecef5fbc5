// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* O_DIRECT */
#include "zram.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h> /* defines BLKGETSIZE64; linux/fs.h conflicts with it */
#include <sys/swap.h>
#include <unistd.h>

#define SYS "/sys/block/zram0/"
/* The layout of the first page: include/linux/swap.h, union swap_header. */
#define HEADER_INFO 1024
#define MAGIC "SWAPSPACE2"

int zram_open(const char *compressor, int64_t bytes)
{
	int error = write_file(SYS "reset", "1");

	if (!error)
		error = write_file(SYS "comp_algorithm", "%s", compressor);
	if (!error)
		error = write_file(SYS "disksize", "%" PRId64, bytes);
	return error;
}

int zram_close(void)
{
	int error = zram_swapoff();

	/* EINVAL: the device was not used for swap, which is no error here. */
	return error && error != -EINVAL ? error : write_file(SYS "reset", "1");
}

void swap_header(void *page, size_t page_size, uint32_t pages)
{
	uint32_t info[3] = {1, pages - 1, 0}; /* version, last page, bad pages */

	memset(page, 0, page_size);
	memcpy((char *)page + HEADER_INFO, info, sizeof(info));
	memcpy((char *)page + page_size - strlen(MAGIC), MAGIC, strlen(MAGIC));
}

static int write_header(int fd)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	uint64_t bytes;
	void *page;
	int error;

	if (ioctl(fd, BLKGETSIZE64, &bytes))
		return -errno;
	if (bytes < 2 * page_size)
		return -ENOSPC;
	page = aligned_alloc(page_size, page_size);
	if (!page)
		return -ENOMEM;
	swap_header(page, page_size, bytes / page_size);
	error = write_all(fd, page, page_size);
	free(page);
	return error;
}

int zram_swapon(void)
{
	/* Bypasses the page cache: the header is in the device when write() returns. */
	int fd = open(ZRAM_DEVICE, O_RDWR | O_DIRECT | O_CLOEXEC);
	int error = fd < 0 ? -errno : write_header(fd);

	if (fd >= 0)
		close(fd);
	if (!error && swapon(ZRAM_DEVICE, 0))
		error = -errno;
	return error;
}

int zram_swapoff(void)
{
	return swapoff(ZRAM_DEVICE) ? -errno : 0;
}

int zram_compact(void)
{
	return write_file(SYS "compact", "1");
}

bool zram_stat_parse(const char *text, struct zram_stat *s)
{
	/* Between pool_bytes and same_pages: the limit of the pool, and its maximum so far. */
	return sscanf(text,
		      "%" SCNd64 " %" SCNd64 " %" SCNd64 " %*d %*d %" SCNd64 " %" SCNd64
		      " %" SCNd64,
		      &s->stored_bytes, &s->compressed_bytes, &s->pool_bytes, &s->same_pages,
		      &s->compacted_pages, &s->huge_pages) == 6;
}

int zram_stat_read(struct zram_stat *s)
{
	char text[256];
	int len = read_file(SYS "mm_stat", text, sizeof(text));

	if (len < 0)
		return len;
	return zram_stat_parse(text, s) ? 0 : -EPROTO;
}
