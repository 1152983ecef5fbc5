"""A verdict on the contention clock needs every cost of a moved line."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kteardown.analysis.conclude import analyse
from kteardown.analysis.transfers import agreed, confirmed
from kteardown.inputs.contention import designed, with_contention
from kteardown.inputs.load import load_workload
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.judged import Verdict
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.point import points_of
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from unit.simulation import Noise, simulate

FACTS = dict.fromkeys(
    ("base", "my-change"),
    KernelFacts(release="", source="", arch="", compiler="", config_hash="", image_hash=""),
)
WORKLOADS = {"swapfree": with_contention(load_workload("swapfree"))}


def measured(factors: dict[int, float], *, costs: tuple[int, ...] = (100, 200)) -> Result:
    """The result of a change that multiplies all counts by a factor, for each cost."""
    experiment = designed(
        Experiment(
            name="swap",
            question="?",
            source="debian:6.12",
            variants=("my-change",),
            workloads=(Sweep(workload="swapfree", params={"mb": (4,)}),),
            design=Design(clock="contention", seeds=6, repetitions=1, warmup=0),
        )
    )
    machine = experiment.machine.model_copy(update={"cpus": (2, 4), "transfer_ticks": costs})
    experiment = experiment.model_copy(update={"machine": machine})

    def count(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        cost = params["transfer_ticks"]
        assert isinstance(cost, int)
        return 1e6 * (factors[cost] if kernel == "my-change" else 1.0)

    boots = simulate(experiment, count, Noise(boot=0.02), workloads=WORKLOADS)
    points = points_of(experiment, WORKLOADS)
    return analyse(experiment, WORKLOADS, boots, FACTS, {}, "", points=points)


def verdicts(result: Result) -> set[str]:
    return {verdict.verdict for verdict in result.metric_verdicts}


def test_costs_that_agree_give_a_verdict() -> None:
    result = measured({100: 0.8, 200: 0.8})
    assert verdicts(result) == {"better"}
    assert {c.verdict for c in result.comparisons if c.metric == "line_moves_count"} == {"better"}


def test_costs_that_disagree_give_none() -> None:
    result = measured({100: 0.7, 200: 1.0})
    assert verdicts(result) == {"inconclusive"}
    (metric, *_) = result.metric_verdicts
    assert "it depends on the cost of a moved line" in metric.reason
    assert {c.verdict for c in result.comparisons} == {"inconclusive"}


def test_one_cost_gives_none() -> None:
    result = measured({100: 0.5}, costs=(100,))
    assert verdicts(result) == {"inconclusive"}
    assert result.metric_verdicts[0].reason == "it was measured with one cost of a moved line"


def test_only_points_that_differ_in_their_cost_alone_are_compared() -> None:
    result = measured({100: 0.8, 200: 0.8})
    two, four = (
        [c for c in result.comparisons if c.point["cpus"] == cpus and c.metric == "locked_count"]
        for cpus in (2, 4)
    )
    worse = [c.model_copy(update={"verdict": "worse"}) for c in four]
    assert [c.verdict for c in agreed([*two, *worse])] == ["better"] * 2 + ["worse"] * 2


@pytest.mark.parametrize("verdict", ["inconclusive", "broken", "mixed"])
def test_no_verdict_is_made_of_none(verdict: Verdict) -> None:
    assert confirmed(verdict, "why", {100: "better", 200: "better"}) == (verdict, "why")
