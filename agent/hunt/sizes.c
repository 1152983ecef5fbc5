// SPDX-License-Identifier: GPL-2.0
#include "hunt/sizes.h"

/* Of the memory that was free before the first objects. */
#define MEMORY_SHARE 0.7
/* By how much more than expected a cost may grow. */
#define MARGIN 1.5

static double each_ns(const struct size_point *p)
{
	return (double)p->cost.cost_ns / p->objects;
}

bool sizes_beyond(const struct sizes *s, int64_t objects, const struct size_limits *limits)
{
	const struct size_point *largest = &s->largest;
	double factor, growth;

	if (!limits->budget_ns || !largest->objects || largest->objects >= objects)
		return false;
	factor = (double)objects / largest->objects;
	growth = factor * factor;
	if (s->second.objects && s->second.cost.cost_ns)
		growth = factor * each_ns(largest) / each_ns(&s->second) * MARGIN;
	return largest->cost.cost_ns * growth > limits->budget_ns ||
	       largest->cost.elapsed_ns * factor > limits->longest_ns ||
	       largest->cost.held_kb * factor > limits->memory_kb * MEMORY_SHARE;
}

bool sizes_needless(const struct sizes *s, int64_t objects, const struct size_limits *limits)
{
	return limits->budget_ns && objects <= s->largest.objects && s->count >= ENOUGH_SIZES;
}

void sizes_add(struct sizes *s, int64_t objects, const struct size_cost *cost)
{
	struct size_point point = {objects, *cost};

	if (objects > s->largest.objects) {
		s->second = s->largest;
		s->largest = point;
	} else if (objects == s->largest.objects) {
		/* A warm-up has as many objects as the point that counts. */
		s->largest = point;
		return;
	} else if (objects >= s->second.objects) {
		s->second = point;
	}
	s->count++;
}
