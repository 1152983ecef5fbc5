"""Compute a Result from records. This stage knows no machine and prints nothing.

The statistic inside a boot is the median of its measured repetitions, or a percentile that the metric
declares. The statistic of a kernel at a point is the median over its boots. Equal records give an equal
Result, bit for bit: every random draw is seeded from the design of the experiment, and nothing about the time
or load of the host is used except ``environment_notes``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kteardown.analysis.ablation import ablations
from kteardown.analysis.compared_pairs import Data
from kteardown.analysis.comparisons import compare_all
from kteardown.analysis.dataset import Dataset
from kteardown.analysis.estimate.bootstrap import Resampler
from kteardown.analysis.estimate.verdict import Rules
from kteardown.analysis.faults import faults, uncompared
from kteardown.analysis.growth.laws import laws
from kteardown.analysis.growth.slope_ratio import slope_ratios
from kteardown.analysis.nodes import node_notes, nodes_of
from kteardown.model.counts import METRICS
from kteardown.model.experiment import Experiment
from kteardown.model.plan import blocks_of
from kteardown.model.point import Point
from kteardown.model.record import BASE, LAYOUT, NOT_VARIANTS, OUTCOMES, TWIN
from kteardown.model.result import (
    Comparison,
    Distribution,
    KernelFacts,
    MetricVerdict,
    Result,
    Unavailable,
    not_built,
)
from kteardown.model.workload import Workload
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
    data = _data(experiment, workloads, kernels, points, main, used, confidence)
    failed = faults(main, data.variants, points, design.clock, design.confidence)
    slopes = slope_ratios(data)
    found = compare_all(data, slopes, failed)
    releases = data.collected.releases
    voids = data.collected.voids(_in_every_block(data), limit, data.expected)
    booted = {boot.start.kernel for boot in boots}
    asked_for = [variant for variant in data.asked_for if variant in booted]
    result = Result(
        experiment=experiment.name,
        question=experiment.question,
        clock=design.clock,
        command=command,
        machine=dict(machine),
        kernels={
            name: facts.model_copy(update={"release": releases.get(name, facts.release)})
            for name, facts in kernels.items()
        },
        comparisons=found.comparisons,
        laws=laws(data, [BASE, *data.variants], predict_at or {}, slopes, found.slopes),
        boots={outcome: sum(b.end.outcome == outcome for b in used) for outcome in OUTCOMES},
        voids=voids,
        ablations=ablations(data, kernels, found.comparisons, unavailable),
        outliers=found.outliers,
        distributions=_distributions(data, [BASE, *data.variants]),
        metric_verdicts=found.metric_verdicts,
        faults=failed,
        uncompared=uncompared(found.comparisons, asked_for, points, voids),
    )
    notes = (*_notes(data, kernels, used, environment_notes), *node_notes(found, data.nodes))
    return result.model_copy(update={"notes": (*notes, *_cautions(result, workloads))})


def _data(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    kernels: Mapping[str, KernelFacts],
    points: Sequence[Point],
    main: Sequence[BootRecords],
    used: Sequence[BootRecords],
    confidence: float | None,
) -> Data:
    """Return the input of all comparisons. ``used``: the boots of ``main``, and those of the layout twin."""
    design = experiment.design
    blocks = {boot.start.block for boot in used if boot.start.kernel == LAYOUT}
    moved = [boot for boot in used if boot.start.block in blocks and boot.start.kernel in (BASE, LAYOUT)]
    variants = [name for name in kernels if name not in (*NOT_VARIANTS, *not_built(kernels))]
    return Data(
        experiment=experiment,
        workloads=workloads,
        collected=Dataset(main),
        moved=Dataset(moved),
        expected=points,
        variants=variants,
        asked_for=[name for name in variants if not kernels[name].for_ablation],
        rules=Rules(confidence or design.confidence, design.same_within),
        resampler=Resampler(design.seed),
        nodes=nodes_of(main),
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


def _in_every_block(data: Data) -> list[str]:
    design = data.experiment.design
    twins = [TWIN, *([LAYOUT] if design.layout_twin else [])] if design.clock == "wall" else []
    return [BASE, *twins, *data.variants]


def _notes(
    data: Data, kernels: Mapping[str, KernelFacts], boots: Sequence[BootRecords], environment: Sequence[str]
) -> list[str]:
    workloads, recorded, releases = data.workloads, data.collected.metrics, data.collected.releases
    notes = []
    if any(boot.start.acceleration == "mttcg" for boot in boots):
        notes.append(
            "multi-threaded emulation, not hardware: real time of translated code, in which caches and "
            "interrupts between CPUs differ from hardware"
        )
    notes += environment
    notes += [
        f"the agent recorded {metric}, which workload {workload} does not declare: not analysed"
        for workload, metric in sorted(recorded)
        if workload not in workloads or metric not in workloads[workload].metrics
    ]
    notes += [
        f"no trial of workload {workload} recorded {metric}, which the workload declares"
        for workload in sorted({workload for workload, _ in recorded} & workloads.keys())
        for metric, spec in workloads[workload].metrics.items()
        if not spec.optional and (workload, metric) not in recorded
    ]
    notes += [
        f"{name} was built as {facts.release} and reported the release {releases[name]} when it ran"
        for name, facts in kernels.items()
        if facts.release and releases.get(name, facts.release) != facts.release
    ]
    unsafe = (name for name, facts in kernels.items() if not facts.sandboxed)
    return [*notes, *(f"{name} was built without the sandbox (--unsafe-build)" for name in unsafe)]


def _cautions(result: Result, workloads: Mapping[str, Workload]) -> list[str]:
    """Return warnings about the verdicts."""
    notes = []
    if needs_layout_twin(result, workloads):
        notes.append(
            f"claims below {LAYOUT_CLAIM:.0%} are made without a layout twin: moving code alone has changed "
            "results by 4 to 9%"
        )
    for c in result.comparisons:
        percent = 50.0 if c.statistic == "median" else float(c.statistic.removeprefix("p"))
        fewest = min(side.n / side.boots for side in (c.base, c.changed))
        # Fewer than one sample of a boot is expected beyond the percentile.
        if c.statistic != "median" and fewest * min(percent, 100 - percent) < 100:
            notes.append(
                f"{c.metric} {c.statistic}: a boot has too few samples to distinguish it from their maximum "
                "or minimum"
            )
    return list(dict.fromkeys(notes))


def _distributions(data: Data, kernels: Sequence[str]) -> tuple[Distribution, ...]:
    """Return a distribution for every histogram, kernel and point that has values."""
    return tuple(
        Distribution(
            workload=workload,
            kernel=kernel,
            metric=metric,
            unit=spec.unit,
            point=point.shown,
            n=found.n,
            percentiles={f"{percent:g}": found.percentile(percent) for percent in spec.percentiles},
            error=found.error,
        )
        for workload in dict.fromkeys(point.workload for point in data.expected)
        for metric, spec in data.workloads[workload].histograms.items()
        for kernel in kernels
        for point in data.expected
        if point.workload == workload
        and (found := data.collected.histogram(kernel, point, metric)) is not None
    )
