"""What the other pages of a site have of a run."""

from __future__ import annotations

from kteardown_history.site.runs import indexed
from unit.report.contexts import instructions, wall


def test_each_clock_of_a_run_is_compared_under_its_name() -> None:
    results = {"a~instructions": instructions().result, "a~wall": wall().result}
    run = indexed({"started": "2026"}, results)
    assert [entry["name"] for entry in run.compared] == ["a~instructions", "a~wall"]
    assert [entry["clock"] for entry in run.compared] == ["instructions", "wall"]
    assert all("base" in entry["kernels"] for entry in run.compared)
    assert {law.result for law in run.laws} == {"a~instructions"}
