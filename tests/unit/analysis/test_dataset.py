"""Histograms: every value has the claimed accuracy, and merging loses nothing."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kteardown.analysis.conclude import analyse
from kteardown.analysis.dataset import Histogram, lowest, merged, width
from kteardown.inputs.load import load_workloads
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.point import points_of, sweep_points
from kteardown.model.record import (
    BootEnd,
    BootStart,
    Buckets,
    Hello,
    Record,
    Sample,
    TrialEnd,
    TrialStart,
)
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.report.formats import markdown, text
from kteardown.report.material import Material
from kteardown.rundir.counting import BootRecords

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


EXPERIMENT = Experiment(
    name="throttle-wakeups",
    question="Same?",
    source="debian:6.12",
    variants=("changed",),
    workloads=(Sweep(workload="wakeups", params={"threads": (1, 8)}),),
    design=Design(clock="wall", boots=2, repetitions=1, warmup=1),
)
WORKLOADS = load_workloads(EXPERIMENT)
FACTS = KernelFacts(
    release="6.12",
    source="debian:6.12",
    arch="x86_64",
    compiler="gcc",
    config_hash="c",
    image_hash="i",
)


def _trial(index: int, params: dict[str, ParamValue], low: int, status: str = "ok") -> list[Record]:
    def counted(repetition: int, at: int, number: int) -> Buckets:
        return Buckets(
            trial=index,
            repetition=repetition,
            metric="wakeup_ns",
            bits=8,
            buckets=((at, number),),
            warmup=repetition == 0,
        )

    return [
        TrialStart(trial=index, workload="wakeups", params=params),
        counted(0, 1, 1000),
        Sample(trial=index, repetition=1, metric="wakeup_p99_ns", value=low),
        counted(1, low, 99),
        counted(1, 2 * low, 1),
        TrialEnd.model_validate({"trial": index, "status": status}),
    ]


def _boot(number: int, kernel: str, block: int, low: int, status: str = "ok") -> BootRecords:
    (sweep,) = EXPERIMENT.workloads
    records: list[Record] = [
        Hello(
            protocol=1,
            release="6.12",
            version="#1",
            machine="x86_64",
            cpus_online=2,
            cpus_possible=2,
            memory_kb=1,
            cmdline="",
        )
    ]
    for index, params in enumerate(sweep_points(sweep, WORKLOADS["wakeups"])):
        records += _trial(index, params, low, status)
    start = BootStart(
        kernel=kernel,
        block=block,
        seed=1,
        acceleration="kvm",
        host_load=0,
        started_at="2026-01-01T00:00:00",
    )
    end = BootEnd(outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0)
    return BootRecords(number, 0, start, end, tuple(records))


def _result() -> Result:
    boots = [
        _boot(0, "base", 0, 1000),
        _boot(1, "changed", 0, 4000),
        _boot(2, "base", 1, 2000),
        _boot(3, "changed", 1, 8000, "void"),
    ]
    points = points_of(EXPERIMENT, WORKLOADS)
    return analyse(
        EXPERIMENT,
        WORKLOADS,
        boots,
        {"base": FACTS, "changed": FACTS},
        {},
        "kteardown run",
        points=points,
    )


def test_boots_are_merged_without_warm_ups_and_unusable_trials() -> None:
    found = {
        (d.kernel, d.point["threads"]): d
        for d in _result().distributions
        if d.metric == "wakeup_ns"
    }
    assert set(found) == {(kernel, threads) for kernel in ("base", "changed") for threads in (1, 8)}
    base, changed = found["base", 1], found["changed", 8]
    # 99 of 1,000 ns and 1 of 2,000, then 99 of 2,000 and 1 of 4,000; a bucket is represented by its
    # middle.
    assert base.n == 200
    assert base.percentiles == {"50": 2002, "90": 2002, "99": 2002, "99.9": 4004}
    assert changed.n == 100
    assert changed.error == 2**-9


def test_the_report_shows_the_percentiles_of_all_boots() -> None:
    result = _result()
    stream = io.StringIO()
    text.report(Material("", result, WORKLOADS), Console(file=stream, width=120))
    report = stream.getvalue()
    assert "wakeups: wakeup time (wakeup_ns) of all boots together, in ns" in report
    assert "bucket error at most 0.2%" in report
    assert "| 2,002 | 2,002 | 2,002 | 4,004 |" in " ".join(
        markdown.report(Material("", result, WORKLOADS)).split()
    )
