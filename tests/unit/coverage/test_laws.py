"""The shipped laws: each is of a metric that its workload has, and the file is what the results
give."""

from __future__ import annotations

from pathlib import Path

from kteardown.coverage.laws import shipped_laws
from kteardown.inputs.load import load_workload

ROOT = Path(__file__).parents[3]


def test_each_law_is_of_a_metric_and_a_parameter_of_its_workload() -> None:
    laws = shipped_laws()
    assert {law.workload for law in laws} >= {"zombies", "dyingcg"}
    for law in laws:
        workload = load_workload(law.workload)
        assert law.metric in workload.metrics
        assert law.param in workload.parameters


def test_the_law_of_the_freezer_is_that_of_the_results() -> None:
    (law,) = [
        law
        for law in shipped_laws()
        if (law.workload, law.metric, law.release, law.point)
        == ("zombies", "freeze_user_ns", "6.12.117", {})
    ]
    assert (law.param, law.model) == ("zombies", "linear")
    assert 60 < law.per_unit < 80
