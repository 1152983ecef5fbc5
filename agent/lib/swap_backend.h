/* SPDX-License-Identifier: GPL-2.0 */
/* Where pages are swapped to: several ways to a compressed pool. */
#ifndef KTEARDOWN_SWAP_BACKEND_H
#define KTEARDOWN_SWAP_BACKEND_H

#include "workload.h"

enum backend {
	BACKEND_ZRAM, /* swap to a zram device */
	BACKEND_ZSWAP, /* zswap in front of a zram device, which stays empty */
	BACKEND_DIRECT, /* no swap: a zram device that is read and written like a disk */
};

/* What the backend contains. Pages are pages of the system. */
struct pool_usage {
	int64_t pages; /* in the pool that is measured */
	int64_t pool_kb; /* memory that the allocator holds for them */
	int64_t behind_pages; /* zswap: pages that it passed on to the device; otherwise 0 */
	/* Pages outside the pool's size classes: filled with one word, or not compressed. */
	int64_t special_pages;
};

/*
 * Sets the backend up, empty, with room for this many bytes. *what: the step that failed,
 * for a message. 0 or -errno; backend_close() may follow in any case.
 */
int backend_open(enum backend kind, const char *compressor, int64_t bytes, const char **what);
/*
 * Turns swap off: the caches of free slots are emptied, and pages that are still swapped
 * out are read back.
 */
int backend_stop(enum backend kind);
int backend_close(enum backend kind);

int backend_usage(enum backend kind, struct pool_usage *h);
/* The same number of pages in a pool of the same size. */
bool pool_usage_equal(const struct pool_usage *a, const struct pool_usage *b);
/*
 * Waits until the backend contains what it did before, or until nothing has changed for
 * half a second: old kernels keep some swap slots for their next user. left: what it
 * contains then; changed_ns: when that was first seen.
 */
int backend_settle(enum backend kind, const struct pool_usage *before, struct pool_usage *left,
		   int64_t *changed_ns);
/* The file to which any write starts a compaction: of the pool (zram) or of all memory (zswap). */
const char *backend_compact_file(enum backend kind);

#endif
