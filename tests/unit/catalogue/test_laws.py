"""The shipped laws, and a straight line between two of them."""

from __future__ import annotations

import pytest

from kteardown.catalogue.laws import MeasuredLaw, interpolated, measured_costs, measured_laws


def law(possible_cpus: int, per_unit: float) -> MeasuredLaw:
    """Return a law at so many possible CPUs, with an interval of 10%."""
    interval = (0.9 * per_unit, 1.1 * per_unit)
    point = {"possible_cpus": possible_cpus}
    return MeasuredLaw(
        "dyingcg", "footprint_kb", "cgroups", "6.12", "", point, per_unit, interval, "kb", "dyingcg"
    )


LAWS = (law(2, 15), law(32, 65), law(64, 119))


@pytest.mark.parametrize(("cpus", "kb"), [(2, 15), (32, 65), (17, 40), (48, 92), (96, 173)])
def test_the_line_through_the_nearest_two(cpus: int, kb: float) -> None:
    ends = interpolated(LAWS, "possible_cpus", cpus)
    assert ends is not None
    low, value, high = ends
    assert value == pytest.approx(kb)
    assert low < value < high


def test_one_law_stands_for_no_other_number() -> None:
    assert interpolated(LAWS[:1], "possible_cpus", 32) is None
    assert interpolated((), "possible_cpus", 32) is None


def test_what_is_shipped_is_read() -> None:
    assert {found.unit for found in measured_laws()} == {"instructions", "kb"}
    for cost in measured_costs():
        assert len(cost.sizes) == len(cost.costs) >= 2
        assert list(cost.sizes) == sorted(cost.sizes)
