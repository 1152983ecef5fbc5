"""Histograms: every value has the claimed accuracy, and merging loses nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.dataset import Histogram, lowest, merged, width

VALUES = st.lists(
    st.integers(0, 2**63) | st.integers(0, 2000) | st.integers(0, 40).map(lambda n: 2**n),
    min_size=1,
)
BITS = st.integers(1, 12)
PERCENTS = st.sampled_from([0.1, 20, 50, 90, 99, 99.9]) | st.floats(0.001, 99.999)


def count(values: Iterable[int], bits: int) -> Histogram:
    """Return the histogram of ``values``, which must not be negative."""
    return Histogram(bits, Counter(lowest(value, bits) for value in values))


def exactly(values: Sequence[int], percent: float) -> int:
    """Return the smallest value that at least ``percent`` of all do not exceed."""
    rank = max(1, math.ceil(round(len(values) * percent, 6) / 100))
    return sorted(values)[rank - 1]


@given(value=st.integers(0, 2**63), bits=BITS)
def test_a_bucket_is_narrow_and_contains_only_its_values(value: int, bits: int) -> None:
    low, wide = lowest(value, bits), width(value, bits)
    assert low <= value < low + wide
    assert {lowest(edge, bits) for edge in (low, low + wide - 1)} == {low}
    assert lowest(low + wide, bits) == low + wide
    assert abs(low + wide // 2 - value) <= value * Histogram(bits, {}).error
    assert wide == 1 or value >= 2 ** (bits + 1)


@given(values=VALUES, bits=BITS, percent=PERCENTS)
def test_a_percentile_is_within_the_claimed_error(
    values: list[int], bits: int, percent: float
) -> None:
    histogram = count(values, bits)
    assert histogram.n == len(values)
    expected = exactly(values, percent)
    assert abs(histogram.percentile(percent) - expected) <= expected * histogram.error


@given(parts=st.lists(VALUES, min_size=1, max_size=5), bits=BITS, percent=PERCENTS)
def test_merged_histograms_equal_the_histogram_of_all_values(
    parts: list[list[int]], bits: int, percent: float
) -> None:
    together = count([value for part in parts for value in part], bits)
    histograms = [count(part, bits) for part in parts]
    for order in (histograms, histograms[::-1]):
        assert merged(order) == together
    assert merged([merged(histograms[:1]), *histograms[1:]]) == together
    assert merged(histograms).percentile(percent) == together.percentile(percent)


@given(fine=VALUES, coarse=VALUES, bits=st.integers(1, 6), more=st.integers(1, 6))
def test_merging_different_buckets_uses_the_coarser_ones(
    fine: list[int], coarse: list[int], bits: int, more: int
) -> None:
    assert merged([count(fine, bits + more), count(coarse, bits)]) == count([*fine, *coarse], bits)


def test_a_percentile_of_an_empty_histogram_is_an_error() -> None:
    with pytest.raises(ValueError, match="empty"):
        Histogram(8, {}).percentile(50)


def test_percents_that_floats_cannot_represent_are_exact() -> None:
    assert count(range(1000), 12).percentile(99.9) == 998
    assert count(range(1, 101), 8).percentile(99) == 99
