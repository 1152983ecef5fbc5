/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of a process that was swapped out to a backend, and freeing it. Functions
 * that fail return -errno.
 */
#ifndef KTEARDOWN_SWAP_DATA_H
#define KTEARDOWN_SWAP_DATA_H

#include "swap_backend.h"

struct swap_data_spec {
	enum backend backend;
	int64_t bytes;
	/* Every page compresses to about the same size, so one size class of the pool is used. */
	bool one_size;
	int index; /* of the process: each process has other data, and another part of the device */
};

struct swap_data {
	struct swap_data_spec spec;
	char *memory; /* what was swapped out; with BACKEND_DIRECT a buffer for writing */
	int device; /* BACKEND_DIRECT only */
	int64_t stored_ns; /* time spent on swapping out or writing */
};

/*
 * Makes page number `page` of this process's data; `generation` is a version of the page.
 * The page compresses, and no single word fills it. A part between a sixteenth and a half
 * is random; with one_size a quarter is random.
 */
void swap_data_fill(const struct swap_data_spec *spec, int64_t page, int64_t generation, char *to,
		    size_t page_size);

/* Makes the data and puts them into the backend, in chunks, so that little memory is needed. */
int swap_data_store(struct swap_data *h, const struct swap_data_spec *spec);
/* How many of the pages are swapped out; with BACKEND_DIRECT how many were written. */
int64_t swap_data_stored(const struct swap_data *h);

/* Frees all of it at once: munmap(), or a discard of the process's part of the device. */
int swap_data_free(struct swap_data *h);
/*
 * BACKEND_DIRECT only: writes other data to the same place, so that each old object is
 * freed and a new one is made.
 */
int swap_data_rewrite(struct swap_data *h);

#endif
