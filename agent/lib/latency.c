// SPDX-License-Identifier: GPL-2.0
#include "latency.h"

#include <stdlib.h>

size_t latency_gaps(const int64_t *stamps, size_t n, int64_t from, int64_t to, int64_t *gaps)
{
	size_t count = 0;

	for (size_t i = 1; i < n; i++)
		if (stamps[i] > from && stamps[i - 1] < to)
			gaps[count++] = stamps[i] - stamps[i - 1];
	return count;
}

int64_t latency_longest(const int64_t *gaps, size_t n)
{
	int64_t longest = 0;

	for (size_t i = 0; i < n; i++)
		if (gaps[i] > longest)
			longest = gaps[i];
	return longest;
}

/* How many attempts a gap counts as, and how many of them waited longer than limit. */
static int64_t attempts_above(int64_t gap, int64_t period_ns, int64_t limit)
{
	int64_t attempts = gap < period_ns ? 1 : gap / period_ns;
	int64_t above = gap <= limit ? 0 : (gap - limit + period_ns - 1) / period_ns;

	return above < attempts ? above : attempts;
}

static int64_t all_above(const int64_t *gaps, size_t n, int64_t period_ns, int64_t limit)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += attempts_above(gaps[i], period_ns, limit);
	return sum;
}

int64_t latency_percentile(const int64_t *gaps, size_t n, int64_t period_ns, int permille)
{
	int64_t low = -1, high = latency_longest(gaps, n);
	int64_t may_exceed = all_above(gaps, n, period_ns, -1) * (1000 - permille) / 1000;

	/* Invariant: too many attempts are above low, and few enough are above high. */
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;

		if (all_above(gaps, n, period_ns, middle) > may_exceed)
			low = middle;
		else
			high = middle;
	}
	return high;
}

int64_t latency_blocked(const struct operation *operations, size_t n, int64_t limit_ns)
{
	int64_t blocked = 0, until = INT64_MIN;

	for (size_t i = 0; i < n; i++) {
		const struct operation *s = &operations[i];
		int64_t from = s->from_ns > until ? s->from_ns : until;

		if (s->to_ns - s->from_ns <= limit_ns || s->to_ns <= from)
			continue;
		blocked += s->to_ns - from;
		until = s->to_ns;
	}
	return blocked;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int64_t latency_median(int64_t *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_value);
	return values[(n - 1) / 2];
}
