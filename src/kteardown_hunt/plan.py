"""The plans of a hunt.

The screen has few sizes and one seed. Sizes go up until the next one is expected to take more than
the budget: the agent leaves such a trial out. What may grow is then confirmed with six sizes, each
twice the one before, and three seeds. Many kinds share boots, each with others for each seed: to
start a guest takes about as long as to measure one kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record_fields import ParamValue
from kteardown.run.guest_records import Reports
from kteardown_hunt.catalogue import Kind, Way
from kteardown_hunt.growth import spaced

SCREEN_SIZES = (72, 288, 1152, 4608, 18432)
"""A factor of 4 apart, and off powers of two, at which tables double."""
AFTER_THEM = (18, 5, 288, 36)
"""For objects that are expensive, such as network namespaces. The agent leaves them out where it
has measured ``ENOUGH_SIZES`` others. The small ones show how the cost grows: 288 is tried again
with what is known then.
"""
FEW_SIZES = (5, 10, 18, 36, 72, 288, 1152)
"""For kinds of which there can never be as many as ``ENOUGH_SIZES`` of ``SCREEN_SIZES`` need."""
ENOUGH_SIZES = 4
"""So many sizes are needed for a verdict (``hunt.growth``); also in ``agent/hunt/sizes.h``."""
KINDS_PER_BOOT = 5
FEWEST_BOOTS = 9
"""Kinds share boots where there are more than this: of so many, no two share a boot for two of the
seeds."""
CONFIRM_SIZES = 6
"""Fewer, but never fewer than ``ENOUGH_SIZES``, where the screen measured less than 32 times five
objects."""
CONFIRM_SEEDS = 3
LARGEST = 0
"""Means the largest number of objects that an earlier trial of the boot measured within the budget,
and that the trial is for the bystanders.
"""
MEMORY_MB = 2048
SILENCE_S = 60.0
"""The longest time without a record on hardware: a call that releases everything says nothing."""
REPORTS = {
    "hunt": Reports(
        metrics=frozenset(
            (
                *(
                    "elapsed_ns",
                    "idle_ns",
                    "make_ns",
                    "sync_ns",
                    "deferred_ns",
                    "deferred_elapsed_ns",
                    "unsettled_count",
                    "held_kb",
                ),
                *(
                    "waits_count",
                    "switches_count",
                    "calls_count",
                    "flushes_count",
                    "work_items_count",
                ),
                *("objects_count", "probe_ns", "realtime_ns", "irqs_off_ns"),
                *("needless_count", "beyond_budget_count"),
            )
        ),
        invariants=frozenset(("released", "locks_making", "locks_release", "locks_deferred")),
        waits=True,
    )
}
"""What ``agent/hunt/hunt.c`` reports."""
NO_RESIDENTS = "-"
"""The parameter ``stay`` of a trial in which nothing stays."""
_SEED = 1001


@dataclass(frozen=True, order=True)
class Case:
    """One way to release the objects of a kind, for one user: what has a verdict of its own."""

    kind: str
    way: Way
    user: str = "root"


class TrialPoint(NamedTuple):
    """How many objects one trial releases, and what stays (``agent/hunt/residents.h``)."""

    objects: int
    stay: str = NO_RESIDENTS
    watch: str = "cost"
    """What the agent watches (``agent/hunt/hunt.c``)."""


@dataclass(frozen=True)
class Options:
    """What all trials of a hunt have in common."""

    budget_minstr: int
    """Million instructions that one trial may be expected to take."""
    modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By kind, the modules that a distribution's kernel needs for it."""
    user: str = "root"
    owners: tuple[int, ...] = (1,)
    """How many processes release at once, each with objects of its own; every trial is made with
    each."""
    cpus: int = 1


def cases_of(kinds: Iterable[Kind], options: Options) -> list[Case]:
    return [Case(kind.name, way, options.user) for kind in kinds for way in kind.ways]


