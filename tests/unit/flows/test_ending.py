"""The exit code of ``--fail-on`` and the test cases of JUnit follow one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import BrokenError, GateError, InputError, KteardownError
from kteardown.flows.ending import gate
from kteardown.inputs.load import load_workload
from kteardown.judge.answer import FailOn, judge
from kteardown.model.judged import Comparison, MetricVerdict, Verdict
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.material import Material
from kteardown.report.sentence import lines
from unit.analysis.test_comparisons_of_metrics import ONE, SIZES, costs
from unit.report.rendered import TEXTS
from unit.simulation import WORKLOADS, Noise, analysed, freezer, simulate

RESULTS = Path(__file__).parents[3] / "findings/results"
OF_POINTS: tuple[Verdict, ...] = ("better", "worse", "same", "inconclusive")
INTERVALS = (None, (0.8, 0.9), (0.95, 1.05), (1.03, 1.14), (0.9, 1.0), (1.0, 1.1))


def exit_code(result: Result, workloads: Mapping[str, Workload], fail_on: FailOn) -> int:
    try:
        gate(Material("run", result, workloads), fail_on)
    except KteardownError as error:
        return error.exit_code
    return 0


def is_skipped(case: Xml.Element, metrics: Mapping[str, MetricVerdict | None]) -> bool:
    """Return whether a metric as a whole is skipped by this case; that of a single point may be
    alone."""
    metric = metrics[case.get("classname", "")] if case.find("skipped") is not None else None
    is_whole = metric is None or metric.planned == 1 or ", over " in case.get("name", "")
    return case.find("skipped") is not None and is_whole


def check_agreement(result: Result, workloads: Mapping[str, Workload]) -> None:
    """Assert that the exit codes and the cases agree, in both directions."""
    root = Xml.fromstring(TEXTS["junit"](Material("run", result, workloads)))
    failures, errors = (len(root.findall(f".//{kind}")) for kind in ("failure", "error"))
    worse = exit_code(result, workloads, "worse")
    assert bool(worse) == bool(failures or errors)
    if not errors:
        assert (worse in (GateError.exit_code, BrokenError.exit_code)) == bool(failures)
        answer = Material("run", result, workloads).answer
        metrics = {
            f"{finding.group.workload}.{finding.group.key}.{variant.name}": finding.whole
            for variant in answer.variants
            for finding in variant.headlines
        }
        skipped = any(is_skipped(case, metrics) for case in root.iter("testcase"))
        gate_fails = exit_code(result, workloads, "inconclusive") == GateError.exit_code
        assert gate_fails == (skipped or worse == GateError.exit_code)


def simulated(ratios: Mapping[int, float], noise: Noise, seed: int) -> Result:
    wanted = freezer(boots=6, repetitions=1, zombies=SIZES, variants=(ONE,))
    return analysed(wanted, simulate(wanted, costs(ratios), noise, seed=seed))


@pytest.mark.parametrize(
    "file",
    sorted(RESULTS.rglob("result.json")),
    ids=lambda file: str(file.parent.relative_to(RESULTS)),
)
def test_published_results_have_one_answer(file: Path) -> None:
    result = Result.model_validate_json(file.read_bytes())
    workloads = {}
    for name in {comparison.workload for comparison in result.comparisons}:
        with suppress(InputError):  # Scripts have no file.
            workloads[name] = load_workload(name)
    check_agreement(result, workloads)


def test_a_mixed_metric_with_a_point_that_turned_fails_both() -> None:
    turned = 0
    for seed in range(1, 13):
        noise = Noise(boot=0.03, sample=0.03)
        result = simulated({1000: 1.08, 2000: 0.85, 3000: 0.95, 4000: 0.95}, noise, seed)
        check_agreement(result, WORKLOADS)
        mixed = any(metric.verdict == "mixed" for metric in result.metric_verdicts)
        if mixed and not any(row.verdict == "worse" for row in result.comparisons):
            turned += 1
            assert exit_code(result, WORKLOADS, "worse") == GateError.exit_code
            assert lines(result, WORKLOADS)[0].tone == "worse"
    assert turned


def with_points(
    result: Result,
    verdicts: Sequence[tuple[Verdict, tuple[float, float] | None]],
    over_all: Sequence[Verdict],
) -> Result:
    """Return the result with other verdicts and intervals at its points, and over all of them."""
    rows = [
        row.model_copy(update={"verdict": verdict, "ci": ci})
        for row, (verdict, ci) in zip(result.comparisons, verdicts, strict=True)
    ]
    metrics = [
        metric.model_copy(update={"verdict": verdict})
        for metric, verdict in zip(result.metric_verdicts, over_all, strict=True)
    ]
    return result.model_copy(update={"comparisons": tuple(rows), "metric_verdicts": tuple(metrics)})


PLAIN = simulated({}, Noise(), 1)


@given(
    points=st.lists(
        st.tuples(st.sampled_from(OF_POINTS), st.sampled_from(INTERVALS)),
        min_size=len(PLAIN.comparisons),
        max_size=len(PLAIN.comparisons),
    ),
    over_all=st.lists(
        st.sampled_from((*OF_POINTS, "mixed")),
        min_size=len(PLAIN.metric_verdicts),
        max_size=len(PLAIN.metric_verdicts),
    ),
    boots_left=st.sampled_from((0, 0, 0, 2)),
    over_points=st.booleans(),
)
def test_any_verdicts_have_one_answer(
    points: list[tuple[Verdict, tuple[float, float] | None]],
    over_all: list[Verdict],
    boots_left: int,
    over_points: bool,
) -> None:
    result = with_points(PLAIN, points, over_all).model_copy(update={"boots_left": boots_left})
    if not over_points:
        result = result.model_copy(update={"metric_verdicts": ()})
    check_agreement(result, WORKLOADS)


def test_the_better_direction_of_a_metric_decides_what_turned() -> None:
    """An interval above 1 is worse only where lower is better."""
    rows: tuple[Comparison, ...] = PLAIN.comparisons
    for better, expected in (("lower", GateError.exit_code), ("higher", 0)):
        point: tuple[Verdict, tuple[float, float]] = ("inconclusive", (1.03, 1.14))
        result = with_points(PLAIN, [point] * len(rows), ["mixed"] * len(PLAIN.metric_verdicts))
        turned = tuple(row.model_copy(update={"better": better}) for row in result.comparisons)
        result = result.model_copy(update={"comparisons": turned})
        assert exit_code(result, WORKLOADS, "worse") == expected
        check_agreement(result, WORKLOADS)


def test_a_point_that_is_not_seen_from_outside_did_not_turn() -> None:
    point: tuple[Verdict, tuple[float, float]] = ("inconclusive", (0.14, 0.16))
    result = with_points(
        PLAIN, [point] * len(PLAIN.comparisons), ["mixed"] * len(PLAIN.metric_verdicts)
    )
    (variant,) = judge(result, WORKLOADS).variants
    assert all(finding.turned("better") == finding.points for finding in variant.headlines)
    forged = tuple(row.model_copy(update={"outside": "contradicts"}) for row in result.comparisons)
    (variant,) = judge(result.model_copy(update={"comparisons": forged}), WORKLOADS).variants
    assert not any(finding.turned("better") for finding in variant.headlines)
