// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* O_DIRECT */
#include "zram_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CONTROL "/sys/class/zram-control/"
#define BUSY_MS 2000

static int set(const struct zram_disk *d, const char *file, int64_t value)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/zram%d/%s", d->number, file);
	return write_file(path, "%lld", (long long)value);
}

int zram_disk_add(struct zram_disk *d)
{
	char text[32];
	int len = read_file(CONTROL "hot_add", text, sizeof(text));

	*d = (struct zram_disk){.number = len > 0 ? atoi(text) : -1, .fd = -1};
	return len < 0 ? len : 0;
}

int zram_disk_start(struct zram_disk *d, int64_t bytes)
{
	char path[32];
	int error = set(d, "disksize", bytes);

	if (error)
		return error;
	snprintf(path, sizeof(path), "/dev/zram%d", d->number);
	d->fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	return d->fd < 0 ? -errno : 0;
}

/*
 * A task that has the device open at the moment keeps it busy, as the kernel does when it
 * is closed.
 */
static int retry_while_busy(int (*step)(const struct zram_disk *), const struct zram_disk *d)
{
	int64_t end = now_ns() + BUSY_MS * 1000000LL;
	int error = step(d);

	while (error == -EBUSY && now_ns() < end) {
		sleep_ms(1);
		error = step(d);
	}
	return error;
}

static int reset(const struct zram_disk *d)
{
	return set(d, "reset", 1);
}

static int hot_remove(const struct zram_disk *d)
{
	return write_file(CONTROL "hot_remove", "%d", d->number);
}

int zram_disk_stop(struct zram_disk *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	return retry_while_busy(reset, d);
}

int zram_disk_remove(struct zram_disk *d)
{
	int error = d->number < 0 ? 0 : zram_disk_stop(d);

	if (!error && d->number >= 0)
		error = retry_while_busy(hot_remove, d);
	d->number = -1;
	return error;
}

int zram_disk_compact(const struct zram_disk *d)
{
	return set(d, "compact", 1);
}

int zram_disk_discard(const struct zram_disk *d, int64_t at, int64_t bytes)
{
	uint64_t range[2] = {at, bytes};

	return ioctl(d->fd, BLKDISCARD, range) ? -errno : 0;
}

int zram_disk_write(const struct zram_disk *d, int64_t at, const void *data, int64_t bytes)
{
	ssize_t done = pwrite(d->fd, data, bytes, at);

	return done == bytes ? 0 : done < 0 ? -errno : -ENOSPC;
}

int zram_disk_read(const struct zram_disk *d, int64_t at, void *data, int64_t bytes)
{
	ssize_t done = pread(d->fd, data, bytes, at);

	return done == bytes ? 0 : done < 0 ? -errno : -EIO;
}
