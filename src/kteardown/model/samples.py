"""What charts need besides a result: every valid sample by boot, and the sampled stacks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Better

PointOf = Mapping[str, ParamValue]


@dataclass(frozen=True)
class Samples:
    """Every valid sample of one metric of one kernel at one point.

    ``boots`` has the values by block, in order of measurement. ``intervals`` has, by statistic
    (``median``, ``p99``), the interval of its median over boots; it is empty for a single boot.
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
        return sum(len(values) for values in self.boots.values())


@dataclass(frozen=True)
class Stacks:
    """The profile of one kernel at one point: ns of one stretch by stack, outermost function first.

    Idle time of CPUs is not included. ``param`` is the parameter over which points are profiled.
    """

    kernel: str
    workload: str
    param: str
    point: PointOf
    ns: Mapping[tuple[str, ...], float]


@dataclass(frozen=True)
class Evidence:
    """The samples and stacks of a run that a report can draw; empty if only a result is known."""

    samples: tuple[Samples, ...] = ()
    stacks: tuple[Stacks, ...] = ()

    @cached_property
    def _index(self) -> dict[tuple[object, ...], Samples]:
        return {(s.kernel, s.workload, s.metric, *sorted(s.point.items())): s for s in self.samples}

    def of(self, kernel: str, workload: str, metric: str, point: PointOf) -> Samples | None:
        """Return the samples of this metric; None if it has no samples."""
        return self._index.get((kernel, workload, metric, *sorted(point.items())))
