// SPDX-License-Identifier: GPL-2.0
#include "hunt/sizes.h"

/* Of the memory that was free before the first objects. */
#define MEMORY_SHARE 0.7

bool sizes_beyond(const struct sizes *s, int64_t objects, const struct size_limits *limits)
{
	double factor, growth;

	if (!limits->budget_ns || !s->objects || s->objects >= objects)
		return false;
	factor = (double)objects / s->objects;
	growth = s->growth ? s->growth * 1.5 : factor * factor;
	return s->cost.cost_ns * growth > limits->budget_ns ||
	       s->cost.elapsed_ns * factor > limits->longest_ns ||
	       s->cost.held_kb * factor > limits->memory_kb * MEMORY_SHARE;
}

bool sizes_needless(const struct sizes *s, int64_t objects, const struct size_limits *limits)
{
	return limits->budget_ns && objects < s->objects && s->count >= ENOUGH_SIZES;
}

void sizes_add(struct sizes *s, int64_t objects, const struct size_cost *cost)
{
	s->growth = 0;
	if (s->objects && s->objects < objects)
		s->growth = (double)cost->cost_ns / s->cost.cost_ns;
	/* The bystanders are measured with as many objects as the point before. */
	s->count += s->objects != objects;
	s->objects = objects;
	s->cost = *cost;
}
