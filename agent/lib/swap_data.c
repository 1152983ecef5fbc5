// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* O_DIRECT */
#include "swap_data.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "zram.h"

#define CHUNK (1 << 20)
/* A page that another task is using at the moment is not swapped out; a later pass takes it. */
#define PASSES 5
#define PAGEMAP_SWAPPED (1ULL << 62)

static int64_t page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

void swap_data_fill(const struct swap_data_spec *spec, int64_t page, int64_t generation, char *to,
		    size_t page_size)
{
	struct prng p = {.state = ((uint64_t)generation << 48) ^ ((uint64_t)spec->index << 36) ^
				  (uint64_t)page};
	size_t least = page_size / 16;
	size_t random =
		spec->one_size ? page_size / 4 : least + prng_below(&p, page_size / 2 - least);

	random &= ~(sizeof(uint64_t) - 1);
	for (size_t i = 0; i < random; i += sizeof(uint64_t)) {
		uint64_t word = prng_next(&p);

		memcpy(to + i, &word, sizeof(word));
	}
	memset(to + random, 'a' + page % 16, page_size - random);
}

static void fill(const struct swap_data *h, int64_t at, int64_t bytes, int64_t generation, char *to)
{
	int64_t page = page_bytes();

	for (int64_t done = 0; done < bytes; done += page)
		swap_data_fill(&h->spec, (at + done) / page, generation, to + done, page);
}

static int64_t chunk_at(const struct swap_data *h, int64_t at)
{
	return h->spec.bytes - at < CHUNK ? h->spec.bytes - at : CHUNK;
}

/* -- swap -- */

static int page_out(struct swap_data *h, int64_t at, int64_t bytes)
{
	int64_t start = now_ns();
	int status = madvise(h->memory + at, bytes, MADV_PAGEOUT);

	h->stored_ns += now_ns() - start;
	return status ? -errno : 0;
}

static int64_t count_swapped(const struct swap_data *h)
{
	int64_t pages = h->spec.bytes / page_bytes(), swapped = 0;
	uint64_t entries[512];
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (int64_t i = 0; i < pages;) {
		size_t left = pages - i;
		size_t want = left < ARRAY_SIZE(entries) ? left : ARRAY_SIZE(entries);
		off_t at = ((uintptr_t)h->memory / page_bytes() + i) * sizeof(entries[0]);
		ssize_t got = pread(fd, entries, want * sizeof(entries[0]), at);

		if (got <= 0) {
			swapped = -EIO;
			break;
		}
		for (size_t n = got / sizeof(entries[0]), e = 0; e < n; e++, i++)
			swapped += !!(entries[e] & PAGEMAP_SWAPPED);
	}
	close(fd);
	return swapped;
}

static int swap_out(struct swap_data *h)
{
	int64_t pages = h->spec.bytes / page_bytes();
	int error = 0;

	h->memory = mmap(NULL, h->spec.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (h->memory == MAP_FAILED)
		return -errno;
	for (int64_t at = 0; at < h->spec.bytes && !error; at += CHUNK) {
		fill(h, at, chunk_at(h, at), 0, h->memory + at);
		error = page_out(h, at, chunk_at(h, at));
	}
	for (int i = 1; i < PASSES && !error && count_swapped(h) < pages; i++)
		error = page_out(h, 0, h->spec.bytes);
	return error;
}

/* -- the zram device -- */

static int64_t part_of(const struct swap_data *h)
{
	return h->spec.index * h->spec.bytes;
}

static int write_out(struct swap_data *h, int64_t generation)
{
	for (int64_t at = 0; at < h->spec.bytes; at += CHUNK) {
		int64_t bytes = chunk_at(h, at), start;
		ssize_t written;

		fill(h, at, bytes, generation, h->memory);
		start = now_ns();
		written = pwrite(h->device, h->memory, bytes, part_of(h) + at);
		h->stored_ns += now_ns() - start;
		if (written != bytes)
			return written < 0 ? -errno : -ENOSPC;
	}
	return 0;
}

static int open_device(struct swap_data *h)
{
	h->memory = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (h->memory == MAP_FAILED)
		return -errno;
	/* Bypasses the page cache: the data are in the pool when write() returns. */
	h->device = open(ZRAM_DEVICE, O_RDWR | O_DIRECT | O_CLOEXEC);
	return h->device < 0 ? -errno : 0;
}

static int write_and_read(struct swap_data *h)
{
	char page[page_bytes()];
	int error = open_device(h);

	if (!error)
		error = write_out(h, 0);
	if (error)
		return error;
	swap_data_fill(&h->spec, 0, 0, page, sizeof(page));
	if (pread(h->device, h->memory, sizeof(page), part_of(h)) != (ssize_t)sizeof(page))
		return -EIO;
	return memcmp(page, h->memory, sizeof(page)) ? -EILSEQ : 0;
}

/* -- both -- */

int swap_data_store(struct swap_data *h, const struct swap_data_spec *spec)
{
	*h = (struct swap_data){.spec = *spec, .device = -1};
	return spec->backend == BACKEND_DIRECT ? write_and_read(h) : swap_out(h);
}

int64_t swap_data_stored(const struct swap_data *h)
{
	return h->spec.backend == BACKEND_DIRECT ? h->spec.bytes / page_bytes() : count_swapped(h);
}

int swap_data_free(struct swap_data *h)
{
	uint64_t range[2] = {part_of(h), h->spec.bytes};

	if (h->spec.backend == BACKEND_DIRECT)
		return ioctl(h->device, BLKDISCARD, range) ? -errno : 0;
	return munmap(h->memory, h->spec.bytes) ? -errno : 0;
}

int swap_data_rewrite(struct swap_data *h)
{
	return write_out(h, 1);
}
