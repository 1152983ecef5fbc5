/* SPDX-License-Identifier: GPL-2.0 */
/* Which numbers of objects are measured, from what those before them cost. */
#ifndef KTEARDOWN_HUNT_SIZES_H
#define KTEARDOWN_HUNT_SIZES_H

#include <stdbool.h>
#include <stdint.h>

/* src/kteardown/hunt/growth.py gives no verdict from fewer. */
#define ENOUGH_SIZES 4

/* What limits a point; budget_ns is 0 if every point is to be measured. */
struct size_limits {
	int64_t budget_ns, longest_ns, memory_kb;
};

/* What a point cost. */
struct size_cost {
	int64_t cost_ns, elapsed_ns, held_kb;
};

/* The last point of one way of one kind that was measured. */
struct sizes {
	int count; /* how many were measured */
	int64_t objects;
	struct size_cost cost;
	double growth; /* of the cost, relative to the point before; 0: it is the first */
};

/*
 * Whether this point is beyond the budget if its cost grows half as much again as it grew last, or
 * with the square of N where that is not known; or beyond the memory of the guest, or the longest
 * time that it may wait.
 */
bool sizes_beyond(const struct sizes *s, int64_t objects, const struct size_limits *limits);
/* Whether this is a small size, which comes last, and enough others fitted into the budget. */
bool sizes_needless(const struct sizes *s, int64_t objects, const struct size_limits *limits);
/* Adds a point that was measured. */
void sizes_add(struct sizes *s, int64_t objects, const struct size_cost *cost);

#endif
