"""The verdict of a metric in words: first the metric, then its points; opposite changes before all
else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kteardown.errors import GateError
from kteardown.flows.ending import gate
from kteardown.judge.answer import FailOn, judge
from kteardown.model.judged import Comparison, MetricVerdict, Verdict
from kteardown.model.result import Result
from kteardown.report.material import Material
from kteardown.report.metrics import metric_sentence
from unit.simulation import WORKLOADS, Noise, analysed, freezer, simulate

SIZES = (0, 3000, 6000, 9000)
VARIANT = "freezer-skip-exited"
OLD = Path(__file__).parents[2] / "data" / "runs"


def made(ratios: Mapping[int, float], noise: Noise | None = None, boots: int = 3) -> Result:
    """Return a result in which one headline metric changes by ``ratios`` at sizes."""

    def cost(kernel: str, metric: str, params: Mapping[str, object]) -> float:
        changed = kernel != "base" and metric == "freeze_user_ns"
        return 1e6 * (ratios.get(int(str(params["zombies"])), 1.0) if changed else 1.0)

    wanted = freezer(boots=boots, repetitions=1, zombies=SIZES, variants=(VARIANT,))
    return analysed(wanted, simulate(wanted, cost, noise))


def words(result: Result) -> str:
    (variant,) = judge(result, WORKLOADS).variants
    return metric_sentence(variant.headlines[0])


def changed(result: Result, point: int, **update: object) -> Result:
    rows: list[Comparison] = list(result.comparisons)
    rows[point] = rows[point].model_copy(update=update)
    return result.model_copy(update={"comparisons": tuple(rows)})


def with_metric(result: Result, **update: object) -> Result:
    first, *rest = result.metric_verdicts
    metrics: tuple[MetricVerdict, ...] = (first.model_copy(update=update), *rest)
    return result.model_copy(update={"metric_verdicts": metrics})


def test_a_metric_is_before_its_points() -> None:
    subject = f"{VARIANT}: {{}} on freezing user space: "
    better = made({3000: 0.5, 6000: 0.5, 9000: 0.5})
    assert words(better) == subject.format("better") + "-40.5% exact; 3 better, 1 same"
    mixed = made({0: 1.3, 3000: 0.5, 6000: 0.5, 9000: 0.5})
    assert words(mixed) == subject.format("mixed") + "-36.5% exact; 1 worse, 3 better"
    assert words(made({})).endswith(": +0.0% exact; identical; 4 same")


def test_missing_points_are_counted() -> None:
    result = with_metric(made(dict.fromkeys(SIZES, 0.5)), planned=5)
    assert words(result).endswith(": -50.0% exact; 4 better; 1 missing")


def test_a_metric_without_a_ratio_has_a_direction() -> None:
    result = with_metric(made(dict.fromkeys(SIZES, 0.5)), ratio=None, ci=None, exact=False)
    assert ": lower, no ratio; " in words(result)


@pytest.mark.parametrize(
    ("ratios", "verdict", "fails"),
    [
        (dict.fromkeys(SIZES, 0.5), "worse", False),
        (dict.fromkeys(SIZES, 1.5), "worse", True),
        ({0: 1.3, 3000: 0.5, 6000: 0.5, 9000: 0.5}, "worse", True),
        ({0: 0.9}, "worse", False),
        ({0: 0.9}, "inconclusive", False),
    ],
)
def test_the_gate_looks_at_metrics_and_for_worse_at_their_points(
    ratios: dict[int, float], verdict: FailOn, fails: bool
) -> None:
    result = made(ratios)
    if fails:
        with pytest.raises(GateError) as error:
            gate(Material("run", result, WORKLOADS), verdict)
        assert "freezing user space" in error.value.message
    else:
        gate(Material("run", result, WORKLOADS), verdict)


def test_inconclusive_points_do_not_make_a_decided_metric_fail() -> None:
    verdict: Verdict = "inconclusive"
    result = changed(made(dict.fromkeys(SIZES, 0.5)), 0, verdict=verdict)
    gate(Material("run", result, WORKLOADS), "inconclusive")
    with pytest.raises(GateError):
        gate(Material("run", with_metric(result, verdict=verdict), WORKLOADS), "inconclusive")
