// SPDX-License-Identifier: GPL-2.0
#include "stressors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/swap_data.h"

#define RUN 32 /* pages that are checked, written or discarded together */

static size_t page_size;

/* One page in four does not compress: its object takes a whole page. */
static void fill(int index, int64_t page, unsigned int generation, char *to)
{
	struct swap_data_spec spec = {.index = index};
	struct prng p = {.state = page ^ ((uint64_t)index << 40) ^ ((uint64_t)generation << 48)};

	if (generation % 4 != 3) {
		swap_data_fill(&spec, page, generation, to, page_size);
		return;
	}
	for (size_t i = 0; i < page_size; i += sizeof(uint64_t)) {
		uint64_t word = prng_next(&p);

		memcpy(to + i, &word, sizeof(word));
	}
}

static bool is_right(int index, int64_t page, unsigned int generation, const char *at)
{
	static char wanted[1 << 16];

	fill(index, page, generation, wanted);
	return !memcmp(wanted, at, page_size);
}

static char *map(int64_t pages)
{
	page_size = sysconf(_SC_PAGESIZE);
	return mmap(NULL, pages * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
}

static int page_out(char *at, int64_t pages)
{
	return madvise(at, pages * page_size, MADV_PAGEOUT) ? -errno : 0;
}

/* -- memory that is kept: checked, changed, and swapped out again -- */

struct kept {
	int index;
	char *memory;
	unsigned char *generation; /* of each page */
};

static int visit(struct stress *s, struct kept *k, struct prng *p)
{
	int64_t first = prng_below(p, s->pages - RUN);

	for (int64_t page = first; page < first + RUN; page++) {
		char *at = k->memory + page * page_size;

		s->wrong_pages += !is_right(k->index, page, k->generation[page], at);
		if (prng_below(p, 2))
			fill(k->index, page, ++k->generation[page], at);
	}
	return page_out(k->memory + first * page_size, RUN);
}

static int keep(struct stress *s, int index)
{
	struct kept k = {index, map(s->pages), calloc(s->pages, 1)};
	struct prng p = {.state = index};
	int error = 0;

	if (k.memory == MAP_FAILED || !k.generation)
		return -ENOMEM;
	for (int64_t page = 0; page < s->pages; page++) {
		fill(index, page, 0, k.memory + page * page_size);
		if (page % RUN == RUN - 1)
			page_out(k.memory + (page + 1 - RUN) * page_size, RUN);
	}
	for (; !s->stop && !error; s->passes[index]++)
		error = visit(s, &k, &p);
	for (int64_t page = 0; page < s->pages; page++)
		s->wrong_pages +=
			!is_right(index, page, k.generation[page], k.memory + page * page_size);
	return error;
}

/* -- memory that is freed, in every way -- */

/* Frees every second page: zspages are then half full, and there is something to compact. */
static void drop_every_second(struct stress *s, int index, unsigned int generation, char *memory)
{
	for (int64_t page = 0; page < s->pages; page += 2)
		madvise(memory + page * page_size, page_size, MADV_DONTNEED);
	for (int64_t page = 1; page < s->pages; page += 2)
		s->wrong_pages += !is_right(index, page, generation, memory + page * page_size);
}

/* In a child, since exit is one of the ways. */
__attribute__((noreturn)) static void drop_once(struct stress *s, int index, unsigned int way)
{
	char *memory = map(s->pages);
	size_t bytes = s->pages * page_size;

	if (memory == MAP_FAILED)
		_exit(ENOMEM);
	for (int64_t page = 0; page < s->pages; page++)
		fill(index, page, way, memory + page * page_size);
	page_out(memory, s->pages);
	switch (way % 5) {
	case 0:
		munmap(memory, bytes);
		break;
	case 1:
		madvise(memory, bytes, MADV_DONTNEED);
		break;
	case 2:
		madvise(memory, bytes, MADV_FREE);
		break;
	case 3:
		drop_every_second(s, index, way, memory);
		break;
	default: /* exit frees all of it */
		break;
	}
	_exit(EXIT_SUCCESS);
}

static int drop(struct stress *s, int index)
{
	for (; !s->stop; s->passes[index]++) {
		pid_t pid = fork();
		int status;

		if (pid < 0)
			return -errno;
		if (!pid)
			drop_once(s, index, s->passes[index]);
		if (waitpid(pid, &status, 0) < 0)
			return -errno;
		if (status)
			return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
	}
	return 0;
}

/*
 * Frees pages of one size class one by one in a mixed order. So the freeing task waits for
 * the lock of the class while the compactor moves objects of it, probably the one that is
 * to be freed.
 */
static int pick(struct stress *s, int index)
{
	struct swap_data_spec spec = {.index = index, .one_size = true};
	struct prng p = {.state = index};
	char *memory = map(s->pages);

	if (memory == MAP_FAILED)
		return -ENOMEM;
	for (; !s->stop; s->passes[index]++) {
		int64_t page = prng_below(&p, s->pages);

		for (int64_t i = 0; i < s->pages; i++)
			swap_data_fill(&spec, i, 0, memory + i * page_size, page_size);
		page_out(memory, s->pages);
		/*
		 * An odd step reaches every page if their number is a power of two, and nearly
		 * every page if it is close to one.
		 */
		for (int64_t i = 0; i < s->pages && !s->stop; i++) {
			page = (page + 97) % s->pages;
			madvise(memory + page * page_size, page_size, MADV_DONTNEED);
		}
	}
	return munmap(memory, s->pages * page_size) ? -errno : 0;
}

/* -- a disk: written, overwritten, discarded, its pool destroyed -- */

struct blocks {
	struct zram_disk *disk;
	int index;
	char *memory; /* room for RUN pages */
	int *generation; /* of each block; -1: discarded */
};

static int write_run(struct blocks *b, int64_t first)
{
	for (int64_t i = 0; i < RUN; i++) {
		b->generation[first + i]++;
		fill(b->index, first + i, b->generation[first + i], b->memory + i * page_size);
	}
	return zram_disk_write(b->disk, first * page_size, b->memory, RUN * page_size);
}

static int discard(struct blocks *b, int64_t first, int64_t blocks)
{
	for (int64_t i = 0; i < blocks; i++)
		b->generation[first + i] = -1;
	return zram_disk_discard(b->disk, first * page_size, blocks * page_size);
}

static int check_run(struct stress *s, struct blocks *b, int64_t first)
{
	int error = zram_disk_read(b->disk, first * page_size, b->memory, RUN * page_size);

	for (int64_t i = 0; i < RUN && !error; i++) {
		char *at = b->memory + i * page_size;
		int generation = b->generation[first + i];

		s->wrong_blocks += generation < 0 ? *at || memcmp(at, at + 1, page_size - 1)
						  : !is_right(b->index, first + i, generation, at);
	}
	return error;
}

static int mix(struct stress *s, struct blocks *b, struct prng *p)
{
	int error = 0;

	for (int64_t run = 0; run < s->pages / RUN && !error; run++)
		error = write_run(b, run * RUN);
	for (int64_t i = 0; i < s->pages / RUN && !error; i++) {
		int64_t first = prng_below(p, s->pages / RUN) * RUN;
		int64_t way = prng_below(p, 3);

		error = check_run(s, b, first);
		if (!error)
			error = way == 0 ? discard(b, first, RUN) : write_run(b, first);
		if (!error && way == 1)
			error = zram_disk_compact(b->disk);
	}
	return error;
}

/* Destroys the pool right after its last pages were freed: a worker may still free zspages. */
static int burst_and_stop(struct stress *s, struct blocks *b)
{
	int error = discard(b, 0, s->pages);

	if (!error)
		error = zram_disk_stop(b->disk);
	if (!error)
		s->destroyed++;
	return error;
}

static int work_on_disk(struct stress *s, int index)
{
	struct blocks b = {&s->disk, index, map(RUN), malloc(s->pages * sizeof(int))};
	struct prng p = {.state = index};
	int error = 0;

	if (b.memory == MAP_FAILED || !b.generation)
		return -ENOMEM;
	for (; !s->stop && !error; s->passes[index]++) {
		memset(b.generation, -1, s->pages * sizeof(int));
		error = zram_disk_start(b.disk, s->pages * page_size);
		if (!error)
			error = mix(s, &b, &p);
		if (!error)
			error = burst_and_stop(s, &b);
	}
	return error;
}

/* -- moving objects, and pages -- */

static int compact(struct stress *s, int index)
{
	for (; !s->stop; s->passes[index]++)
		if (write_file(s->compact_file, "1"))
			return -errno;
	return 0;
}

/* Migrates pages, and asks the shrinkers what they could free. */
static int move(struct stress *s, int index)
{
	int error = 0;

	for (; !s->stop && !error; s->passes[index]++)
		error = s->passes[index] % 4 ? write_file("/proc/sys/vm/compact_memory", "1")
					     : write_file("/proc/sys/vm/drop_caches", "2");
	return error;
}

const struct stressor stressors[] = {
	{"keeper", keep, false},       {"squeezed keeper", keep, true},
	{"dropper", drop, false},      {"picker", pick, false},
	{"disk", work_on_disk, false}, {"compactor", compact, false},
	{"mover", move, false},	       {NULL, NULL, false},
};
