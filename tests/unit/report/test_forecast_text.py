"""The rows of the live display, with the figures of the report."""

from __future__ import annotations

from kteardown.inputs.load import load_workload
from kteardown.judge.metrics import headlines, variants
from kteardown.model.result import Result
from kteardown.report.forecast_text import interim_rows
from kteardown.report.formatting import change, decimals

WORKLOADS = {name: load_workload(name) for name in ("zombies", "zombies_cgroup")}


def test_every_headline_metric_and_variant_has_a_row(
    freezer_result: Result, wall_result: Result
) -> None:
    for result in (freezer_result, wall_result):
        groups = headlines(result, WORKLOADS)
        assert len(interim_rows(result, WORKLOADS)) == len(groups) * len(variants(result)) > 2


def test_a_row_has_the_last_point_and_counts_all_points(freezer_result: Result) -> None:
    row = interim_rows(freezer_result, WORKLOADS)[0]
    mine = headlines(freezer_result, WORKLOADS)[0].of(row.variant)
    assert (row.metric, row.point) == ("freezing user space", "zombies=30,000")
    assert row.change == change(mine[-1], decimals(mine))
    assert row.base == f"{mine[-1].base.median:,.0f}"
    assert row.verdict == mine[-1].verdict
    whole, points = row.others.split(": ")
    assert whole == "better"
    assert sum(int(part.split()[0]) for part in points.split(", ")) == len(mine)


def test_real_time_is_shown_in_a_unit_with_few_digits(wall_result: Result) -> None:
    assert {row.base.split()[-1] for row in interim_rows(wall_result, WORKLOADS)} <= {"ms", "us"}
