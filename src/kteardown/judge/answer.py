"""The answer of a run: for each variant and metric an outcome, its direction and the evidence.

This module alone knows what is worse and what passes. The exit code, the colour of the first lines,
the test cases of JUnit, the status of a check of b4, the headline and the first line of a comment
are derived from an ``Answer`` and from nothing else.

A metric that is ``mixed`` over its points hides changes in both directions. In each direction it
has the points with that verdict, and those without one whose whole interval lies in that direction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from kteardown.errors import BuildError, KteardownError
from kteardown.judge.metrics import Group, groups, is_headline, variants, verdict_of
from kteardown.judge.verdicts import OUTCOME_OF, VERDICTS, Outcome, most_alarming, worst
from kteardown.model.clock import Clock
from kteardown.model.faults import Fault, FaultStatus
from kteardown.model.judged import Comparison, Judged, MetricVerdict, Verdict
from kteardown.model.record import BASE
from kteardown.model.result import ByClock, Result, Uncompared
from kteardown.model.workload import Workload

Direction = Literal["worse", "better"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
"""What alarms more is first."""
FailOn = Literal["worse", "inconclusive"]
ProblemKind = Literal[
    "broken", "not built", "suspected", "unfinished", "not compared", "fail", "unsure"
]
"""Why a result does not pass, the most serious reason first."""
_KINDS: tuple[ProblemKind, ...] = get_args(ProblemKind)


@dataclass(frozen=True)
class MetricAnswer:
    """What was found of one metric of one variant, on one clock.

    ``whole`` is the verdict over all of its points, which only a headline metric has.
    """

    group: Group
    variant: str
    clock: Clock
    headline: bool
    points: tuple[Comparison, ...]
    whole: MetricVerdict | None

    @property
    def verdict(self) -> Verdict:
        """Return the verdict over all points; without one, the most alarming of the single
        points."""
        return (
            self.whole.verdict
            if self.whole
            else most_alarming(point.verdict for point in self.points)
        )

    @property
    def evidence(self) -> Judged | None:
        """Return what has the change and its interval; None of several points without a whole."""
        return self.whole or (self.points[0] if len(self.points) == 1 else None)

    def turned(self, direction: Direction) -> tuple[Comparison, ...]:
        """Return the points at which the metric became better or worse."""
        is_mixed = self.whole is not None and self.whole.verdict == "mixed"
        return tuple(
            point
            for point in self.points
            if point.verdict == direction or (is_mixed and _is_beyond(point, direction))
        )

    def is_turned(self, direction: Direction) -> bool:
        """Return whether the metric became better or worse, over all points or at one of them."""
        return self.verdict == direction or bool(self.turned(direction))

    @property
    def unconfirmed(self) -> tuple[Comparison, ...]:
        """Return the points at which only a figure of the kernel's or the script's own is
        better."""
        return tuple(point for point in self.points if point.outside == "contradicts")

    @property
    def is_equal(self) -> bool:
        """Return whether every point has the figures of base to the digit."""
        return all(point.exact and point.ratio == 1 for point in self.points)

    @property
    def outcome_over_points(self) -> Outcome:
        """Return what the verdict over all points means for a gate, without a single point that
        differs."""
        is_mixed_worse = self.verdict == "mixed" and bool(self.turned("worse"))
        return "fail" if is_mixed_worse else OUTCOME_OF[self.verdict]

    @property
    def outcome(self) -> Outcome:
        """Return what the metric means for a gate. A single point that is worse fails, too."""
        if "broken" in (self.verdict, *(point.verdict for point in self.points)):
            return "broken"
        if self.is_turned("worse"):
            return "fail"
        if self.whole is None and any(point.verdict == "inconclusive" for point in self.points):
            return "unsure"
        return OUTCOME_OF[self.verdict]


@dataclass(frozen=True)
class Problem:
    """Why a result does not pass: of one variant, with the finding or the fault that says so."""

    kind: ProblemKind
    variant: str = ""
    finding: MetricAnswer | None = None
    fault: Fault | None = None


@dataclass(frozen=True)
class VariantAnswer:
    """What was found of one kernel, on every clock that was measured."""

    name: str
    findings: tuple[MetricAnswer, ...]
    faults: tuple[tuple[Clock, Fault], ...]
    lost: tuple[tuple[Clock, Uncompared], ...]
    """The points of the plan at which it was not compared."""
    is_built: bool
    is_unfinished: bool
    is_sound: bool
    """Whether every boot was ok and no trial void."""

    @property
    def headlines(self) -> tuple[MetricAnswer, ...]:
        """Return the findings that count for the outcome: those of the headline metrics."""
        return tuple(finding for finding in self.findings if finding.headline)

    def with_status(self, status: FaultStatus) -> tuple[tuple[Clock, Fault], ...]:
        """Return the faults with this status, each with its clock."""
        return tuple((clock, fault) for clock, fault in self.faults if fault.status == status)

    def problem(self, fail_on: FailOn = "inconclusive") -> Problem | None:
        """Return the first reason why this variant does not pass; None if it does."""
        minor = "unsure" if fail_on == "worse" else None
        return next((problem for problem in self.problems() if problem.kind != minor), None)

    def problems(self) -> Iterator[Problem]:
        """Yield every reason why this variant does not pass, the most serious kind first."""
        for _, fault in self.with_status("broken"):
            yield Problem("broken", self.name, fault=fault)
        if not self.is_built:
            yield Problem("not built", self.name)
        for _, fault in self.with_status("suspected"):
            yield Problem("suspected", self.name, fault=fault)
        if self.is_unfinished:
            yield Problem("unfinished", self.name)
        if self.lost:
            yield Problem("not compared", self.name)
        for finding in self.headlines:
            if finding.outcome in ("broken", "fail"):
                yield Problem("fail", self.name, finding)
        for finding in self.headlines:
            if finding.outcome == "unsure":
                yield Problem("unsure", self.name, finding)

    @property
    def outcome(self) -> Outcome:
        """Return what the variant means for a gate. What is worse is said before what is not
        known."""
        if self.with_status("broken"):
            return "broken"
        outcomes = [finding.outcome for finding in self.headlines] if self.is_built else []
        if "fail" in outcomes or "broken" in outcomes:
            return "fail"
        return "unsure" if not outcomes or self.problem() else "pass"

    @property
    def tone(self) -> Verdict:
        """Return the verdict whose colour the variant has."""
        if self.outcome == "broken" or self.with_status("suspected"):
            return "broken"
        if self.outcome == "fail":
            return "worse"
        if not self.is_built or self.lost or any(finding.unconfirmed for finding in self.findings):
            return "inconclusive"
        if any(finding.is_turned("better") for finding in self.headlines):
            return "better"
        return "inconclusive" if self.outcome == "unsure" else "same"


@dataclass(frozen=True)
class Answer:
    """What a run says of all its variants: what alarms most is first."""

    variants: tuple[VariantAnswer, ...]
    base: VariantAnswer
    """Base has faults, and no findings."""

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome of a variant; ``unsure`` if there is none, or if base fails
        itself."""
        base: list[Outcome] = ["unsure"] if self.base.with_status("base") else []
        return worst([*(variant.outcome for variant in self.variants), *base])

    def problem(self, fail_on: FailOn) -> Problem | None:
        """Return the first reason why the run does not pass, the most serious kind first; None if
        it does."""
        problems = [reason for variant in self.variants if (reason := variant.problem(fail_on))]
        return min(problems, key=lambda problem: _KINDS.index(problem.kind), default=None)


