"""From instructions to time on one machine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kteardown.catalogue.laws import measured_costs
from kteardown_observe.calibrate import CALIBRATIONS, rate_of
from kteardown_observe.counts import MachineCounts, parse_counts
from unit.observe.documents import document


def calibrated(*rows: dict[str, Any] | None) -> MachineCounts:
    """Return the counts of a machine with these rows of its calibration."""
    return parse_counts(json.dumps(document(calibration=rows or None)).encode(), "it")


def rows_of(kind: str, ns_each: float) -> list[dict[str, Any]]:
    """Return what a machine reports whose instructions take so many ns each."""
    cost = next(
        found
        for found in measured_costs()
        if (found.kind, found.way) == CALIBRATIONS[kind] and found.release == "6.12"
    )
    return [
        {"kind": kind, "objects": number, "ns": [int(1e6 + ns_each * cost.at(number)[1])] * 5}
        for number in (4000, 8000)
    ]


def test_without_calibration_there_is_no_rate() -> None:
    assert rate_of(calibrated()) is None


def test_the_range_has_all_kinds() -> None:
    rate = rate_of(calibrated(*rows_of("eventfds", 0.5), *rows_of("pipes", 0.8)))
    assert rate is not None
    assert rate.low_ns == pytest.approx(0.5, rel=0.01)
    assert rate.high_ns == pytest.approx(0.8, rel=0.01)
    assert rate.kinds == ("eventfds", "pipes")


def test_what_says_nothing_is_left_out() -> None:
    backwards = [{"kind": "eventfds", "objects": n, "ns": [10_000 - n]} for n in (4000, 8000)]
    alone = [{"kind": "pipes", "objects": 4000, "ns": [5]}]
    strange = [{"kind": "nothing", "objects": 4000, "ns": [5]}]
    assert rate_of(calibrated(*backwards, *alone, *strange)) is None
