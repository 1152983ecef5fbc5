"""The samples and stacks of a run, as a reader of its report sees them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from kteardown.analysis.dataset import Dataset, compared
from kteardown.analysis.estimate.bootstrap import Resampler, level_interval
from kteardown.analysis.stretches import collect, frames_of, is_idle
from kteardown.model.experiment import Experiment
from kteardown.model.judged import tidy_pair
from kteardown.model.plan import blocks_of
from kteardown.model.point import Point
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.samples import Evidence, Samples, Stacks
from kteardown.model.workload import Workload
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
    """The samples and stacks of a run, base first, then its twins and ``variants``, headline
    metrics first.

    ``boots`` and ``profiled`` hold the last finished attempt of each boot. ``blocks``: leave out
    those of variants numbered beyond, as the result does; blocks beyond the design's hold the
    layout twin.
    """
    design = experiment.design
    limit = blocks_of(design) if blocks is None else min(blocks_of(design), blocks)
    collected = Dataset(b for b in boots if b.start.block < limit or b.start.kernel == LAYOUT)
    drawn = Resampler(design.seed, _DRAWS)
    samples = []
    for name, metric, spec in compared(experiment, workloads):
        quantiles = {
            "median": 0.5,
            **{f"p{percent:.6g}": percent / 100 for percent in spec.percentiles},
        }
        places = [point for point in points if point.workload == name]
        for point, kernel in product(places, dict.fromkeys((BASE, TWIN, LAYOUT, *variants))):
            of_kernel = collected.boots(kernel, point, metric)
            if of_kernel is None:
                continue
            intervals = {
                statistic: tidy_pair(
                    level_interval(
                        of_kernel, drawn, confidence=design.confidence, quantile=quantile
                    )
                )
                for statistic, quantile in quantiles.items()
            }
            samples.append(
                Samples(
                    kernel=kernel,
                    workload=name,
                    metric=metric,
                    unit=spec.unit,
                    better=spec.better,
                    headline=spec.headline,
                    point=point.shown,
                    boots={
                        block: tuple(values) for block, values in sorted(of_kernel.samples.items())
                    },
                    intervals={name: ends for name, ends in intervals.items() if ends is not None},
                )
            )
    return Evidence(tuple(samples), tuple(_stacks(workloads, points, profiled)))


def _stacks(
    workloads: Mapping[str, Workload], points: Sequence[Point], profiled: Sequence[BootRecords]
) -> Iterator[Stacks]:
    """The mean time of a stretch in each stack that is not idle, in ns."""
    shown = {(point.workload, point.full): point.shown for point in points}
    for stretches in collect(profiled):
        ns: dict[tuple[str, ...], float] = {}
        for text, weight in stretches.stacks.items():
            frames = frames_of(text)
            if not is_idle(frames):
                ns[frames] = ns.get(frames, 0.0) + weight.ns / stretches.count
        point = shown.get((stretches.workload, stretches.key), dict(stretches.key))
        law = workloads[stretches.workload].law
        yield Stacks(stretches.kernel, stretches.workload, law, point, ns)
