"""Which problems a machine has: counts, multiplied with what kteardown has measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from kteardown.catalogue.problems import LiveProblem, load_problems
from kteardown_observe.counts import CountOwner, MachineCounts
from kteardown_observe.estimate import (
    INSTRUCTIONS,
    CostEstimate,
    Improvement,
    estimate,
    improvements,
)
from kteardown_observe.limits import JudgedLimits, judge_limits

_MILLION = 1e6
_KB_FOR_A_MILLION = 1024
"""To sort by harm, a megabyte that is kept counts as much as a million instructions."""
_ONE_NODE = "measured with one NUMA node, and this machine has {nodes}"


@dataclass(frozen=True)
class PresentProblem:
    """A problem that a machine has.

    ``is_complete``: whether all was counted; if not, there are at least ``number``. ``how``: what
    the number is, if its name does not say it. ``at_least``: why the cost may be more; ``at_most``:
    it is so much only if this is true; both may be empty.
    """

    problem: LiveProblem
    number: int
    is_complete: bool
    owners: tuple[CountOwner, ...]
    cost: CostEstimate | None
    improvements: tuple[Improvement, ...]
    at_least: str
    at_most: str
    how: str

    @property
    def harm(self) -> float:
        """How much it costs, to sort problems; 0 if nothing was measured."""
        if self.cost is None:
            return 0
        unit = _MILLION if self.cost.unit == INSTRUCTIONS else _KB_FOR_A_MILLION
        return self.cost.value / unit

    @property
    def beyond(self) -> float | None:
        """How many times as many there are as were measured; None if so many were measured."""
        if self.cost is None or self.cost.reach is None:
            return None
        times = self.number * self.problem.scale / self.cost.reach
        return times if times > 1 else None


@dataclass(frozen=True)
class Judgement:
    """What was found: ``present`` by harm, the worst first. ``absent`` are not there, and
    ``unknown`` could not be counted, each with its reason."""

    counts: MachineCounts
    present: tuple[PresentProblem, ...]
    absent: tuple[LiveProblem, ...]
    unknown: tuple[tuple[LiveProblem, str], ...]
    limits: JudgedLimits

    @property
    def teardowns(self) -> Sequence[tuple[PresentProblem, Sequence[PresentProblem]]]:
        """Every problem that is part of no other one that is present, with its parts; the worst
        first, by the worst of its parts."""
        names = {present.problem.name for present in self.present}
        groups: dict[str, list[PresentProblem]] = {}
        for present in self.present:
            whole = present.problem.part_of
            groups.setdefault(whole if whole in names else present.problem.name, []).append(present)
        for name, group in groups.items():
            group.sort(key=lambda present: present.problem.name != name)
        return [(group[0], group[1:]) for group in groups.values()]


def judge(counts: MachineCounts) -> Judgement:
    """Return which problems a machine has.

    A problem is unknown if its count is missing, or is below the least number and not nearly
    complete.
    """
    here = []
    absent = []
    unknown = []
    for problem in load_problems():
        reason = _why_unknown(problem, counts)
        if reason:
            unknown.append((problem, reason))
        elif has_problem(problem, counts, problem.least):
            here.append(_present(problem, counts))
        else:
            absent.append(problem)
    here.sort(key=lambda present: -present.harm)
    return Judgement(counts, tuple(here), tuple(absent), tuple(unknown), judge_limits(counts))


def has_problem(problem: LiveProblem, counts: MachineCounts, least: int) -> bool:
    """Return whether a machine has at least so many objects of a problem, as far as is known."""
    count, needed = counts.counts.get(problem.count), counts.counts.get(problem.needs)
    applies = not problem.needs or (needed is not None and needed.number > 0)
    return applies and count is not None and count.amount(problem.of) >= least


def _why_unknown(problem: LiveProblem, counts: MachineCounts) -> str:
    """Return why it is not known whether a machine has a problem; empty if it is known."""
    for name in filter(None, (problem.count, problem.needs)):
        count = counts.counts.get(name)
        if count is None:
            return counts.why_missing.get(name, "not counted")
    count = counts.counts[problem.count]
    if count.is_nearly_complete or count.amount(problem.of) >= problem.least:
        return ""
    return counts.why_missing.get(problem.count, "not all were counted")


def _present(problem: LiveProblem, counts: MachineCounts) -> PresentProblem:
    count = counts.counts[problem.count]
    number = count.amount(problem.of)
    cost = estimate(problem, number, counts.host)
    return PresentProblem(
        problem,
        number,
        count.complete,
        tuple(sorted(count.largest, key=lambda owner: -owner.number)),
        cost,
        improvements(problem, number, counts.host),
        at_least="; ".join(_lower_bounds(problem, counts, cost)),
        at_most=problem.at_most,
        how=count.how,
    )


def _lower_bounds(
    problem: LiveProblem, counts: MachineCounts, cost: CostEstimate | None
) -> Sequence[str]:
    """Return why a cost is at least so much."""
    reasons = [problem.at_least] if problem.at_least else []
    if not counts.counts[problem.count].complete:
        reasons.append("not all of them were counted")
    if cost and not cost.is_whole:
        reasons.append("a part whose growth is not known is left out")
    nodes = counts.host.numa_nodes or 1
    if "possible_cpus" in problem.machine and nodes > 1:
        reasons.append(_ONE_NODE.format(nodes=nodes))
    return reasons