def screen_plan(kinds: Sequence[Kind], kernel: str, options: Options) -> Plan:
    """Return the plan that measures every way of every kind at few sizes."""
    sizes: dict[Case, list[int]] = {}
    most = {kind.name: kind.most or max(SCREEN_SIZES) for kind in kinds}
    for case in cases_of(kinds, options):
        large, few = (
            [size for size in ladder if size <= most[case.kind]]
            for ladder in (SCREEN_SIZES, FEW_SIZES)
        )
        sizes[case] = [*(few if len(large) < ENOUGH_SIZES else [*large, *AFTER_THEM]), LARGEST]
    points = {case: _points(case_sizes) for case, case_sizes in sizes.items()}
    return plan_of_points(points, [kernel], [0], options, share=True)


def _points(sizes: Iterable[int], watch: str = "cost") -> list[TrialPoint]:
    """Return the points of these sizes; the bystanders are there at the largest one."""
    return [TrialPoint(size, watch="bystanders" if size == LARGEST else watch) for size in sizes]


def shares_boots(plan: Plan) -> bool:
    """Return whether several kinds share a boot of this plan."""
    return any(len(kinds_in(boot)) > 1 for boot in plan.boots)


def kinds_in(boot: PlannedBoot) -> list[str]:
    """Return the names of the kinds of a boot, in order."""
    return list(dict.fromkeys(str(trial.params["kind"]) for trial in boot.trials))


def alone_plan(plan: Plan, parts: Iterable[tuple[int, str]]) -> Plan:
    """Return a plan with a boot for each of ``parts``, which are kinds of boots of ``plan``."""
    boots = []
    for index, (of, kind) in enumerate(parts):
        trials = _numbered(trial for trial in plan.boots[of].trials if trial.params["kind"] == kind)
        boots.append(
            plan.boots[of].model_copy(update={"index": index, "block": index, "trials": trials})
        )
    return plan.model_copy(update={"boots": tuple(boots)})


def with_what_is_missing(planned: Plan, plan: Plan) -> Plan:
    """Return ``planned`` with more boots, for the kernels, seeds and ways that only ``plan``
    has."""
    # A way that is planned for a kernel, a seed and a machine keeps its sizes.
    planned_ways = {
        (boot.kernel, boot.seed, tuple(boot.machine.items()), _way(trial))
        for boot in planned.boots
        for trial in boot.trials
    }
    boots = list(planned.boots)
    for boot in plan.boots:
        trials = [
            trial
            for trial in boot.trials
            if (boot.kernel, boot.seed, tuple(boot.machine.items()), _way(trial))
            not in planned_ways
        ]
        if trials:
            index = {"index": len(boots), "block": len(boots)}
            boots.append(boot.model_copy(update={**index, "trials": _numbered(trials)}))
    return planned.model_copy(update={"boots": tuple(boots)})


def _way(trial: PlannedTrial) -> tuple[int | str, ...]:
    return tuple(trial.params[name] for name in ("kind", "way", "user"))


def _numbered(trials: Iterable[PlannedTrial]) -> tuple[PlannedTrial, ...]:
    """Return the trials of a boot; the first of each kind has a warm-up, which fills the guest's
    caches."""
    warm: set[int | str] = set()
    numbered = []
    for index, trial in enumerate(trials):
        kind = trial.params["kind"]
        numbered.append(trial.model_copy(update={"index": index, "warmup": int(kind not in warm)}))
        warm.add(kind)
    return tuple(numbered)


def confirm_plan(
    largest: Mapping[Case, int], kernels: Sequence[str], seeds: Sequence[int], options: Options
) -> Plan:
    """Return the plan that measures the cases at up to ``CONFIRM_SIZES`` sizes up to their largest
    one.

    ``seeds`` are numbers from 0 on; that of the screen is 0. Cases with too few objects for a
    verdict must not be among ``largest`` (``can_confirm``).
    """
    sizes = {case: list(spaced(most, _doublings(most))) for case, most in largest.items()}
    return plan_of_sizes(sizes, kernels, seeds, options, share=True)


def can_confirm(largest: int) -> bool:
    """Return whether up to ``largest`` objects can have as many sizes as a verdict needs."""
    return _doublings(largest) >= ENOUGH_SIZES


