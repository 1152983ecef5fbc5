"""The model of ``result.json``. Field names are fixed by schema 1; fields may be added."""

from collections.abc import Mapping
from typing import Any, Protocol

from kteardown.model.clock import Clock
from kteardown.model.events import EventCounts
from kteardown.model.faults import Fault, VoidTrials
from kteardown.model.judged import Comparison, MetricVerdict, Valued
from kteardown.model.kernel_facts import KernelFacts, Unavailable, not_built
from kteardown.model.laws import Distribution, Law
from kteardown.model.levels import Level
from kteardown.model.record import NOT_VARIANTS, Outcome
from kteardown.model.record_fields import ParamValue
from kteardown.model.sharing import SharingProfile
from kteardown.model.stack_profile import Profile
from kteardown.model.timing import Timing
from kteardown.model.waits import WaitProfile
from kteardown.model.workload import Better, Document, FiniteModel


class Part(FiniteModel):
    """The effect of one patch on one metric, as a change and as a share of the effect of the whole
    series.

    ``ratio`` is with the patch / without it, ``ci`` its interval. ``share`` is the logarithm of
    ``ratio`` divided by that of the whole: 0.6 is sixty percent of the change, and a negative share
    has the opposite direction. None if it cannot be estimated; ``reason`` then says why. ``exact``:
    all values that it is computed from are exact.
    """

    ratio: float | None = None
    ci: tuple[float, float] | None = None
    share: float | None = None
    share_ci: tuple[float, float] | None = None
    exact: bool = False
    reason: str = ""


class PatchParts(FiniteModel):
    """One patch, counted from 1: ``step`` adds it to those before it, ``leave_out`` removes it
    alone."""

    patch: int
    subject: str
    step: Part
    leave_out: Part


class Ablation(Valued):
    """The share of each patch in the effect of a series on a metric at a point.

    ``ratio``, ``ci`` and ``exact`` are those of the whole compared with base; the shares of the
    steps add up to 1.
    """

    variant: str
    series: str
    better: Better
    point: dict[str, ParamValue]
    ratio: float | None
    ci: tuple[float, float] | None
    confidence: float
    exact: bool = False
    patches: tuple[PatchParts, ...]
    unavailable: tuple[Unavailable, ...] = ()


class Outlier(FiniteModel):
    """A boot whose value is far from those of the other boots of its kernel. It is not removed.

    ``value`` is that of the boot (of ``statistic``), ``median`` that over all boots. ``ranges`` is
    the distance from the nearer quartile in interquartile ranges of the logarithms, None if the
    quartiles are equal.
    """

    kernel: str
    workload: str
    metric: str
    statistic: str
    point: dict[str, ParamValue]
    block: int
    value: float
    median: float
    ranges: float | None


class Stopping(FiniteModel):
    """The status of a run with a stopping rule at its last look.

    ``rule`` is as given: ``verdict`` or ``ci=2%``. ``looks`` are the numbers of blocks after which
    it may stop; the last one is the maximum. ``stopped_at`` is the look of this result.
    ``confidence`` is the level of tests and intervals there, ``alpha`` the error that all looks so
    far have spent. ``spent``: the time budget is used up. ``done``: nothing is left to measure;
    ``reason`` says why in a few words.
    """

    rule: str
    looks: tuple[int, ...]
    stopped_at: int
    confidence: float
    alpha: float
    spent: bool = False
    done: bool
    reason: str


class ChangeCost(FiniteModel):
    """The instructions of the changed functions, with all that they call, in one stretch at
    ``point``.

    They were counted from outside of both kernels, in a boot of each. Without counts, ``reason``
    says why.
    """

    variant: str
    workload: str
    point: dict[str, ParamValue]
    base: float | None = None
    changed: float | None = None
    reason: str = ""


class Uncompared(FiniteModel):
    """A point of the plan at which nothing of a variant was compared with base, and why."""

    variant: str
    workload: str
    point: dict[str, ParamValue]
    reason: str


class MetricFacts(FiniteModel):
    """A metric of the comparisons in words.

    ``unit`` is what the clock of the run gives: instructions, not the ns of the workload's file.
    The values are in it as they are.
    """

    workload: str
    metric: str
    name: str
    help: str
    unit: str
    better: Better
    headline: bool


class ByClock(Protocol):
    """What was measured: a run on one clock, or on both."""

    @property
    def results(self) -> "Mapping[Clock, Result]":
        """Return the result of each clock."""


class Result(Document, FiniteModel):
    experiment: str
    question: str
    clock: Clock
    command: str
    machine: dict[str, Any]
    kernels: dict[str, KernelFacts]
    comparisons: tuple[Comparison, ...]
    laws: tuple[Law, ...]
    boots: dict[Outcome, int]
    voids: tuple[VoidTrials, ...] = ()
    notes: tuple[str, ...] = ()
    stopping: Stopping | None = None
    """None if the whole design is measured."""
    ablations: tuple[Ablation, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    profiles: tuple[Profile, ...] = ()
    waits: tuple[WaitProfile, ...] = ()
    """What scripts waited for, in the boots of the profile."""
    sharing: tuple[SharingProfile, ...] = ()
    """Which functions and data cause line moves; empty on other clocks than that of contention."""
    events: tuple[EventCounts, ...] = ()
    """What each variant does to waits and broadcasts; empty without a profile."""
    ended_boots: int | None = None
    """How many boots had ended, those of the profile included; None in results that did not say."""
    boots_left: int = 0
    """How many boots of a design without a stopping rule had not ended: its run can be resumed."""
    distributions: tuple[Distribution, ...] = ()
    levels: tuple[Level, ...] = ()
    """The figures of base, if it is compared with nothing."""
    metric_verdicts: tuple[MetricVerdict, ...] = ()
    """In the order of the comparisons; empty in results that did not have them."""
    faults: tuple[Fault, ...] = ()
    uncompared: tuple[Uncompared, ...] = ()
    timing: Timing | None = None
    """How its time was made; None in results that did not record it."""
    sentence: str = ""
    """The result in one sentence; empty in results that did not record it, where a report makes
    it."""
    metrics: tuple[MetricFacts, ...] = ()
    """Every metric that is compared, in words; as ``sentence`` in results that did not record
    it."""

    @property
    def results(self) -> "Mapping[Clock, Result]":
        """Return itself, as the result of its clock."""
        return {self.clock: self}

    @property
    def asked_for(self) -> tuple[Comparison, ...]:
        """Return the comparisons of requested variants, without the parts of an ablation."""
        return tuple(c for c in self.comparisons if self.is_asked_for(c.variant))

    def broken(self, variant: str) -> tuple[Fault, ...]:
        """Return the faults by which this variant is broken; empty if it is not."""
        return tuple(f for f in self.faults if f.kernel == variant and f.status == "broken")

    @property
    def requested(self) -> tuple[str, ...]:
        """Return the requested variants, in the order of the report, also those that were never
        compared."""
        return tuple(
            name for name in self.kernels if name not in NOT_VARIANTS and self.is_asked_for(name)
        )

    @property
    def not_built(self) -> tuple[str, ...]:
        """Return the requested variants of which nothing is in their kernel: they have no
        verdict."""
        return not_built(self.kernels)

    @property
    def unfinished(self) -> bool:
        """Return whether boots of the plan are left, or the stopping rule has not decided yet."""
        return self.boots_left > 0 or (self.stopping is not None and not self.stopping.done)

    def is_asked_for(self, kernel: str) -> bool:
        """Return whether the kernel was requested, and not built only for an ablation."""
        return kernel not in self.kernels or not self.kernels[kernel].for_ablation
