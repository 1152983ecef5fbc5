"""Histograms whose buckets grow with the values, so that the relative error is bounded.

There are 2 ** bits buckets for each power of two, as in HdrHistogram (Gil Tene) and, with another mapping,
DDSketch (C. Masson, J. Rim, H. Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error
guarantees", VLDB 2019). A bucket is represented by its middle. Its distance from any value in the bucket is
at most half the width, which is 2 ** -(bits + 1) of the value. Each value below 2 ** (bits + 1) has its own
bucket. Histograms are merged by adding their buckets; a percentile of the sum is that of all values together,
with the same error bound.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Histogram:
    """The number of values in each bucket, by the lowest value of the bucket."""

    bits: int
    counts: Mapping[int, int]

    @property
    def n(self) -> int:
        """Return the number of all values."""
        return sum(self.counts.values())

    @property
    def error(self) -> float:
        """Return the largest relative error of the middle of a bucket."""
        return 2.0 ** -(self.bits + 1)

    def percentile(self, percent: float) -> int:
        """Return the middle of the bucket of the smallest value that at least ``percent`` of all do not
        exceed.

        Raises ValueError if the histogram is empty.
        """
        # Rounded, because products such as 100 * 99.9 are not exact in floating point.
        rank, below = math.ceil(round(self.n * percent, 6) / 100), 0
        for low, count in sorted(self.counts.items()):
            below += count
            if below >= rank:
                return low + width(low, self.bits) // 2
        raise ValueError("an empty histogram has no percentile")


def width(value: int, bits: int) -> int:
    """Return the number of values that share the bucket of ``value``."""
    return 1 << max(0, value.bit_length() - 1 - bits)


def lowest(value: int, bits: int) -> int:
    """Return the smallest value in the bucket of ``value``."""
    return value - value % width(value, bits)


def count(values: Iterable[int], bits: int) -> Histogram:
    """Return the histogram of ``values``, which must not be negative."""
    return Histogram(bits, Counter(lowest(value, bits) for value in values))


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """Return all values together, in the buckets of the coarsest histogram. Needs at least one histogram."""
    found = list(histograms)
    bits = min(histogram.bits for histogram in found)
    counts: Counter[int] = Counter()
    for histogram in found:
        for low, number in histogram.counts.items():
            counts[lowest(low, bits)] += number
    return Histogram(bits, counts)
