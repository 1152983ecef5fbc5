"""What a workload executes of a change, and what that costs: boots base and variant with the
plugin.

"Same" says little about lines that were never executed. What is counted here is apart from what is
compared.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean, median, stdev

from scipy import special

from kteardown.coverage.attribute import (
    Counts,
    DebugInfo,
    Executed,
    FunctionId,
    attribute,
    counts_of,
)
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.events import Counted, compare_events, happened
from kteardown.coverage.maps import (
    CoverageMap,
    PointCoverage,
    WorkloadCoverage,
    map_of,
    read_map,
    two_sizes,
    words,
    write_map,
)
from kteardown.errors import GuestError, InputError, KteardownError
from kteardown.kernels.request import KernelImage
from kteardown.model.events import EventFigure
from kteardown.model.experiment import Experiment, MachineSpec
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Workload
from kteardown.progress import Reporter
from kteardown.run.boot_once import CountedBoot, CountedTrial, Params, boot_counted, boot_together
from kteardown.run.places import HERE
from kteardown.run.setting import Bootable
from kteardown.script.describe import Described
from kteardown.vm.machine import Machine

_SPEC = MachineSpec()
_DOUBLINGS = math.log2(5)
"""From the larger of the sizes at which executions are counted to the default one."""


@dataclass(frozen=True)
class ExercisedFunction:
    """A changed function, and what the stretch executed of it at the larger size."""

    function: ChangedFunction
    executions: int
    """Of that changed statement of it which was executed most often."""
    executions_per_object: float | None
    """How many more for one object more; None if the workload has no growth law."""
    entered: int = 0
    """How often the function itself was called."""


@dataclass(frozen=True)
class PathCost:
    """What the changed functions cost, with all that they call: instructions, one value for each
    seed."""

    objects: str
    """The parameter of which one more costs this; empty if it is the cost of a whole stretch."""
    base: tuple[float, ...]
    changed: tuple[float, ...]
    share: float = 0.0
    """Of all that the kernel executes in a stretch, of base or the variant, the larger.

    It is extrapolated to the default size: a quadratic cost is a small part of a small stretch.
    """
    inside: tuple[float, ...] = ()
    """How many more instructions the whole kernel executes in the stretch with the change, by
    seed."""
    later: tuple[float, ...] = ()
    """How many more after the stretch, until the guest is quiet; empty if a guest does not become
    quiet."""


@dataclass(frozen=True)
class Exercised:
    """What a workload executed of a change in its measured stretch."""

    workload: str
    objects: str
    """The parameter that gives the size; empty if the workload has no growth law."""
    functions: tuple[ExercisedFunction, ...]
    """The changed functions that the variant has, the most executed first."""
    share: float
    """Of these functions, with what is inlined into them, in all that the kernel executes in the
    stretch.

    A change of the code of these functions can save at most this; one that calls other functions
    less often can save more, since those are not counted.
    """
    cost: PathCost | None = None
    events: tuple[EventFigure, ...] = ()
    """What happens to other tasks and CPUs, on base and on the variant."""

    @property
    def exercised(self) -> bool:
        """Whether any changed line was executed: if not, a "same" is "not exercised"."""
        return any(function.executions for function in self.functions)


def executed(
    kernels: Sequence[KernelImage],
    workload: Workload,
    params: Mapping[str, ParamValue],
    changed: Sequence[ChangedFunction],
    reporter: Reporter,
    *,
    folder: str = "",
    spec: MachineSpec = _SPEC,
    seeds: int = 1,
    machine: Machine | None = None,
) -> Exercised:
    """Return what of ``changed`` the stretch of ``workload`` executes, and what that costs.

    ``kernels`` are base and the variant; each is booted once with each of ``seeds`` seeds, in a
    guest as ``spec`` says: what measures on one CPU may never end on two that take turns.
    ``params`` is the smaller point; the larger one has twice its size. The first repetition at each
    point is not counted, since it does some things for the first time. Raises GuestError, LabError,
    InputError.
    """
    sizes = two_sizes(workload, params)
    # A trial at the small size first, for what the kernel does only once.
    machine = machine or HERE.machine("", reporter, repeat=True)
    booted = _booted(kernels, workload, [sizes[0], *sizes], reporter, folder, spec, seeds, machine)
    functions = {function.id for function in changed if function.kind == "function"}
    costs: list[list[float]] = []
    whole: list[list[float]] = []
    events: list[list[Counted]] = []
    events_later: list[list[Counted]] = []
    share = 0.0
    for kernel, boots in zip(kernels, booted, strict=True):
        info = DebugInfo(kernel.image.parent)
        sides = [
            [counts_of(trials[at].executed, inside=True) for trials in boots] for at in (0, -1)
        ]
        info.learn(set().union(*(counts for side in sides for counts in side)))
        costs += ([info.with_callees(counts, functions) for counts in side] for side in sides)
        whole += ([float(sum(counts.values())) for counts in side] for side in sides)
        events += ([happened(counts, info) for counts in side] for side in sides)
        events_later += (
            [happened(counts_of(trials[at].afterwards, inside=False), info) for trials in boots]
            for at in (0, -1)
        )
        shares = [
            [cost / (every or 1) for cost, every in zip(*side, strict=True)]
            for side in zip(costs[-2:], whole[-2:], strict=True)
        ]
        share = max(share, _at_default_size(*shares))
    later = [[trials[at].later for trials in boots] for boots in booted for at in (0, -1)]
    cost = _cost(workload, sizes, costs)
    objects = _objects(workload, sizes) if cost.objects else 0
    cost = replace(cost, share=share, inside=_more(whole, objects), later=_more(later, objects))
    objects = _objects(workload, sizes)
    figures = compare_events(events, workload.law, objects)
    figures += compare_events(events_later, workload.law, objects, afterwards=True)
    exercised = _exercised(workload, booted[-1][0], changed, info)
    return replace(exercised, cost=cost, events=tuple(figures))


def _booted(
    kernels: Sequence[KernelImage],
    workload: Workload,
    points: Sequence[Mapping[str, ParamValue]],
    reporter: Reporter,
    folder: str,
    spec: MachineSpec,
    seeds: int,
    machine: Machine,
) -> list[list[tuple[CountedTrial, ...]]]:
    """Return for each kernel and each seed the trials, without the first. ^C ends the guests."""

    def boot(kernel: KernelImage, seed: int) -> CountedBoot:
        try:
            return boot_counted(
                Bootable.of(kernel),
                workload,
                points,
                reporter,
                seed=seed,
                folder=folder,
                spec=spec,
                machine=machine,
                also="later",
            )
        except GuestError as error:
            raise GuestError(f"{error.message} (on {kernel.name})", hint=error.hint) from error

    boots = [partial(boot, kernel, seed) for kernel in kernels for seed in range(1, seeds + 1)]
    with reporter.task(
        f"Counting what {workload.name} executes of the change", total=len(boots)
    ) as task:
        trials = [booted.trials[1:] for booted in boot_together(boots, machine, task.update)]
    for trial in (trial for of_boot in trials for trial in of_boot if not trial.ran):
        raise GuestError(
            f"{workload.name} did not run in the guest that counts what it executes: "
            f"{trial.detail}",
            hint=(
                "run the workload alone, with `kteardown compare` and the same series, to see more."
            ),
        )
    return [trials[start : start + seeds] for start in range(0, len(trials), seeds)]


def _at_default_size(small: Sequence[float], large: Sequence[float]) -> float:
    """Return a share of a stretch at the default size, from those of each seed at two smaller
    sizes.

    It goes on growing as far as its growth is shown at 95%: the lower limit of Student's t of the
    logarithms.
    """
    grown = [
        math.log(more / less) if more and less else 0.0
        for less, more in zip(small, large, strict=True)
    ]
    n = len(grown)
    error = stdev(grown) / math.sqrt(n) * special.stdtrit(n - 1, 0.95) if n > 1 else 0.0
    return min(median(large) * math.exp(max(mean(grown) - error, 0.0) * _DOUBLINGS), 1.0)


def _cost(
    workload: Workload, sizes: Sequence[Mapping[str, ParamValue]], costs: Sequence[Sequence[float]]
) -> PathCost:
    """``costs``: of base at the smaller size and at the larger one, then of the variant, by
    seed."""
    objects = _objects(workload, sizes)
    if objects:
        per_object = [
            tuple((more - less) / objects for less, more in zip(*pair, strict=True))
            for pair in (costs[:2], costs[2:])
        ]
        # Less is what did not grow with the number of objects.
        if any(abs(value) >= 1 for side in per_object for value in side):
            return PathCost(workload.law, per_object[0], per_object[1])
    return PathCost("", tuple(costs[1]), tuple(costs[3]))


def _more(counts: Sequence[Sequence[float | None]], objects: int) -> tuple[float, ...]:
    """Return how many more the variant has than base, by seed, for one of ``objects``; 0: at the
    larger size.

    ``counts`` as in ``_cost``. Empty if one is not known.
    """
    differences = []
    for small, large, small_changed, large_changed in zip(*counts, strict=True):
        if None in (small, large, small_changed, large_changed):
            return ()
        base, changed = (
            (large - small, large_changed - small_changed) if objects else (large, large_changed)
        )
        differences.append((changed - base) / (objects or 1))
    return tuple(differences)


def _objects(workload: Workload, points: Sequence[Mapping[str, ParamValue]]) -> int:
    """Return how many more objects the larger size has; 0 if there is one size."""
    small, large = (point.get(workload.law) for point in (points[0], points[-1]))
    return large - small if isinstance(small, int) and isinstance(large, int) else 0


def _exercised(
    workload: Workload,
    trials: Sequence[CountedTrial],
    changed: Sequence[ChangedFunction],
    info: DebugInfo,
) -> Exercised:
    present = [
        function for function in changed if function.kind == "function" and function.exists_after
    ]
    wanted = {function.id for function in present}
    counts = [counts_of(trial.executed, inside=True) for trial in trials]
    sides = [info.count(count) for count in counts]
    instructions = info.instructions_in(counts[-1], wanted)
    objects = _objects(workload, [trial.params for trial in trials])
    functions = [_function(function, sides, objects) for function in present]
    functions.sort(key=lambda exercised: (-exercised.executions, str(exercised.function)))
    return Exercised(
        workload.name,
        workload.law if objects else "",
        tuple(functions),
        instructions / sides[-1].instructions if sides[-1].instructions else 0.0,
    )


def _function(
    changed: ChangedFunction, sides: Sequence[Executed], objects: int
) -> ExercisedFunction:
    before, after = (_executions(changed, side) for side in (sides[0], sides[-1]))
    most = max(range(len(after)), key=after.__getitem__)
    per_object = (after[most] - before[most]) / objects if objects else None
    entered = sides[-1].functions.get(changed.id, Counts()).calls
    return ExercisedFunction(changed, after[most], per_object, entered)


def _executions(changed: ChangedFunction, side: Executed) -> list[int]:
    """Return how often each changed statement was executed: the most often executed of its lines.

    Where lines were only removed, what is left of the function counts as a whole.
    """
    if not changed.statements_after:
        return [side.functions.get(changed.id, Counts()).calls]
    return [
        max(side.lines.get((changed.file, line), 0) for line in range(first, last + 1))
        for first, last in changed.statements_after
    ]


def coverage_of(workload: Workload, booted: CountedBoot, info: DebugInfo) -> WorkloadCoverage:
    """Return the functions of what was counted in a boot of ``workload``."""
    blocks = (block for trial in booted.trials for block in trial.executed.blocks)
    info.learn({address for block in blocks for address in block.addresses()})
    points: list[PointCoverage] = []
    failed: list[str] = []
    outside: set[FunctionId] = set()
    for trial in booted.trials:
        inside, elsewhere = attribute(trial.executed, info)
        outside |= elsewhere.functions.keys()
        if trial.ran:
            points.append(PointCoverage(trial.params, inside.instructions, inside.functions))
        else:
            outside |= inside.functions.keys()
            why = trial.detail or ("no stretch was seen" if trial.status else "it did not end")
            failed.append(f"{words(trial.params, workload)}: {why}")
    measured = {function for point in points for function in point.inside}
    return WorkloadCoverage(
        workload.name,
        tuple(points),
        frozenset(outside - measured),
        booted.end.duration_s,
        tuple(failed),
    )


def count_script(
    kernel: KernelImage,
    described: Described,
    experiment: Experiment,
    params: Params,
    reporter: Reporter,
) -> None:
    """Count what the script of ``experiment`` executes on ``kernel`` at one point, unless that was
    done.

    What goes wrong is only reported: no figure needs the map.
    """
    workload = described.workload
    guest = Bootable.of(kernel)
    try:
        path = map_of(described)
        with suppress(InputError):
            read_map(path)
            return
        info = DebugInfo(kernel.image.parent)
        with reporter.task(f"Counting once which functions {workload.name} executes"):
            boot = boot_counted(
                guest,
                workload,
                [params],
                reporter,
                folder=experiment.folder,
                spec=experiment.machine,
            )
            counted = coverage_of(workload, boot, info)
        if counted.points:
            write_map(path, CoverageMap(kernel.source, {workload.name: counted}))
    except KteardownError as error:
        reporter.note(
            f"kteardown could not count which functions {workload.name} executes: {error.message}"
        )
