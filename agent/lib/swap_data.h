/* SPDX-License-Identifier: GPL-2.0 */
/* A process's memory that went to a backend, and how it is let go of. What fails returns -errno. */
#ifndef KTEARDOWN_SWAP_DATA_H
#define KTEARDOWN_SWAP_DATA_H

#include "swap_backend.h"

struct swap_data_spec {
	enum backend backend;
	int64_t bytes;
	bool one_size; /* every page compresses to about the same: one size class of the pool */
	int index; /* of the process: another one has other data, and another part of the device */
};

struct swap_data {
	struct swap_data_spec spec;
	char *memory; /* what was swapped out; direct: what is written from */
	int device; /* direct */
	int64_t stored_ns; /* spent in swapping out, or writing */
};

/*
 * Make page number page of this process's data, of which generation is a version: it compresses,
 * and no word fills it. Between a sixteenth and half of it are random; with one_size a quarter.
 */
void swap_data_fill(const struct swap_data_spec *spec, int64_t page, int64_t generation, char *to,
		    size_t page_size);

/* Make the data and put it into the backend, so much at a time that little memory is needed. */
int swap_data_store(struct swap_data *h, const struct swap_data_spec *spec);
/* How many of its pages are swapped out; direct: how many were written. */
int64_t swap_data_stored(const struct swap_data *h);

/* Let go of all of it at once: munmap, or a discard of the device's part. */
int swap_data_free(struct swap_data *h);
/* Direct: write it again, other data: each old object is freed and a new one made. */
int swap_data_rewrite(struct swap_data *h);

#endif
