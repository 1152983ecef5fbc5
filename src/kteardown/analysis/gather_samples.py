"""Records in, ``Evidence`` out: the samples and stacks of a run as reports draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kteardown.analysis.dataset import Dataset, compared
from kteardown.analysis.estimate.bootstrap import Boots, Resampler, level_interval
from kteardown.analysis.estimate.rounding import tidy_pair
from kteardown.analysis.profile.stacks import collect, frames_of, is_idle
from kteardown.model.experiment import Experiment
from kteardown.model.point import Point
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.samples import Evidence, Samples, Stacks
from kteardown.model.workload import Metric, Workload
from kteardown.rundir.counting import BootRecords

_DRAWS = 500
"""Enough for an error bar: its width is then known to three percent."""


def gather(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    points: Sequence[Point],
    boots: Sequence[BootRecords],
    profiled: Sequence[BootRecords],
    variants: Sequence[str],
    *,
    blocks: int | None = None,
) -> Evidence:
    """The samples and stacks of a run, base first, then its twins and ``variants``, headline metrics first.

    ``boots`` and ``profiled`` hold the last finished attempt of each boot. ``blocks``: leave out those of
    variants numbered beyond, as the result does; blocks beyond the design's hold the layout twin.
    """
    design = experiment.design
    planned = design.boots if design.clock == "wall" else design.seeds
    limit = planned if blocks is None else min(planned, blocks)
    collected = Dataset(b for b in boots if b.start.block < limit or b.start.kernel == LAYOUT)
    drawn = Resampler(design.seed, _DRAWS)
    found = [
        gathered
        for name, metric, spec in compared(experiment, workloads)
        for point in points
        if point.workload == name
        for kernel in dict.fromkeys((BASE, TWIN, LAYOUT, *variants))
        if (gathered := _samples(collected, kernel, point, metric, spec, drawn, design.confidence))
    ]
    return Evidence(tuple(found), tuple(_stacks(workloads, points, profiled)))


def _samples(
    collected: Dataset,
    kernel: str,
    point: Point,
    metric: str,
    spec: Metric,
    resampler: Resampler,
    confidence: float,
) -> Samples | None:
    boots = collected.boots(kernel, point, metric)
    if boots is None:
        return None
    return Samples(
        kernel=kernel,
        workload=point.workload,
        metric=metric,
        unit=spec.unit,
        better=spec.better,
        headline=spec.headline,
        point=point.shown,
        boots={block: tuple(values) for block, values in sorted(boots.samples.items())},
        intervals=_intervals(boots, spec, resampler, confidence),
    )


def _intervals(
    boots: Boots, spec: Metric, resampler: Resampler, confidence: float
) -> dict[str, tuple[float, float]]:
    wanted = {"median": 0.5, **{f"p{percent:.6g}": percent / 100 for percent in spec.percentiles}}
    found = {
        name: tidy_pair(level_interval(boots, resampler, confidence=confidence, quantile=quantile))
        for name, quantile in wanted.items()
    }
    return {name: interval for name, interval in found.items() if interval is not None}


def _stacks(
    workloads: Mapping[str, Workload], points: Sequence[Point], profiled: Sequence[BootRecords]
) -> list[Stacks]:
    shown = {(point.workload, point.full): point.shown for point in points}
    found = []
    for stretches in collect(profiled):
        ns: dict[tuple[str, ...], float] = {}
        for text, weight in stretches.stacks.items():
            frames = frames_of(text)
            if not is_idle(frames):
                ns[frames] = ns.get(frames, 0.0) + weight.ns / stretches.count
        point = shown.get((stretches.workload, stretches.key), dict(stretches.key))
        law = workloads[stretches.workload].law
        found.append(Stacks(stretches.kernel, stretches.workload, law, point, ns))
    return found
