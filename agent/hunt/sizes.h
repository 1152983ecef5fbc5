/* SPDX-License-Identifier: GPL-2.0 */
/* Which numbers of objects are measured, from what those before them cost. */
#ifndef KTEARDOWN_HUNT_SIZES_H
#define KTEARDOWN_HUNT_SIZES_H

#include <stdbool.h>
#include <stdint.h>

/* src/kteardown_hunt/growth.py gives no verdict from fewer. */
#define ENOUGH_SIZES 4

/* What limits a point; budget_ns is 0 if every point is to be measured. */
struct size_limits {
	int64_t budget_ns, longest_ns, memory_kb;
};

/* What a point cost. */
struct size_cost {
	int64_t cost_ns, elapsed_ns, held_kb;
};

struct size_point {
	int64_t objects; /* 0: there is no such point */
	struct size_cost cost;
};

/* The points of one way of one kind that were measured: how many, and the two largest. */
struct sizes {
	int count;
	struct size_point largest, second;
};

/*
 * Whether this point is beyond the budget. The cost of one object is expected to rise as it did
 * between the two largest points, and by half as much again; or with the square of N if there is
 * one point. Or whether it is beyond the memory of the guest, or the longest time that it may wait.
 */
bool sizes_beyond(const struct sizes *s, int64_t objects, const struct size_limits *limits);
/* Whether nothing larger was left to measure and there are enough sizes for a verdict. */
bool sizes_needless(const struct sizes *s, int64_t objects, const struct size_limits *limits);
/* Adds a point that was measured. */
void sizes_add(struct sizes *s, int64_t objects, const struct size_cost *cost);

#endif
