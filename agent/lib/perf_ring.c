// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf_ring.h"

static size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

int perf_ring_open(struct perf_ring *r, int fd, size_t pages)
{
	r->size = pages * page_size();
	r->map = mmap(NULL, r->size + page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r->map != MAP_FAILED)
		return 0;
	r->map = NULL;
	return -errno;
}

void perf_ring_close(struct perf_ring *r)
{
	if (r->map)
		munmap(r->map, r->size + page_size());
	r->map = NULL;
}

void perf_ring_forget(struct perf_ring *r)
{
	struct perf_event_mmap_page *page = r->map;

	page->data_tail = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

/* Copies from the ring, continuing at its beginning when its end is reached. */
static void copy(const struct perf_ring *r, uint64_t from, void *to, size_t len)
{
	const char *data = (const char *)r->map + page_size();
	size_t at = from % r->size, first = r->size - at;

	if (first > len)
		first = len;
	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, len - first);
}

int perf_ring_next(struct perf_ring *r, void *record, size_t room)
{
	struct perf_event_mmap_page *page = r->map;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = page->data_tail;
	struct perf_event_header header;
	size_t len;

	if (at >= head)
		return 0;
	copy(r, at, &header, sizeof(header));
	if (header.size < sizeof(header))
		return -EPROTO;
	len = header.size < room ? header.size : room;
	copy(r, at, record, len);
	__atomic_store_n(&page->data_tail, at + header.size, __ATOMIC_RELEASE);
	return len;
}
