"""The figures of a result for the page that compares: every comparison and law, in short rows."""

from __future__ import annotations

import json
from typing import Any

from kteardown.report.formatting import point_text
from kteardown_history.site.results import compact
from unit.report.contexts import instructions, rich, wall


def rows(figures: dict[str, Any], name: str) -> list[dict[str, Any]]:
    table = figures[name]
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def test_every_comparison_and_law_is_there() -> None:
    for material in (instructions(), wall(), rich()):
        result = material.result
        figures = compact("a", "run-a.html", "2026", result, material.workloads)
        assert len(rows(figures, "changes")) == len(result.asked_for)
        laws = [law for law in result.laws if result.is_asked_for(law.kernel)]
        assert len(rows(figures, "laws")) == len(laws)
        assert json.loads(json.dumps(figures, allow_nan=False))["clock"] == result.clock


def test_a_change_and_both_of_its_values_are_found_by_metric_and_point() -> None:
    material = instructions()
    figures = compact("a", "run-a.html", "2026", material.result, material.workloads)
    metrics = figures["metrics"]
    first = material.result.asked_for[0]
    change = rows(figures, "changes")[0]
    assert metrics[change["metric"]]["metric"] == first.metric
    assert change["point"] == point_text(first.point)
    place = {key: change[key] for key in ("metric", "statistic", "point")}
    values = {
        row["kernel"]: row["value"]
        for row in rows(figures, "values")
        if {key: row[key] for key in place} == place
    }
    assert abs(values["base"] / first.base.compared - 1) < 1e-5
    assert abs(values[first.variant] / first.changed.compared - 1) < 1e-5


def test_a_value_is_there_once_for_each_kernel() -> None:
    material = instructions()
    figures = compact("a", "run-a.html", "2026", material.result, material.workloads)
    keys = [tuple(row[:4]) for row in figures["values"]["rows"]]
    assert len(keys) == len(set(keys))