def _doublings(largest: int) -> int:
    """Return how many sizes from 5 objects on, each twice the one before, are at most
    ``largest``."""
    return min(CONFIRM_SIZES, (largest // 5).bit_length())


def memory_of(cpus: int) -> int:
    """Return the memory of a guest in MB."""
    return MEMORY_MB * max(1, cpus // 2)


def plan_of_sizes(
    sizes: Mapping[Case, Sequence[int]],
    kernels: Sequence[str],
    seeds: Sequence[int],
    options: Options,
    watch: str = "cost",
    profile_ns: int = 0,
    share: bool = False,
) -> Plan:
    """Return the plan that measures each case at some sizes, with nothing that stays."""
    points = {case: _points(case_sizes, watch) for case, case_sizes in sizes.items()}
    return plan_of_points(points, kernels, seeds, options, profile_ns, share=share)


def plan_of_points(
    points: Mapping[Case, Sequence[TrialPoint]],
    kernels: Sequence[str],
    seeds: Sequence[int],
    options: Options,
    profile_ns: int = 0,
    *,
    share: bool = False,
    by_residents: bool = False,
) -> Plan:
    """Return a plan with a boot for each kind, kernel and seed; with ``share``, for several of many
    kinds.

    It samples every ``profile_ns``, unless that is zero. The first trial of each kind in a boot has
    a warm-up. ``by_residents``: the cases of a boot take turns, so that all of them are measured at
    their first point, then at their second one. What stays is made again when it changes.
    """
    names = list(dict.fromkeys(case.kind for case in points))
    groups = [
        (kinds, kernel, seed)
        for kernel, seed in product(kernels, seeds)
        for kinds in (_groups(names, seed) if share else [[name] for name in names])
    ]
    boots = []
    for index, (kinds, kernel, seed) in enumerate(groups):
        modules = (module for kind in kinds for module in options.modules.get(kind, ()))
        chosen = [
            (number, case, point)
            for kind in kinds
            for case, case_points in points.items()
            if case.kind == kind
            for number, point in enumerate(case_points)
        ]
        if by_residents:
            chosen.sort(key=lambda choice: choice[0])
        trials = (
            _trial(case, point, owners, options, profile_ns)
            for _, case, point in chosen
            for owners in options.owners
        )
        boots.append(
            PlannedBoot(
                index=index,
                block=index,
                kernel=kernel,
                seed=_SEED + 2 * seed,
                modules=tuple(dict.fromkeys(modules)),
                trials=_numbered(trials),
            )
        )
    return Plan(
        boots=tuple(boots),
        cpus=options.cpus,
        memory_mb=memory_of(options.cpus),
        silence_s=SILENCE_S,
        independent=True,
    )


def _trial(
    case: Case, point: TrialPoint, owners: int, options: Options, profile_ns: int
) -> PlannedTrial:
    params: dict[str, ParamValue] = {
        "kind": case.kind,
        "way": case.way,
        "objects": point.objects,
        "owners": owners,
        "user": case.user,
        "watch": point.watch,
        "budget": options.budget_minstr,
        "stay": point.stay,
    }
    return PlannedTrial(
        index=0, workload="hunt", params=params, warmup=0, repetitions=1, profile_ns=profile_ns
    )


def _groups(names: Sequence[str], seed: int) -> list[list[str]]:
    """Return ``FEWEST_BOOTS`` groups or more, of up to ``KINDS_PER_BOOT`` names from different
    parts."""
    # Each seed has other groups, and begins them with another member, so that what a kind leaves to
    # the next one shows as a difference between seeds.
    boots = min(len(names), max(FEWEST_BOOTS, -(-len(names) // KINDS_PER_BOOT)))
    rows = [names[first : first + boots] for first in range(0, len(names), boots)]
    groups = []
    for first in range(boots):
        columns = ((first + number * seed) % boots for number in range(len(rows)))
        group = [
            row[column] for row, column in zip(rows, columns, strict=True) if column < len(row)
        ]
        turn = seed % len(group)
        groups.append([*group[turn:], *group[:turn]])
    return groups
