// SPDX-License-Identifier: GPL-2.0
#include "lines.h"

#include <stdlib.h>
#include <string.h>

#include "callers.h"
#include "fault.h"

#define NR_SITE_LISTS (1 << 16)
#define NR_LINE_LISTS (1 << 18)
#define LINES_OF_CHUNK 4096
#define LINE_SHIFT 6
#define NR_RECENT 1024
/* Of a line, the instructions that cause most of its moves. */
#define SITES_OF_LINE 6

struct mover {
	const struct site *site, *caller;
	unsigned int offset; /* in the line */
	uint64_t moves;
};

struct line {
	struct line *next;
	uint64_t number, sharers, free_at;
	/* CPUs that wrote it: as the kernel, and as a program. */
	uint64_t writers[2];
	uint64_t moves, shared_reads;
	/* Rounds of waiting for this line, and how long CPUs waited until it came or in rounds. */
	uint64_t spins, waited_ticks;
	struct mover movers[SITES_OF_LINE];
	int owner; /* -1: nobody has modified it */
};

struct chunk {
	struct chunk *next;
	int used;
	struct line lines[LINES_OF_CHUNK];
};

uint64_t transfer_ticks = 100;

static struct site *sites[NR_SITE_LISTS];
static struct line *lists[NR_LINE_LISTS];
static struct chunk *chunks;
/* The lines that a CPU accessed last: most accesses are to these. */
static struct line *recent[MAX_CPUS][NR_RECENT];
/* Of each CPU, the line of its last locked instruction. */
static struct line *last_locked[MAX_CPUS];

static bool is_kernel(const struct site *site)
{
	return site->address >> 63;
}

struct site *site_of(uint64_t address, bool is_locked)
{
	struct site **list = &sites[(address ^ address >> 16) % NR_SITE_LISTS];
	struct site *site;

	for (site = *list; site; site = site->next)
		if (site->address == address && site->is_locked == is_locked)
			return site;
	site = allocate(sizeof(*site));
	site->address = address;
	site->is_locked = is_locked;
	site->next = *list;
	*list = site;
	return site;
}

static struct line *new_line(uint64_t number)
{
	struct line *line;

	if (!chunks || chunks->used == LINES_OF_CHUNK) {
		struct chunk *chunk = allocate(sizeof(*chunk));

		chunk->next = chunks;
		chunks = chunk;
	}
	line = &chunks->lines[chunks->used++];
	line->number = number;
	line->owner = -1;
	return line;
}

static struct line *find_line(unsigned int cpu, uint64_t number)
{
	struct line **last = &recent[cpu][number % NR_RECENT];
	struct line **list, *line;
	uint64_t mixed;

	if (*last && (*last)->number == number)
		return *last;
	mixed = number * 0x9e3779b97f4a7c15ULL;
	list = &lists[(mixed ^ mixed >> 29) % NR_LINE_LISTS];
	for (line = *list; line && line->number != number; line = line->next)
		;
	if (!line) {
		line = new_line(number);
		line->next = *list;
		*list = line;
	}
	*last = line;
	return line;
}

/* Returns the mover of these moves. */
static struct mover *count_mover(struct line *line, const struct site *site,
				 const struct site *caller)
{
	struct mover *least = line->movers;
	int i;

	for (i = 0; i < SITES_OF_LINE; i++) {
		struct mover *mover = &line->movers[i];

		if (mover->site == site && mover->caller == caller) {
			mover->moves++;
			return mover;
		}
		if (mover->moves < least->moves)
			least = mover;
	}
	/* The rarest one makes room, and hands on its count: a frequent one always stays. */
	least->site = site;
	least->caller = caller;
	least->moves++;
	return least;
}

static void count_move(unsigned int cpu, struct line *line, struct site *site, unsigned int offset)
{
	struct mover *mover = count_mover(line, site, site->is_locked ? caller_of(cpu) : NULL);

	site->count.moves++;
	line->moves++;
	mover->offset = offset;
}

