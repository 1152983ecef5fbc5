/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times, counted in buckets that grow with the value: 2^HISTOGRAM_BITS of them for each power
 * of two, as in HdrHistogram (Gil Tene) and, with another mapping, DDSketch (C. Masson,
 * J. Rim, H. Lee, VLDB 2019). A bucket stands for its middle, which is off by at most half its
 * width: by 2^-(HISTOGRAM_BITS + 1) of any value in it, 0.2%. Values below
 * 2^(HISTOGRAM_BITS + 1) are exact. Histograms are merged by adding their buckets, and a
 * percentile of the sum is as good as one of the parts.
 *
 * Pure: no clock, no files.
 */
#ifndef KTEARDOWN_HISTOGRAM_H
#define KTEARDOWN_HISTOGRAM_H

#include "workload.h"

#define HISTOGRAM_BITS 8
/* 18 minutes in ns; what is larger counts as this, what is negative as 0. */
#define HISTOGRAM_MAX ((INT64_C(1) << 40) - 1)
#define HISTOGRAM_BUCKETS ((40 - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

struct histogram {
	int64_t count, sum; /* of all values; the sum is exact */
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, int64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The middle of the bucket of the value that permille of all values do not exceed; 0 for none. */
int64_t histogram_percentile(const struct histogram *h, int permille);
/* Exact; 0 for none. */
int64_t histogram_mean(const struct histogram *h);

/* The bucket of a value, the smallest value in a bucket, how many values are in it. */
int histogram_bucket(int64_t value);
int64_t histogram_low(int bucket);
int64_t histogram_width(int bucket);

#endif
