"""Find how kernels failed, and whether a variant is broken: it fails where base does not.

A fault is a boot that ended in a panic, a hang or out of memory, or whose guest forged a record; an
invariant that did not hold; or a problem that the kernel reported in its log. Faults of one kind
are counted by boots, the unit of replication.

A fault is proof if the boot is repeatable (instruction clock, one CPU) and base passed there with
the same seed, or, with several CPUs, if no order of the CPUs excuses it or if chance is too
unlikely. Otherwise the counts of boots are compared by Fisher's exact test, one-sided: below 1 -
confidence the variant is broken, else it is suspected to be. METHODOLOGY.md has the whole rule.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log
from typing import TypeVar, get_args

from kteardown.model.clock import Clock
from kteardown.model.faults import Fault, FaultKind, FaultPoint, FaultStatus, VoidTrials
from kteardown.model.judged import Comparison, MetricVerdict
from kteardown.model.point import Key, Point, key
from kteardown.model.record import (
    BASE,
    LAYOUT,
    OUTCOMES,
    TWIN,
    Hello,
    ProblemKind,
    TrialEnd,
    TrialStart,
)
from kteardown.model.result import Uncompared
from kteardown.rundir.counting import BootRecords, trials

_OF_A_CRASH = ("panic", "oops", "stall", "corruption")
"""Problems that are a part of how a boot ended, if it did not end ok."""
_IN_ANY_ORDER = ("panic", "oops", "lockdep", "corruption")
"""Faults that no order of the CPUs excuses. The others may depend on a limit of time or memory."""
_LINES = 40

_Judged = TypeVar("_Judged", Comparison, MetricVerdict)
_Place = tuple[str, Key]
"""A workload and a point."""
_Part = _Place | None
"""A place, or the boot as a whole."""


@dataclass(frozen=True)
class _BootFault:
    """A fault in one boot. ``places`` are the points whose trials ran then; empty before the first
    trial."""

    boot: BootRecords
    kind: FaultKind
    signature: str
    message: str
    places: frozenset[_Place]
    excerpt: tuple[str, ...]


def faults(
    boots: Sequence[BootRecords],
    variants: Sequence[str],
    expected: Sequence[Point],
    clock: Clock,
    confidence: float,
) -> tuple[Fault, ...]:
    """Return the faults of ``variants`` and of base: broken, then suspected, then those that base
    shares.

    Forged records come before all: with them no figure of a guest is sure. ``boots`` are those that
    ended; boots of the layout twin count as nothing. ``expected`` are the points of the plan.
    """
    by_fault: dict[tuple[str, FaultKind, str], list[_BootFault]] = {}
    for boot in boots:
        kernel = BASE if boot.start.kernel == TWIN else boot.start.kernel
        if kernel != LAYOUT:
            for fault in _faults_of(boot):
                by_fault.setdefault((kernel, fault.kind, fault.signature), []).append(fault)
    shown = {(point.workload, point.full): point.shown for point in expected}
    ran = {
        variant: [boot for boot in boots if boot.start.kernel == variant] for variant in variants
    }
    ran[BASE] = [boot for boot in boots if boot.start.kernel in (BASE, TWIN)]
    result = []
    for (kernel, kind, sign), of_kernel in by_fault.items():
        if kernel not in ran:
            continue
        of_base = by_fault.get((BASE, kind, sign), [])
        status, p = _status(kernel, of_kernel, of_base, ran, clock, confidence)
        places = dict.fromkeys(
            place for fault in of_kernel for place in sorted(fault.places, key=str)
        )
        result.append(
            Fault(
                kernel=kernel,
                kind=kind,
                status=status,
                message=of_kernel[0].message,
                points=tuple(
                    FaultPoint(workload=place[0], point=shown.get(place, dict(place[1])))
                    for place in places
                ),
                boots=tuple(
                    {_unit(fault.boot): fault.boot.boot for fault in reversed(of_kernel)}.values()
                )[::-1],
                of=_count(ran[kernel]),
                base_boots=_count(fault.boot for fault in of_base),
                base_of=_count(ran[BASE]),
                p=p,
                excerpt=of_kernel[0].excerpt,
            )
        )
    order: tuple[FaultStatus, ...] = ("broken", "suspected", "base too", "base")
    return tuple(
        sorted(result, key=lambda fault: (fault.kind != "forged record", order.index(fault.status)))
    )


def as_broken(judged: Sequence[_Judged], failed: Sequence[Fault]) -> tuple[_Judged, ...]:
    """Return comparisons, or verdicts of metrics, with the verdict ``broken`` where a variant is
    broken.

    A comparison is if the variant is at its point: a fault outside of a trial is at no point, and
    the trials that ended before it keep their verdicts. All metrics of a broken variant are.
    """
    broken = [fault for fault in failed if fault.status == "broken"]
    result = []
    for c in judged:
        of_variant = [fault for fault in broken if fault.kernel == c.variant]
        words = "the variant is broken: {}"
        if isinstance(c, Comparison):
            place = FaultPoint(workload=c.workload, point=c.point)
            words = "{} at this point"
            of_variant = [fault for fault in of_variant if place in fault.points]
        update = (
            {"verdict": "broken", "reason": words.format(of_variant[0].kind)} if of_variant else {}
        )
        result.append(c.model_copy(update=update))
    return tuple(result)


def uncompared(
    comparisons: Sequence[Comparison],
    variants: Sequence[str],
    expected: Sequence[Point],
    voids: Sequence[VoidTrials],
) -> tuple[Uncompared, ...]:
    """Return the points of the plan at which nothing of a variant was compared with base, with the
    reason."""
    have = {(c.variant, c.workload, key(c.point)) for c in comparisons}
    lost = {(void.kernel, void.workload, key(void.point)): void for void in reversed(voids)}
    result = []
    for variant, point in product(variants, expected):
        place = (point.workload, key(point.shown))
        if (variant, *place) not in have:
            void = lost.get((variant, *place)) or lost.get((BASE, *place))
            reason = f"{void.kernel}: {void.detail or void.status}" if void else "no samples"
            result.append(
                Uncompared(
                    variant=variant, workload=point.workload, point=point.shown, reason=reason
                )
            )
    return tuple(result)


def _status(
    kernel: str,
    of_kernel: Sequence[_BootFault],
    of_base: Sequence[_BootFault],
    ran: Mapping[str, Sequence[BootRecords]],
    clock: Clock,
    confidence: float,
) -> tuple[FaultStatus, float | None]:
    """Return the status of one kind of fault of one kernel, and the p-value if a test decided
    it."""
    if kernel == BASE:
        return "base", None
    enough = log(1 - confidence, 0.25)
    if clock != "wall" and _is_proven(of_kernel, of_base, ran[kernel], ran[BASE], enough):
        return "broken", None
    # Imported here: importing scipy takes longer than the start of a run whose kernels are cached.
    from scipy.stats import fisher_exact

    bad, base_bad = (
        _count(boot_fault.boot for boot_fault in side) for side in (of_kernel, of_base)
    )
    table = [[bad, _count(ran[kernel]) - bad], [base_bad, _count(ran[BASE]) - base_bad]]
    p = float(fisher_exact(table, alternative="greater").pvalue)
    if p < 1 - confidence:
        return "broken", p
    return ("base too" if base_bad else "suspected"), p


def _is_proven(
    of_kernel: Sequence[_BootFault],
    of_base: Sequence[_BootFault],
    variant: Sequence[BootRecords],
    base: Sequence[BootRecords],
    enough: float,
) -> bool:
    """Return whether boots on the instruction clock prove that the variant is broken, without a
    test.

    ``enough``: with several CPUs, "all" and "none" are of more boots than this.
    """

    def has_several_cpus(boot: BootRecords) -> bool:
        # A boot that failed early does not say it; base does.
        reported = (record for other in (boot, *_alike(boot, base)) for record in other.records)
        return any(isinstance(record, Hello) and record.cpus_online > 1 for record in reported)

    return any(
        not has_several_cpus(boot_fault.boot)
        or (boot_fault.kind in _IN_ANY_ORDER and part is None)
        or _boots_of_all(part, boot_fault, of_kernel, variant, base) > enough
        for boot_fault in of_kernel
        for part in _clean_in_base(boot_fault, of_base, base)
    )


def _clean_in_base(
    boot_fault: _BootFault, of_base: Sequence[_BootFault], base: Sequence[BootRecords]
) -> set[_Part]:
    """Return where a fault occurred and base, booted with the same seed, passed."""
    # Base must have the fault there with no seed; a report in the log, nowhere. The boot as a whole
    # is such a part if base has the fault nowhere.
    if boot_fault.kind in get_args(ProblemKind) and of_base and boot_fault.kind not in OUTCOMES:
        return set()
    passed = {
        part
        for boot in base
        if boot.start.block == boot_fault.boot.start.block
        for part in _passed(boot, base)
    }
    parts: set[_Part] = {*boot_fault.places} if boot_fault.places else {None}
    clean = (parts & passed) - {place for other in of_base for place in other.places}
    if of_base:
        return clean - {None}
    return clean | {None} if clean else clean


def _boots_of_all(
    part: _Part,
    boot_fault: _BootFault,
    of_kernel: Sequence[_BootFault],
    variant: Sequence[BootRecords],
    base: Sequence[BootRecords],
) -> int:
    """Return in how many boots of each side all of the variant have the fault there and base
    passed."""
    # 0: it is not in all boots of the variant that began this part.
    began = {
        _unit(boot)
        for boot in _alike(boot_fault.boot, variant)
        if part is None
        or any(
            isinstance(r, TrialStart) and (r.workload, key(r.params)) == part for r in boot.records
        )
    }
    bad = {_unit(other.boot) for other in of_kernel if part is None or part in other.places}
    passed = {_unit(boot) for boot in _alike(boot_fault.boot, base) if part in _passed(boot, base)}
    return min(len(began), len(passed)) if began <= bad else 0


def _unit(boot: BootRecords) -> tuple[str, int, Key]:
    """Return what a boot that hung and the boots with the rest of its trials have in common."""
    return boot.start.kernel, boot.start.block, key(boot.start.machine)


def _count(boots: Iterable[BootRecords]) -> int:
    """Return the number of boots; a boot that hung and its further boots count as one."""
    return len({_unit(boot) for boot in boots})


def _alike(boot: BootRecords, boots: Sequence[BootRecords]) -> list[BootRecords]:
    """Return the boots on the same machine of the sweep."""
    return [other for other in boots if other.start.machine == boot.start.machine]


def _passed(boot: BootRecords, base: Sequence[BootRecords]) -> set[_Part]:
    """Return the points whose trials ended, and None if the boot and the rest of it ended ok."""
    ended = {(trial.workload, key(trial.params)) for trial in trials(boot.records) if trial.status}
    ok = all(other.end.outcome == "ok" for other in base if _unit(other) == _unit(boot))
    return {*ended, None} if ok else {*ended}


def _faults_of(boot: BootRecords) -> Iterator[_BootFault]:
    end = boot.end
    places = {
        record.trial: (record.workload, key(record.params))
        for record in boot.records
        if isinstance(record, TrialStart)
    }
    crashed = end.outcome not in ("ok", "infrastructure-error")
    if crashed:
        running = set(places) - {
            record.trial for record in boot.records if isinstance(record, TrialEnd)
        }
        of_crash = next((problem for problem in end.problems if problem.kind in _OF_A_CRASH), None)
        excerpt = end.last_lines if end.outcome == "hang" or of_crash is None else of_crash.excerpt
        kind: FaultKind = "forged record" if end.forged else end.outcome
        yield _BootFault(
            boot,
            kind,
            "",
            end.detail,
            frozenset(places[trial] for trial in running),
            excerpt[:_LINES],
        )
    for problem in end.problems:
        if not (crashed and problem.kind in _OF_A_CRASH):
            where = frozenset(places[trial] for trial in problem.trials if trial in places)
            yield _BootFault(
                boot,
                problem.kind,
                problem.signature or problem.line,
                problem.line,
                where,
                problem.excerpt,
            )
    for trial in trials(boot.records):
        if trial.status in ("void", "failed"):
            name = trial.failed.name if trial.status == "void" and trial.failed else ""
            place = frozenset([(trial.workload, key(trial.params))])
            kind = "invariant" if trial.status == "void" else "failed trial"
            yield _BootFault(boot, kind, f"{trial.workload} {name}", trial.detail, place, ())
