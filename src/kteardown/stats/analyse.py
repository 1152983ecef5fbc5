"""The stage: records in, a Result out. Knows no machine and prints nothing.

The statistic inside a boot is the median of its measured repetitions; that of a kernel at a point is the
median over its boots. The same records give the same Result, bit for bit: every draw is
seeded from the experiment's design, and nothing of the host's time or load comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kteardown.records.schema import OUTCOMES
from kteardown.records.store import BootRecords
from kteardown.spec.model import Experiment, Metric, Workload
from kteardown.stats.bootstrap import Boots, Resampler
from kteardown.stats.compare import Estimate, Rules, estimate, holm, judge, summary
from kteardown.stats.law import fit
from kteardown.stats.results import Comparison, KernelFacts, Law, Result
from kteardown.stats.samples import BASE, TWIN, Collected, Key, Point, expected_points

_DIGITS = 10
"""Significant digits of what logarithms and roots went into: below their rounding on any host."""


@dataclass(frozen=True)
class _Pair:
    """One comparison before its verdict."""

    point: Point
    variant: str
    metric: str
    spec: Metric
    base: Boots
    changed: Boots
    found: Estimate
    null: Estimate | None


def analyse(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    boots: Sequence[BootRecords],
    kernels: Mapping[str, KernelFacts],
    machine: Mapping[str, Any],
    command: str,
) -> Result:
    """The whole result of a run, or of the part of it that is there.

    ``boots`` holds the last finished attempt of each boot; ``kernels`` base and the variants, in
    report order; ``machine`` the host as it was read, stable facts only; ``command`` what repeats the run.
    """
    collected = Collected(boots)
    expected = expected_points(experiment, workloads)
    variants = [name for name in kernels if name not in (BASE, TWIN)]
    design = experiment.design
    wall = design.clock == "wall"
    planned = [BASE, TWIN, *variants] if wall else [BASE, *variants]
    ended = [boot.end.outcome for boot in boots]
    return Result(
        experiment=experiment.name,
        question=experiment.question,
        clock=design.clock,
        command=command,
        machine=dict(machine),
        kernels={
            name: facts.model_copy(update={"release": collected.releases.get(name, facts.release)})
            for name, facts in kernels.items()
        },
        comparisons=_comparisons(experiment, workloads, collected, expected, variants),
        laws=_laws(experiment, workloads, collected, expected, [BASE, *variants]),
        boots={outcome: ended.count(outcome) for outcome in OUTCOMES},
        voids=collected.voids(planned, design.boots if wall else design.seeds, expected),
        notes=(*_acceleration(boots), *_notes(workloads, collected, kernels)),
    )


def _comparisons(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    collected: Collected,
    expected: Sequence[Point],
    variants: Sequence[str],
) -> tuple[Comparison, ...]:
    design = experiment.design
    resampler = Resampler(design.seed)
    pairs: list[_Pair] = []
    for name, metric, spec in _compared(experiment, workloads):
        for point in (point for point in expected if point.workload == name):
            base = collected.boots(BASE, point, metric)
            if base is None:
                continue
            twin = collected.boots(TWIN, point, metric)
            null = estimate(base, twin, design.clock, design.confidence, resampler) if twin else None
            for variant in variants:
                changed = collected.boots(variant, point, metric)
                if changed is None:
                    continue
                found = estimate(base, changed, design.clock, design.confidence, resampler)
                pairs.append(_Pair(point, variant, metric, spec, base, changed, found, null))
    adjusted = holm([pair.found.p for pair in pairs])
    rules = Rules(design.confidence, design.same_within)
    return tuple(_comparison(pair, p, rules) for pair, p in zip(pairs, adjusted, strict=True))


def _comparison(pair: _Pair, p_adjusted: float | None, rules: Rules) -> Comparison:
    found, null = pair.found, pair.null
    verdict, reason = judge(found, null, p_adjusted, pair.spec.better, rules)
    return Comparison(
        workload=pair.point.workload,
        variant=pair.variant,
        metric=pair.metric,
        unit=pair.spec.unit,
        better=pair.spec.better,
        point=pair.point.shown,
        base=summary(pair.base),
        changed=summary(pair.changed),
        ratio=_tidy(found.ratio),
        ci=_tidy_pair(found.ci),
        confidence=rules.confidence,
        mde=_tidy(found.mde),
        verdict=verdict,
        exact=found.exact,
        null_ci=_tidy_pair(null.ci) if null else None,
        p=_tidy(found.p),
        reason=reason,
    )


def _laws(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    collected: Collected,
    expected: Sequence[Point],
    kernels: Sequence[str],
) -> tuple[Law, ...]:
    confidence = experiment.design.confidence
    result: list[Law] = []
    for name, metric, spec in _compared(experiment, workloads):
        param = workloads[name].law
        for others in _families(expected, name, param):
            for kernel in kernels:
                law = _law(collected, kernel, others, param=param, metric=metric, confidence=confidence)
                if law is not None:
                    rest = {k: v for k, v in others[0].shown.items() if k != param}
                    fields = {"workload": name, "kernel": kernel, "metric": metric, "unit": spec.unit}
                    result.append(Law.model_validate({**fields, "param": param, "point": rest, **law}))
    return tuple(result)


def _law(
    collected: Collected, kernel: str, family: Sequence[Point], *, param: str, metric: str, confidence: float
) -> dict[str, Any] | None:
    """The fit over the points where this kernel has samples, over the boots that have all of those."""
    values: list[float] = []
    medians: list[dict[int, float]] = []
    for point in family:
        found = collected.boots(kernel, point, metric)
        size = point.shown.get(param)
        if found is not None and isinstance(size, int):
            values.append(size)
            medians.append(found.medians)
    common = sorted(set.intersection(*(set(blocks) for blocks in medians))) if medians else []
    rows = [[blocks[block] for blocks in medians] for block in common]
    found_law = fit(values, rows, confidence) if rows else None
    if found_law is None:
        return None
    return {
        "model": found_law.model,
        "per_unit": _tidy(found_law.per_unit),
        "per_unit_ci": _tidy_pair(found_law.per_unit_ci),
        "intercept": _tidy(found_law.intercept),
        "exponent": _tidy(found_law.exponent),
        "exponent_ci": _tidy_pair(found_law.exponent_ci),
        "r2": _tidy(found_law.r2),
        "points": found_law.points,
    }


def _families(expected: Sequence[Point], workload: str, param: str) -> list[list[Point]]:
    """The points of a workload, grouped by all parameters but ``param``; none where it has no law."""
    families: dict[Key, list[Point]] = {}
    for point in expected:
        if point.workload == workload and param in dict(point.full):
            rest = tuple(item for item in point.full if item[0] != param)
            families.setdefault(rest, []).append(point)
    return list(families.values())


def _compared(experiment: Experiment, workloads: Mapping[str, Workload]) -> list[tuple[str, str, Metric]]:
    """Every workload's metrics that are judged, headline metrics first."""
    result: list[tuple[str, str, Metric]] = []
    for name in dict.fromkeys(sweep.workload for sweep in experiment.workloads):
        metrics = [(metric, spec) for metric, spec in workloads[name].metrics.items() if spec.compare]
        metrics.sort(key=lambda item: not item[1].headline)
        result += [(name, metric, spec) for metric, spec in metrics]
    return result


def _acceleration(boots: Sequence[BootRecords]) -> tuple[str, ...]:
    if not any(boot.start.acceleration == "mttcg" for boot in boots):
        return ()
    return (
        "multi-threaded emulation, not hardware: real time of translated code, without caches or interrupts "
        "between CPUs as hardware has them",
    )


def _notes(
    workloads: Mapping[str, Workload], collected: Collected, kernels: Mapping[str, KernelFacts]
) -> tuple[str, ...]:
    notes = [
        f"the agent recorded {metric}, which workload {workload} does not declare: not analysed"
        for workload, metric in sorted(collected.metrics)
        if workload not in workloads or metric not in workloads[workload].metrics
    ]
    notes += [
        f"{name} was built as {facts.release} and called itself {collected.releases[name]} when it ran"
        for name, facts in kernels.items()
        if facts.release and collected.releases.get(name, facts.release) != facts.release
    ]
    return tuple(notes)


def _tidy(value: float | None) -> float | None:
    return None if value is None else _rounded(value)


def _tidy_pair(pair: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if pair is None else (_rounded(pair[0]), _rounded(pair[1]))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