def outcome_of_error(error: KteardownError) -> Outcome:
    """Return what an error means for a patch: that its kernel does not build is its own fault."""
    return "fail" if isinstance(error, BuildError) else "unsure"


def judge(measured: ByClock, workloads: Mapping[str, Workload]) -> Answer:
    """Return the answer of a run on one clock, or on both."""
    results = list(measured.results.values())
    requested = dict.fromkeys(
        name for result in results for name in result.requested or variants(result)
    )
    answers = [_of_kernel(results, workloads, name) for name in requested]
    return Answer(
        tuple(sorted(answers, key=lambda answer: VERDICTS.index(answer.tone))),
        _of_kernel(results, workloads, BASE),
    )


def _of_kernel(
    results: Sequence[Result], workloads: Mapping[str, Workload], name: str
) -> VariantAnswer:
    # A workload of invariants alone has no metric to compare.
    silent = {
        workload_name
        for workload_name, workload in workloads.items()
        if not any(m.compare for m in workload.metrics.values())
    }
    return VariantAnswer(
        name,
        tuple(finding for result in results for finding in _findings(result, workloads, name)),
        tuple(
            (result.clock, fault)
            for result in results
            for fault in result.faults
            if fault.kernel == name
        ),
        tuple(
            (result.clock, lost)
            for result in results
            for lost in result.uncompared
            if lost.variant == name and lost.workload not in silent
        ),
        is_built=all(name not in result.not_built for result in results),
        is_unfinished=any(result.unfinished for result in results),
        is_sound=all(
            result.boots.get("ok") == sum(result.boots.values()) and not result.voids
            for result in results
        ),
    )


def _findings(
    result: Result, workloads: Mapping[str, Workload], variant: str
) -> list[MetricAnswer]:
    compared = [(group, rows) for group in groups(result, workloads) if (rows := group.of(variant))]
    workloads_of: dict[str, set[str]] = {}
    for group, _ in compared:
        workloads_of.setdefault(group.name, set()).add(group.workload)
    return [
        MetricAnswer(
            # Two workloads may measure the same.
            group
            if len(workloads_of[group.name]) == 1
            else replace(group, name=f"{group.name} ({group.workload})"),
            variant,
            result.clock,
            # Of a workload that this version does not know, all metrics count.
            headline=group.workload not in workloads
            or is_headline(workloads, group.workload, group.metric),
            points=tuple(rows),
            whole=verdict_of(result, group, variant),
        )
        for group, rows in compared
    ]


def _is_beyond(point: Comparison, direction: Direction) -> bool:
    """Return whether the whole interval of a point without a verdict is in ``direction``.

    A saving that is not seen outside of the kernel's own figure is none.
    """
    if point.verdict != "inconclusive" or point.ci is None or point.outside == "contradicts":
        return False
    low, high = point.ci
    is_lower = (direction == "better") == (point.better == "lower")
    return high < 1 if is_lower else low > 1
