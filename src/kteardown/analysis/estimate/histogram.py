"""Values counted in buckets that grow with them, so that each is known to within a share of itself.

There are 2 ** bits buckets for each power of two, as in HdrHistogram (Gil Tene) and, with another mapping,
DDSketch (C. Masson, J. Rim, H. Lee, "DDSketch: a fast and fully-mergeable quantile sketch with
relative-error guarantees", VLDB 2019). A bucket stands for its middle, which is off by at most half its
width: by 2 ** -(bits + 1) of any value in it. Values below 2 ** (bits + 1) have a bucket each. Histograms
merge by adding up their buckets, and the percentile of the sum is that of all values together, to within the
same share.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Histogram:
    """How many values there were, by the lowest value of their bucket."""

    bits: int
    counts: Mapping[int, int]

    @property
    def n(self) -> int:
        """Of all values."""
        return sum(self.counts.values())

    @property
    def error(self) -> float:
        """The largest share of a value by which its bucket's middle can be off."""
        return 2.0 ** -(self.bits + 1)

    def percentile(self, percent: float) -> int:
        """The middle of the bucket of the smallest value that ``percent`` of all do not exceed.

        Raises ValueError where there is no value.
        """
        # A hundred times 99.9 is no whole number of floating-point units.
        rank, below = math.ceil(round(self.n * percent, 6) / 100), 0
        for low, count in sorted(self.counts.items()):
            below += count
            if below >= rank:
                return low + width(low, self.bits) // 2
        raise ValueError("an empty histogram has no percentile")


def width(value: int, bits: int) -> int:
    """How many values share the bucket of ``value``."""
    return 1 << max(0, value.bit_length() - 1 - bits)


def lowest(value: int, bits: int) -> int:
    """The smallest value in the bucket of ``value``."""
    return value - value % width(value, bits)


def count(values: Iterable[int], bits: int) -> Histogram:
    """The histogram of ``values``, none of them negative."""
    return Histogram(bits, Counter(lowest(value, bits) for value in values))


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """All values together; where the buckets differ, in those of the coarsest. At least one histogram."""
    found = list(histograms)
    bits = min(histogram.bits for histogram in found)
    counts: Counter[int] = Counter()
    for histogram in found:
        for low, number in histogram.counts.items():
            counts[lowest(low, bits)] += number
    return Histogram(bits, counts)
