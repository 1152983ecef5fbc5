// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* O_DIRECT */
#include "swap_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "meminfo.h"
#include "zram.h"

#define QUIET_NS 500000000
#define POLL_NS 500000
#define ZSWAP "/sys/module/zswap/parameters/"

static int open_zswap(const char *compressor, const char **what)
{
	char now[64];
	int error;

	*what = "cannot set the compressor of zswap";
	error = write_file(ZSWAP "compressor", "%s", compressor);
	if (error)
		return error;
	*what = "cannot set the share of memory for zswap";
	error = write_file(ZSWAP "max_pool_percent", "90");
	if (error)
		return error;
	*what = "cannot turn zswap on";
	error = write_file(ZSWAP "enabled", "Y");
	if (error)
		return error;
	/*
	 * zswap silently replaces a compressor that it does not have, when it is first turned on.
	 */
	*what = "cannot set the compressor of zswap";
	if (read_file(ZSWAP "compressor", now, sizeof(now)) < 0)
		return -EIO;
	now[strcspn(now, "\n")] = '\0';
	return strcmp(now, compressor) ? -EINVAL : 0;
}

/*
 * Takes the pool's lock for reading once: that is how lock statistics distinguish an
 * rwlock (lib/lockstat.h).
 */
static int read_once(void)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	void *page = aligned_alloc(page_size, page_size);
	int fd = open(ZRAM_DEVICE, O_RDONLY | O_DIRECT | O_CLOEXEC);
	int error = fd < 0 ? -errno : page ? read_all(fd, page, page_size) : -ENOMEM;

	if (fd >= 0)
		close(fd);
	free(page);
	return error;
}

int backend_open(enum backend kind, const char *compressor, int64_t bytes, const char **what)
{
	int error;

	*what = "cannot set up " ZRAM_DEVICE;
	error = zram_open(compressor, bytes);
	if (error || kind == BACKEND_DIRECT)
		return error;
	*what = "cannot swap to " ZRAM_DEVICE;
	error = zram_swapon();
	if (!error)
		error = read_once();
	if (!error && kind == BACKEND_ZSWAP)
		error = open_zswap(compressor, what);
	return error;
}

int backend_stop(enum backend kind)
{
	return kind == BACKEND_DIRECT ? 0 : zram_swapoff();
}

int backend_close(enum backend kind)
{
	if (kind == BACKEND_ZSWAP)
		write_file(ZSWAP "enabled", "N");
	return zram_close();
}

static int zswap_usage(struct pool_usage *h)
{
	char text[4096];
	int len = read_file("/proc/meminfo", text, sizeof(text));
	int64_t page_kb = sysconf(_SC_PAGESIZE) / 1024;

	if (len < 0)
		return len;
	h->behind_pages = h->pages;
	h->pages = meminfo_field(text, "Zswapped") / page_kb;
	h->pool_kb = meminfo_field(text, "Zswap");
	return h->pool_kb < 0 ? -EPROTO : 0;
}

int backend_usage(enum backend kind, struct pool_usage *h)
{
	struct zram_stat s;
	int error = zram_stat_read(&s);

	if (error)
		return error;
	*h = (struct pool_usage){
		.pages = s.stored_bytes / sysconf(_SC_PAGESIZE),
		.pool_kb = s.pool_bytes / 1024,
		.special_pages = s.same_pages + s.huge_pages,
	};
	return kind == BACKEND_ZSWAP ? zswap_usage(h) : 0;
}

bool pool_usage_equal(const struct pool_usage *a, const struct pool_usage *b)
{
	return a->pages == b->pages && a->pool_kb == b->pool_kb;
}

int backend_settle(enum backend kind, const struct pool_usage *before, struct pool_usage *left,
		   int64_t *changed_ns)
{
	struct pool_usage now;
	int error = backend_usage(kind, left);

	*changed_ns = now_ns();
	while (!error && !pool_usage_equal(left, before) && now_ns() - *changed_ns < QUIET_NS) {
		sleep_ns(POLL_NS);
		error = backend_usage(kind, &now);
		if (!pool_usage_equal(left, &now)) {
			*left = now;
			*changed_ns = now_ns();
		}
	}
	return error;
}

const char *backend_compact_file(enum backend kind)
{
	return kind == BACKEND_ZSWAP ? "/proc/sys/vm/compact_memory" : "/sys/block/zram0/compact";
}
