"""The plans of a hunt.

The screen has few sizes and one seed. Sizes go up until the next one is expected to take more than
the budget: the agent leaves such a trial out. What may grow is then confirmed with six sizes, each
twice the one before, and three seeds. Many kinds share boots, each with others for each seed: to
start a guest takes about as long as to measure one kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

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
OWNER_BOOTS = 5
"""On the wall clock boots differ."""
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
                    "unsettled_count",
                    "held_kb",
                ),
                *("objects_count", "probe_ns", "realtime_ns", "irqs_off_ns"),
                *("needless_count", "beyond_budget_count"),
            )
        ),
        invariants=frozenset(("released", "locks_making", "locks_release", "locks_deferred")),
    )
}
"""What ``agent/hunt/hunt.c`` reports."""
_SEED = 1001


@dataclass(frozen=True, order=True)
class Case:
    """One way to release the objects of a kind, for one user: what has a verdict of its own."""

    kind: str
    way: Way
    user: str = "root"


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
    return plan_of_sizes(sizes, [kernel], [0], options, share=True)


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
    # A way that is planned for a kernel and a seed keeps its sizes.
    planned_ways = {
        (boot.kernel, boot.seed, _way(trial)) for boot in planned.boots for trial in boot.trials
    }
    boots = list(planned.boots)
    for boot in plan.boots:
        trials = [
            trial
            for trial in boot.trials
            if (boot.kernel, boot.seed, _way(trial)) not in planned_ways
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


def owners_plan(
    largest: Mapping[Case, int], kernel: str, owners: Sequence[int], options: Options
) -> Plan:
    """Return the plan of releases by one process and by each number of ``owners`` at once, in real
    time."""
    # Each process has the largest number of objects of the case divided by the most owners, so that
    # all fit into memory.
    most = max(owners)
    several = replace(options, owners=(1, *owners), cpus=most)
    sizes = {case: [max(1, size // most)] for case, size in largest.items()}
    return plan_of_sizes(sizes, [kernel], range(OWNER_BOOTS), several)


def plan_of_sizes(
    sizes: Mapping[Case, Sequence[int]],
    kernels: Sequence[str],
    seeds: Sequence[int],
    options: Options,
    watch: str = "cost",
    profile_ns: int = 0,
    share: bool = False,
) -> Plan:
    """Return a plan with a boot for each kind, kernel and seed; with ``share``, for several of many
    kinds.

    ``watch``: what the agent watches (``agent/hunt/hunt.c``). It samples every ``profile_ns``,
    unless that is zero. The first trial of each kind in a boot has a warm-up.
    """
    names = list(dict.fromkeys(case.kind for case in sizes))
    groups = [
        (kinds, kernel, seed)
        for kernel, seed in product(kernels, seeds)
        for kinds in (_groups(names, seed) if share else [[name] for name in names])
    ]
    boots = [
        PlannedBoot(
            index=index,
            block=index,
            kernel=kernel,
            seed=_SEED + 2 * seed,
            modules=tuple(
                dict.fromkeys(m for kind in kinds for m in options.modules.get(kind, ()))
            ),
            trials=_numbered(
                _trial(case, size, owners, options, watch, profile_ns)
                for kind in kinds
                for case, case_sizes in sizes.items()
                if case.kind == kind
                for size in case_sizes
                for owners in options.owners
            ),
        )
        for index, (kinds, kernel, seed) in enumerate(groups)
    ]
    return Plan(
        boots=tuple(boots),
        cpus=options.cpus,
        memory_mb=MEMORY_MB * max(1, options.cpus // 2),
        silence_s=SILENCE_S,
        independent=True,
    )


def _trial(
    case: Case, size: int, owners: int, options: Options, watch: str, profile_ns: int
) -> PlannedTrial:
    params: dict[str, ParamValue] = {
        "kind": case.kind,
        "way": case.way,
        "objects": size,
        "owners": owners,
        "user": case.user,
        "watch": watch if size != LARGEST else "bystanders",
        "budget": options.budget_minstr,
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
