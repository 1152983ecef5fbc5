"""The samples that reports draw: all valid ones in order, with the interval of their level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.estimate.bootstrap import Boots, Resampler, level_interval
from kteardown.analysis.evidence import gather
from kteardown.model.point import points_of
from kteardown.rundir.counting import BootRecords
from unit.simulation import WORKLOADS, Noise, freezer, simulate

EXPERIMENT = freezer("wall", boots=4, zombies=(3000, 6000), variants=("freezer-skip-exited",))
USED = {"zombies": WORKLOADS["zombies"]}


@pytest.fixture(scope="module")
def boots() -> list[BootRecords]:
    return simulate(EXPERIMENT, noise=Noise(block=0.1, boot=0.05, sample=0.02))


def test_every_valid_sample_is_included_and_no_warm_up(boots: list[BootRecords]) -> None:
    found = gather(EXPERIMENT, USED, points_of(EXPERIMENT, USED), boots, (), EXPERIMENT.variants)
    # Three kernels with the A/A twin, two points, the three metrics that are judged.
    assert len(found.samples) == 3 * 2 * 3
    assert {s.kernel for s in found.samples} == {"base", "base-twin", "freezer-skip-exited"}
    assert {s.count for s in found.samples} == {4 * 3}
    raw = [
        r for r in boots[0].records if r.type == "sample" and r.metric == "thaw_ns" and not r.warmup
    ]
    start = boots[0].start
    first = [r.value for r in raw if r.trial == raw[0].trial]
    matching = [s for s in found.samples if (s.kernel, s.metric) == (start.kernel, "thaw_ns")]
    assert first in [list(s.boots[start.block]) for s in matching]


def test_headline_metrics_are_first_and_base_is_before_other_kernels(
    boots: list[BootRecords],
) -> None:
    found = gather(
        EXPERIMENT, USED, points_of(EXPERIMENT, USED), boots, (), EXPERIMENT.variants
    ).samples
    assert [s.metric for s in found][-1] == "thaw_ns"
    assert [s.kernel for s in found][:3] == ["base", "base-twin", "freezer-skip-exited"]


def test_blocks_that_the_result_does_not_use_are_not_included(boots: list[BootRecords]) -> None:
    found = gather(
        EXPERIMENT, USED, points_of(EXPERIMENT, USED), boots, (), EXPERIMENT.variants, blocks=2
    )
    assert {tuple(s.boots) for s in found.samples} == {(0, 1)}


def test_a_figure_is_found_by_its_name_and_point(boots: list[BootRecords]) -> None:
    found = gather(EXPERIMENT, USED, points_of(EXPERIMENT, USED), boots, (), EXPERIMENT.variants)
    one = found.of("base", "zombies", "freeze_user_ns", {"zombies": 6000})
    assert one is not None
    assert (one.kernel, one.point, one.headline) == ("base", {"zombies": 6000}, True)
    assert found.of("base", "zombies", "freeze_user_ns", {"zombies": 1}) is None


def test_the_interval_of_a_level_contains_the_median_and_narrows_with_boots() -> None:
    rng = np.random.default_rng(3)
    widths = dict.fromkeys((5, 20, 80), 0.0)
    for count in widths:
        for _ in range(30):
            boots = Boots({n: [v] for n, v in enumerate(rng.normal(1000, 50, count).tolist())})
            low, high = level_interval(boots, Resampler(1, 500), confidence=0.95) or (0.0, 0.0)
            assert low <= boots.median <= high
            widths[count] += high - low
    assert widths[5] > widths[20] > widths[80] > 0


def test_the_interval_of_a_level_covers() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        boots = Boots({n: [v] for n, v in enumerate(rng.normal(1000, 50, 8).tolist())})
        low, high = level_interval(boots, Resampler(1, 500), confidence=0.95) or (0.0, 0.0)
        held += low <= 1000 <= high
    assert held >= 0.92 * 300


def test_one_boot_has_no_interval_and_equal_boots_have_one_of_zero_width() -> None:
    assert level_interval(Boots({0: [3.0, 4.0]}), Resampler(1), confidence=0.95) is None
    assert level_interval(Boots({0: [3.0], 1: [3.0]}), Resampler(1), confidence=0.95) == (3.0, 3.0)


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=12))
def test_the_interval_of_a_level_without_negative_values_is_not_negative(
    values: list[float],
) -> None:
    boots = Boots({n: [value] for n, value in enumerate(values)})
    low, high = level_interval(boots, Resampler(1, 200), confidence=0.95) or (0.0, 0.0)
    assert 0 <= low <= boots.median <= high
