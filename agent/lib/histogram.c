// SPDX-License-Identifier: GPL-2.0
#include "histogram.h"

#define PER_OCTAVE (1 << HISTOGRAM_BITS)

int histogram_bucket(int64_t value)
{
	uint64_t v = value < 0 ? 0 : value > HISTOGRAM_MAX ? HISTOGRAM_MAX : value;
	int highest = 63 - __builtin_clzll(v | 1);
	int drop = highest > HISTOGRAM_BITS ? highest - HISTOGRAM_BITS : 0;

	return drop * PER_OCTAVE + (int)(v >> drop);
}

/* How many low bits differ between the values of a bucket. */
static int dropped(int bucket)
{
	return bucket < 2 * PER_OCTAVE ? 0 : bucket / PER_OCTAVE - 1;
}

int64_t histogram_low(int bucket)
{
	int drop = dropped(bucket);

	return (int64_t)(bucket - drop * PER_OCTAVE) << drop;
}

int64_t histogram_width(int bucket)
{
	return INT64_C(1) << dropped(bucket);
}

void histogram_add(struct histogram *h, int64_t value)
{
	h->buckets[histogram_bucket(value)]++;
	h->count++;
	h->sum += value;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
	into->count += from->count;
	into->sum += from->sum;
}

int64_t histogram_percentile(const struct histogram *h, int permille)
{
	int64_t below = 0, rank = (h->count * permille + 999) / 1000;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += h->buckets[i];
		if (below && below >= rank)
			return histogram_low(i) + histogram_width(i) / 2;
	}
	return 0;
}

int64_t histogram_mean(const struct histogram *h)
{
	return h->count ? h->sum / h->count : 0;
}
