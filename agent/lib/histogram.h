/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times, counted in buckets whose width grows with the value: 2^HISTOGRAM_BITS buckets for
 * each power of two, as in HdrHistogram (Gil Tene) and, with another mapping, DDSketch (C.
 * Masson, J. Rim, H. Lee, VLDB 2019). A bucket is represented by its middle, which differs
 * from any value in it by at most half its width: 2^-(HISTOGRAM_BITS + 1) of the value,
 * 0.2%. Values below 2^(HISTOGRAM_BITS + 1) are exact. Histograms are merged by adding
 * their buckets; a percentile of the sum is as exact as one of a single histogram. Pure:
 * no clock, no files.
 */
#ifndef KTEARDOWN_HISTOGRAM_H
#define KTEARDOWN_HISTOGRAM_H

#include "workload.h"

#define HISTOGRAM_BITS 8
/* 18 minutes in ns; a larger value counts as this, a negative value as 0. */
#define HISTOGRAM_MAX ((INT64_C(1) << 40) - 1)
#define HISTOGRAM_BUCKETS ((40 - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

struct histogram {
	int64_t count, sum; /* of all values; the sum is exact */
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, int64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * The middle of the bucket with the value that permille of all values do not exceed; 0
 * without values.
 */
int64_t histogram_percentile(const struct histogram *h, int permille);
/* Exact; 0 if there are no values. */
int64_t histogram_mean(const struct histogram *h);

/* The bucket of a value, the smallest value of a bucket, how many values a bucket covers. */
int histogram_bucket(int64_t value);
int64_t histogram_low(int bucket);
int64_t histogram_width(int bucket);

#endif