uint64_t line_access(unsigned int cpu, uint64_t address, enum access access, struct site *site,
		     uint64_t now)
{
	struct line *line = find_line(cpu, address >> LINE_SHIFT);
	const uint64_t me = 1ULL << cpu;
	uint64_t done;

	if (site->is_locked)
		last_locked[cpu] = line;
	if (access == WRITE)
		line->writers[!is_kernel(site)] |= me;
	if (line->owner == (int)cpu)
		return now;
	if (line->owner < 0 && access == READ && (line->sharers & me))
		return now;
	if (line->owner < 0 && !(line->sharers & ~me)) {
		line->sharers = me;
		line->owner = access == WRITE ? (int)cpu : -1;
		return now;
	}
	done = now > line->free_at ? now : line->free_at;
	if (line->owner < 0 && access == READ) {
		line->sharers |= me;
		line->shared_reads++;
		site->count.shared_reads++;
		done += SHARED_READ_TICKS;
		line->waited_ticks += done - now;
		return done;
	}
	/* One after another: the next CPU that wants it waits until this one has it. */
	done += transfer_ticks;
	line->free_at = done;
	line->waited_ticks += done - now;
	if (access == WRITE) {
		line->owner = cpu;
		line->sharers = me;
	} else {
		line->sharers |= me | 1ULL << line->owner;
		line->owner = -1;
	}
	count_move(cpu, line, site, address % (1 << LINE_SHIFT));
	return done;
}

void line_spin(unsigned int cpu, struct site *site, uint64_t ticks)
{
	struct line *line = last_locked[cpu];

	site->count.spins++;
	if (!line)
		return;
	line->spins++;
	line->waited_ticks += ticks;
}

void lines_reset(void)
{
	struct site *site;
	int i;

	memset(lists, 0, sizeof(lists));
	memset(recent, 0, sizeof(recent));
	memset(last_locked, 0, sizeof(last_locked));
	callers_reset();
	while (chunks) {
		struct chunk *next = chunks->next;

		free(chunks);
		chunks = next;
	}
	for (i = 0; i < NR_SITE_LISTS; i++)
		for (site = sites[i]; site; site = site->next)
			memset(&site->count, 0, sizeof(site->count));
}

static bool is_of_several(uint64_t writers)
{
	return writers & (writers - 1);
}

static void write_counts(FILE *out)
{
	struct sharing count[2] = {0};
	uint64_t several[2] = {0};
	struct site *site;
	struct chunk *chunk;
	int i, who;

	for (i = 0; i < NR_SITE_LISTS; i++)
		for (site = sites[i]; site; site = site->next) {
			who = !is_kernel(site);
			count[who].moves += site->count.moves;
			count[who].shared_reads += site->count.shared_reads;
			count[who].locked += site->count.locked;
			count[who].spins += site->count.spins;
		}
	for (chunk = chunks; chunk; chunk = chunk->next)
		for (i = 0; i < chunk->used; i++)
			for (who = 0; who < 2; who++)
				several[who] += is_of_several(chunk->lines[i].writers[who]);
	for (who = 0; who < 2; who++)
		fprintf(out, "count %s %ju %ju %ju %ju %ju\n", who ? "programs" : "kernel",
			(uintmax_t)count[who].moves, (uintmax_t)count[who].shared_reads,
			(uintmax_t)count[who].locked, (uintmax_t)several[who],
			(uintmax_t)count[who].spins);
}

static void write_line(FILE *out, const struct line *line)
{
	int i;

	fprintf(out, "line %jx %ju %ju %d %ju %ju", (uintmax_t)line->number << LINE_SHIFT,
		(uintmax_t)line->moves, (uintmax_t)line->shared_reads,
		__builtin_popcountll(line->writers[0] | line->writers[1]), (uintmax_t)line->spins,
		(uintmax_t)line->waited_ticks);
	for (i = 0; i < SITES_OF_LINE && line->movers[i].site; i++) {
		const struct mover *mover = &line->movers[i];

		fprintf(out, " %jx:%jx:%u:%ju", (uintmax_t)mover->site->address,
			(uintmax_t)(mover->caller ? mover->caller->address : 0), mover->offset,
			(uintmax_t)mover->moves);
	}
	fputc('\n', out);
}

void lines_write(FILE *out)
{
	struct site *site;
	struct chunk *chunk;
	int i;

	write_counts(out);
	for (i = 0; i < NR_SITE_LISTS; i++)
		for (site = sites[i]; site; site = site->next)
			if (site->count.moves || site->count.shared_reads || site->count.locked)
				fprintf(out, "site %jx %ju %ju %ju\n", (uintmax_t)site->address,
					(uintmax_t)site->count.moves,
					(uintmax_t)site->count.shared_reads,
					(uintmax_t)site->count.locked);
	for (chunk = chunks; chunk; chunk = chunk->next)
		for (i = 0; i < chunk->used; i++)
			if (chunk->lines[i].moves)
				write_line(out, &chunk->lines[i]);
}
