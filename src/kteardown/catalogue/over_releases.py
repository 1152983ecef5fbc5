"""What one more object of each problem costs on the releases that were measured, and which release
changed it.

A release changes a cost if the ranges of both releases are apart and the cost differs by more than
``MARGIN``: the compiler and the configuration of a release move a count of instructions by a few
percent, which is no change of its code.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from kteardown.catalogue.laws import MeasuredLaw, costs_of, laws_of
from kteardown.catalogue.problems import LiveProblem
from kteardown.catalogue.releases import version_of

MARGIN = 0.1


@dataclass(frozen=True)
class ReleaseCost:
    """What one object costs a release, with the ends of its range, and the result that says so."""

    release: str
    low: float
    value: float
    high: float
    result: str


@dataclass(frozen=True)
class CostLine:
    """The cost of one object over releases, oldest first.

    ``series`` is empty for kernels without patches. ``machine`` has what differs between lines of
    one problem, such as ``32 possible CPUs``.
    """

    series: str
    machine: str
    costs: tuple[ReleaseCost, ...]


@dataclass(frozen=True)
class ReleaseChange:
    """A change of the cost between two releases that were measured one after the other."""

    older: ReleaseCost
    newer: ReleaseCost
    verdict: Literal["better", "worse"]

    @property
    def ratio(self) -> float:
        return self.newer.value / self.older.value


@dataclass(frozen=True)
class CostHistory:
    """All lines of a problem, in ``unit``: kernels without patches first.

    ``objects``: with so many objects the cost was measured; None if it is the slope of a law.
    """

    unit: str
    objects: int | None
    lines: tuple[CostLine, ...]

    @property
    def changes(self) -> tuple[ReleaseChange, ...]:
        """Return every change of the first line."""
        if not self.lines:
            return ()
        pairs = pairwise(self.lines[0].costs)
        return tuple(change for pair in pairs if (change := _change(*pair)))

    @property
    def whole_change(self) -> ReleaseChange | None:
        """Return the change of the first line from its oldest release to its newest."""
        costs = self.lines[0].costs if self.lines else ()
        return _change(costs[0], costs[-1]) if costs else None


def _change(older: ReleaseCost, newer: ReleaseCost) -> ReleaseChange | None:
    is_apart = newer.low > older.high or newer.high < older.low
    if not is_apart or older.value <= 0 or abs(newer.value / older.value - 1) <= MARGIN:
        return None
    return ReleaseChange(older, newer, "better" if newer.value < older.value else "worse")


def cost_history(problem: LiveProblem, further: Iterable[MeasuredLaw] = ()) -> CostHistory:
    """Return what was measured of a problem; ``further`` are laws of other results.

    A law of ``further`` stands for its release if the catalogue has none.
    """
    return _of_kind(problem) if problem.kind else _of_laws(problem, further)


def _of_kind(problem: LiveProblem) -> CostHistory:
    costs = costs_of(problem)
    # All releases with the same number of objects.
    objects = min((cost.sizes[-1] for cost in costs), default=0)
    by_series: dict[str, list[ReleaseCost]] = {}
    for cost in costs:
        low, value, high = (whole / objects for whole in cost.at(objects))
        by_series.setdefault(cost.series, []).append(
            ReleaseCost(cost.release, low, value, high, cost.result)
        )
    lines = (CostLine(series, "", _ordered(rows)) for series, rows in by_series.items())
    unit = "instructions" if problem.cost == "work" else "kb"
    return CostHistory(unit, objects, _unpatched_first(lines))


def _of_laws(problem: LiveProblem, further: Iterable[MeasuredLaw]) -> CostHistory:
    def machine(law: MeasuredLaw) -> str:
        return ", ".join(
            f"{law.point[name]} {name.replace('_cpus', ' CPUs')}"
            for name in problem.machine
            if name in law.point
        )

    return _history(laws_of(problem, further), machine)


def histories_of(laws: Iterable[MeasuredLaw]) -> dict[tuple[str, str, str, str], CostHistory]:
    """Return the cost of one more over releases by workload, metric, parameter and point."""
    by_law: dict[tuple[str, str, str, str], list[MeasuredLaw]] = {}
    for law in laws:
        point = " ".join(f"{name}={value}" for name, value in law.point.items())
        by_law.setdefault((law.workload, law.metric, law.param, point), []).append(law)
    return {key: _history(alike, lambda law: "") for key, alike in sorted(by_law.items())}


def _history(laws: Sequence[MeasuredLaw], machine: Callable[[MeasuredLaw], str]) -> CostHistory:
    """Return the history of laws that differ only in release, series and ``machine``.

    Of several laws of a release the first one counts.
    """
    by_line: dict[tuple[str, str], dict[str, ReleaseCost]] = {}
    for law in laws:
        low, high = law.interval
        by_line.setdefault((law.series, machine(law)), {}).setdefault(
            law.release, ReleaseCost(law.release, low, law.per_unit, high, law.result)
        )
    lines = (
        CostLine(series, where, _ordered(rows.values()))
        for (series, where), rows in by_line.items()
    )
    return CostHistory(laws[0].unit if laws else "", None, _unpatched_first(lines))


def _ordered(costs: Iterable[ReleaseCost]) -> tuple[ReleaseCost, ...]:
    return tuple(sorted(costs, key=lambda cost: version_of(cost.release) or (0, 0)))


def _unpatched_first(lines: Iterable[CostLine]) -> tuple[CostLine, ...]:
    """Order lines; of the kernels without patches, the line with the most releases is the first."""

    def key(line: CostLine) -> tuple[bool, int, str, str]:
        return bool(line.series), -len(line.costs), line.series, line.machine

    return tuple(sorted(lines, key=key))
