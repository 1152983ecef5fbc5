/* SPDX-License-Identifier: GPL-2.0 */
/* Where pages are swapped to: what is in front of the compressed pool, one of several. */
#ifndef KTEARDOWN_SWAP_BACKEND_H
#define KTEARDOWN_SWAP_BACKEND_H

#include "workload.h"

enum backend {
	BACKEND_ZRAM, /* swap to a zram device */
	BACKEND_ZSWAP, /* zswap, and behind it a zram device that it leaves empty */
	BACKEND_DIRECT, /* no swap: a zram device that is read and written as a disk is */
};

/* What is in the backend now. Pages are the system's. */
struct pool_usage {
	int64_t pages; /* in the pool that is measured */
	int64_t pool_kb; /* what the allocator holds for them */
	int64_t behind_pages; /* zswap: what it let through to the device; else 0 */
	int64_t special_pages; /* in no class of the pool's own: of one word, or not compressed */
};

/*
 * Set up, empty, for this many bytes. *what: what was being done, for a message. 0 or -errno;
 * backend_close() may follow in any case.
 */
int backend_open(enum backend kind, const char *compressor, int64_t bytes, const char **what);
/* Turn swap off: the caches of free slots are emptied, what is still swapped comes back. */
int backend_stop(enum backend kind);
int backend_close(enum backend kind);

int backend_usage(enum backend kind, struct pool_usage *h);
/* The same pages in a pool of the same size. */
bool pool_usage_equal(const struct pool_usage *a, const struct pool_usage *b);
/*
 * Wait until it holds what it did before, or stands still for half a second: old kernels keep some
 * swap slots for the next who wants one. left: what it holds then; changed_ns: when that was first
 * seen.
 */
int backend_settle(enum backend kind, const struct pool_usage *before, struct pool_usage *left,
		   int64_t *changed_ns);
/* The file that any write to makes the pool compact (zram), or all memory (zswap). */
const char *backend_compact_file(enum backend kind);

#endif
