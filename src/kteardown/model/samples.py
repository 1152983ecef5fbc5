"""What a report draws beside a result: every sample that counts, boot by boot, and the sampled stacks.

A result holds what was concluded; this holds what it was concluded from, for charts that hide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kteardown.model.record import ParamValue
from kteardown.model.workload import Better

PointOf = Mapping[str, ParamValue]


@dataclass(frozen=True)
class Samples:
    """Every sample that counts of one metric of one kernel at one point.

    ``boots``: block -> values in the order in which they came. ``intervals``: by statistic (``median``,
    ``p99``), the interval of its median over boots; without those of a single boot.
    """

    kernel: str
    workload: str
    metric: str
    unit: str
    better: Better
    headline: bool
    point: PointOf
    boots: Mapping[int, tuple[float, ...]]
    intervals: Mapping[str, tuple[float, float]]

    @property
    def count(self) -> int:
        """Samples of all boots."""
        return sum(len(values) for values in self.boots.values())


@dataclass(frozen=True)
class Stacks:
    """Where one kernel was at one point: ns of one stretch by stack, outermost function first, without
    the time in which a CPU had nothing to run. ``param`` is what the profiled points run over."""

    kernel: str
    workload: str
    param: str
    point: PointOf
    ns: Mapping[tuple[str, ...], float]


@dataclass(frozen=True)
class Evidence:
    """All of a run that a report can draw; empty where only a result is known."""

    samples: tuple[Samples, ...] = ()
    stacks: tuple[Stacks, ...] = ()

    @cached_property
    def _index(self) -> dict[tuple[object, ...], Samples]:
        return {(s.kernel, s.workload, s.metric, *sorted(s.point.items())): s for s in self.samples}

    def of(self, kernel: str, workload: str, metric: str, point: PointOf) -> Samples | None:
        """The samples of this figure; None where there are none."""
        return self._index.get((kernel, workload, metric, *sorted(point.items())))
