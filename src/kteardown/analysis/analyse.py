"""Compute a Result from records. This stage knows no machine and prints nothing.

The statistic inside a boot is the median of its measured repetitions, or a percentile that the metric
declares. The statistic of a kernel at a point is the median over its boots. Equal records give an equal
Result, bit for bit: every random draw is seeded from the design of the experiment, and nothing about the time
or load of the host is used except ``environment_notes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kteardown.analysis.ablation import ablations
from kteardown.analysis.compared_pairs import Data
from kteardown.analysis.comparisons import JudgedComparisons, compare_all
from kteardown.analysis.dataset import Dataset
from kteardown.analysis.estimate.bootstrap import Resampler
from kteardown.analysis.estimate.verdict import Rules
from kteardown.analysis.faults import as_broken, faults, metrics_as_broken, uncompared
from kteardown.analysis.growth.laws import laws
from kteardown.analysis.growth.slope_ratio import SlopeRatio, slope_ratios
from kteardown.analysis.nodes import node_notes, nodes_of
from kteardown.model.counts import METRICS
from kteardown.model.experiment import Experiment
from kteardown.model.plan import blocks_of
from kteardown.model.point import Point
from kteardown.model.record import BASE, LAYOUT, NOT_VARIANTS, OUTCOMES, TWIN
from kteardown.model.result import (
    Comparison,
    Distribution,
    Fault,
    KernelFacts,
    MetricVerdict,
    Result,
    Unavailable,
    not_built,
)
from kteardown.model.workload import HistogramSpec, Workload
from kteardown.rundir.counting import BootRecords

LAYOUT_CLAIM = 0.1
"""A smaller change is not claimed without the layout twin: moving code alone changed results by 4 to 9%."""
_MOVED_BY_LAYOUT = ("ns", "us", "per_s", "share")
"""Units of metrics that code layout can change, as it can counts of the processor; not of objects or kB."""


def analyse(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    boots: Sequence[BootRecords],
    kernels: Mapping[str, KernelFacts],
    machine: Mapping[str, Any],
    command: str,
    *,
    points: Sequence[Point],
    blocks: int | None = None,
    confidence: float | None = None,
    environment_notes: Sequence[str] = (),
    unavailable: Sequence[Unavailable] = (),
    predict_at: Mapping[str, Sequence[float]] | None = None,
) -> Result:
    """Return the result of a run, or of the part of it that is finished.

    ``boots`` are the last finished attempts of each boot. ``kernels`` are base and the variants in report
    order. ``machine`` has stable facts of the host. ``command`` is the command that repeats the run.
    ``points`` are those of the plan. ``blocks`` restricts the analysis to blocks with lower numbers;
    ``confidence`` replaces that of the design. Blocks beyond the design's contain base and its layout twin,
    and are used only to compare these two. ``unavailable`` are kernels of an ablation that could not be
    built. ``predict_at``: by parameter, where growth laws are evaluated, instead of at twice the largest.
    """
    design = experiment.design
    planned = blocks_of(design)
    limit = planned if blocks is None else min(planned, blocks)
    used = [boot for boot in boots if boot.start.block < limit or boot.start.block >= planned]
    main = [boot for boot in boots if boot.start.block < limit]
    rules = Rules(confidence or design.confidence, design.same_within)
    data = _data(experiment, workloads, kernels, points, main, _layout_blocks(used), rules)
    variants = data.variants
    failed = faults(main, variants, points, design.clock, design.confidence)
    slopes = slope_ratios(data)
    found = _judged(data, slopes, failed)
    voids = data.collected.voids(_in_every_block(data), limit, data.expected)
    booted = {boot.start.kernel for boot in boots}
    result = Result(
        experiment=experiment.name,
        question=experiment.question,
        clock=design.clock,
        command=command,
        machine=dict(machine),
        kernels=_as_they_ran(kernels, data.collected),
        comparisons=found.comparisons,
        laws=laws(data, [BASE, *variants], predict_at or {}, slopes, found.slopes),
        boots={outcome: sum(b.end.outcome == outcome for b in used) for outcome in OUTCOMES},
        voids=voids,
        notes=(*_acceleration(used), *environment_notes, *_notes(workloads, data.collected, kernels)),
        ablations=ablations(data, kernels, found.comparisons, unavailable),
        outliers=found.outliers,
        distributions=_distributions(data, [BASE, *variants]),
        metric_verdicts=found.metric_verdicts,
        faults=failed,
        uncompared=uncompared(
            found.comparisons, [variant for variant in data.asked_for if variant in booted], points, voids
        ),
    )
    notes = (*result.notes, *node_notes(found, data.nodes), *_cautions(result, workloads))
    return result.model_copy(update={"notes": notes})


def _data(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    kernels: Mapping[str, KernelFacts],
    points: Sequence[Point],
    main: Sequence[BootRecords],
    moved: Sequence[BootRecords],
    rules: Rules,
) -> Data:
    """Return the input of all comparisons. ``moved``: boots of the layout twin, and of base in its blocks."""
    variants = [name for name in kernels if name not in (*NOT_VARIANTS, *not_built(kernels))]
    return Data(
        experiment=experiment,
        workloads=workloads,
        collected=Dataset(main),
        moved=Dataset(moved),
        expected=points,
        variants=variants,
        asked_for=[name for name in variants if not _for_ablation(kernels[name])],
        rules=rules,
        resampler=Resampler(experiment.design.seed),
        nodes=nodes_of(main),
    )


def _judged(data: Data, slopes: Sequence[SlopeRatio], failed: Sequence[Fault]) -> JudgedComparisons:
    """Return everything that is compared, with the verdict ``broken`` where a variant is."""
    found = compare_all(data, slopes)
    return replace(
        found,
        comparisons=as_broken(found.comparisons, failed),
        metric_verdicts=metrics_as_broken(found.metric_verdicts, failed),
    )


def needs_layout_twin(result: Result, workloads: Mapping[str, Workload]) -> bool:
    """Return whether a verdict could be explained by code layout alone and there is no layout twin.

    This applies to verdicts of better or worse on the wall clock, of a metric that layout can change, with a
    change below ten percent.
    """
    judged: tuple[Comparison | MetricVerdict, ...] = (*result.metric_verdicts, *result.comparisons)
    return result.clock == "wall" and any(
        c.verdict in ("better", "worse", "mixed")
        and c.layout_ci is None
        and c.ratio is not None
        and abs(c.ratio - 1) < LAYOUT_CLAIM
        and (c.metric in METRICS or workloads[c.workload].metrics[c.metric].unit in _MOVED_BY_LAYOUT)
        for c in judged
    )


def _as_they_ran(kernels: Mapping[str, KernelFacts], collected: Dataset) -> dict[str, KernelFacts]:
    return {
        name: facts.model_copy(update={"release": collected.releases.get(name, facts.release)})
        for name, facts in kernels.items()
    }


def _for_ablation(facts: KernelFacts) -> bool:
    return facts.patch_set is not None and facts.patch_set.for_ablation


def _layout_blocks(boots: Sequence[BootRecords]) -> list[BootRecords]:
    """Return the boots of the layout twin, and those of base in the same blocks."""
    blocks = {boot.start.block for boot in boots if boot.start.kernel == LAYOUT}
    return [boot for boot in boots if boot.start.block in blocks and boot.start.kernel in (BASE, LAYOUT)]


def _in_every_block(data: Data) -> list[str]:
    design = data.experiment.design
    twins = [TWIN, *([LAYOUT] if design.layout_twin else [])] if design.clock == "wall" else []
    return [BASE, *twins, *data.variants]


def _acceleration(boots: Sequence[BootRecords]) -> tuple[str, ...]:
    if not any(boot.start.acceleration == "mttcg" for boot in boots):
        return ()
    return (
        "multi-threaded emulation, not hardware: real time of translated code, in which caches and "
        "interrupts between CPUs differ from hardware",
    )


def _notes(
    workloads: Mapping[str, Workload], collected: Dataset, kernels: Mapping[str, KernelFacts]
) -> tuple[str, ...]:
    notes = [
        f"the agent recorded {metric}, which workload {workload} does not declare: not analysed"
        for workload, metric in sorted(collected.metrics)
        if workload not in workloads or metric not in workloads[workload].metrics
    ]
    given = {workload for workload, _ in collected.metrics} & workloads.keys()
    notes += [
        f"no trial of workload {workload} recorded {metric}, which the workload declares"
        for workload in sorted(given)
        for metric, spec in workloads[workload].metrics.items()
        if not spec.optional and (workload, metric) not in collected.metrics
    ]
    notes += [
        f"{name} was built as {facts.release} and reported the release {collected.releases[name]} when it ran"
        for name, facts in kernels.items()
        if facts.release and collected.releases.get(name, facts.release) != facts.release
    ]
    unsafe = (name for name, facts in kernels.items() if not facts.sandboxed)
    notes += [f"{name} was built without the sandbox (--unsafe-build)" for name in unsafe]
    return tuple(notes)


def _cautions(result: Result, workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """Return warnings about the verdicts."""
    notes = []
    if needs_layout_twin(result, workloads):
        notes.append(
            f"claims below {LAYOUT_CLAIM:.0%} are made without a layout twin: moving code alone has changed "
            "results by 4 to 9%"
        )
    extreme = {(c.metric, c.statistic): None for c in result.comparisons if _is_extreme(c)}
    notes += [
        f"{metric} {statistic}: a boot has too few samples to distinguish it from their maximum or minimum"
        for metric, statistic in extreme
    ]
    return tuple(notes)


def _is_extreme(comparison: Comparison) -> bool:
    """Return whether fewer than one sample of a boot is expected beyond the percentile."""
    if comparison.statistic == "median":
        return False
    percent = float(comparison.statistic.removeprefix("p"))
    fewest = min(side.n / side.boots for side in (comparison.base, comparison.changed))
    return fewest * min(percent, 100 - percent) < 100


def _distributions(data: Data, kernels: Sequence[str]) -> tuple[Distribution, ...]:
    """Return a distribution for every histogram, kernel and point that has values."""
    found = [
        _distribution(data, kernel, metric, spec, point)
        for workload in dict.fromkeys(point.workload for point in data.expected)
        for metric, spec in data.workloads[workload].histograms.items()
        for kernel in kernels
        for point in data.expected
        if point.workload == workload
    ]
    return tuple(distribution for distribution in found if distribution is not None)


def _distribution(
    data: Data, kernel: str, metric: str, spec: HistogramSpec, point: Point
) -> Distribution | None:
    histogram = data.collected.histogram(kernel, point, metric)
    if histogram is None:
        return None
    return Distribution(
        workload=point.workload,
        kernel=kernel,
        metric=metric,
        unit=spec.unit,
        point=point.shown,
        n=histogram.n,
        percentiles={f"{percent:g}": histogram.percentile(percent) for percent in spec.percentiles},
        error=histogram.error,
    )
