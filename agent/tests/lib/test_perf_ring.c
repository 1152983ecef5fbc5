// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/perf_ring.h"
#include "tests/test.h"

/* A ring like the kernel's, with 64 bytes of data after its page of pointers. */
static struct perf_ring ring = {.size = 64};

static struct perf_event_mmap_page *page(void)
{
	return ring.map;
}

static char *data(void)
{
	return (char *)ring.map + sysconf(_SC_PAGESIZE);
}

/* As the kernel writes: continuing at the beginning when the end is reached. */
static void put(const void *from, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		data()[(page()->data_head + i) % ring.size] = ((const char *)from)[i];
	page()->data_head += len;
}

static void put_record(int type, const char *text, size_t len)
{
	struct perf_event_header header = {.type = type, .size = sizeof(header) + len};

	put(&header, sizeof(header));
	put(text, len);
}

static void reads_in_order(void)
{
	char record[32], text[17] = "";
	int round, len;

	CHECK(perf_ring_next(&ring, record, sizeof(record)) == 0);
	/*
	 * 24 and 16 bytes again and again: every boundary of 8 bytes becomes the ring's end once.
	 */
	for (round = 0; round < 20; round++) {
		put_record(9, "sixteen bytes !!", 16);
		put_record(2, "eight ..", 8);
		len = perf_ring_next(&ring, record, sizeof(record));
		CHECK(len == 24);
		memcpy(text, record + 8, 16);
		CHECK_TEXT(text, "sixteen bytes !!");
		CHECK(perf_ring_next(&ring, record, sizeof(record)) == 16);
		CHECK(!memcmp(record + 8, "eight ..", 8));
		CHECK(perf_ring_next(&ring, record, sizeof(record)) == 0);
	}
}

static void cuts(void)
{
	char record[12];

	put_record(9, "sixteen bytes !!", 16);
	put_record(9, "next ...", 8);
	CHECK(perf_ring_next(&ring, record, sizeof(record)) == 12);
	CHECK(!memcmp(record + 8, "sixt", 4));
	CHECK(perf_ring_next(&ring, record, sizeof(record)) == 12);
	CHECK(!memcmp(record + 8, "next", 4));
}

static void forgets(void)
{
	char record[32];

	put_record(9, "sixteen bytes !!", 16);
	perf_ring_forget(&ring);
	CHECK(perf_ring_next(&ring, record, sizeof(record)) == 0);
}

static void refuses(void)
{
	struct perf_event_header broken = {.type = 9, .size = 4};
	char record[32];

	put(&broken, sizeof(broken));
	CHECK(perf_ring_next(&ring, record, sizeof(record)) == -EPROTO);
}

void test_perf_ring(void)
{
	ring.map = calloc(1, sysconf(_SC_PAGESIZE) + ring.size);
	reads_in_order();
	cuts();
	forgets();
	refuses();
	free(ring.map);
	ring.map = NULL;
	CHECK(perf_ring_open(&ring, -1, 1) == -EBADF && !ring.map);
}
