"""Whether a variant executed what it changes: boots it with the plugin, at two sizes of a workload.

"Same" says little about lines that were never executed. What is counted here is apart from what is compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.coverage.attribute import (
    Counts,
    DebugInfo,
    Executed,
    FunctionId,
    addresses_of,
    attribute,
    counts_of,
)
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import PointCoverage, WorkloadCoverage
from kteardown.coverage.points import two_sizes, words
from kteardown.errors import GuestError
from kteardown.kernels.request import KernelImage
from kteardown.model.record import ParamValue
from kteardown.model.workload import Workload
from kteardown.progress import Reporter
from kteardown.run.boot_once import CountedBoot, CountedTrial, boot_counted
from kteardown.run.execute import Bootable


@dataclass(frozen=True)
class ExercisedFunction:
    """A changed function, and what the stretch executed of it at the larger size."""

    function: ChangedFunction
    calls: int
    executions: int
    """Of that changed statement of it which was executed most often."""
    executions_per_object: float | None
    """How many more for one object more; None if the workload has no growth law."""
    statements: int
    """How many of its changed statements were executed."""
    outside: int = 0
    """As ``executions``, but outside of the stretch."""


@dataclass(frozen=True)
class Exercised:
    """What a workload executed of a change in its measured stretch."""

    workload: str
    params: dict[str, ParamValue]
    """Of the larger size."""
    objects: str
    """The parameter that gives the size; empty if the workload has no growth law."""
    functions: tuple[ExercisedFunction, ...]
    """The changed functions that the variant has, the most executed first."""
    instructions: int
    """In changed functions, with what is inlined into them, at the larger size."""
    share: float
    """``instructions`` as a share of all that the kernel executes in the stretch.

    A change of the code of these functions can save at most this; one that calls other functions less often
    can save more, since those are not counted.
    """
    seconds: float

    @property
    def exercised(self) -> bool:
        """Whether any changed line was executed: if not, a "same" is "not exercised"."""
        return any(one.executions for one in self.functions)

    @property
    def called(self) -> bool:
        """Whether any changed function was executed, with or without its changed lines."""
        return self.instructions > 0


def executed(
    image: KernelImage,
    workload: Workload,
    params: Mapping[str, ParamValue],
    changed: Sequence[ChangedFunction],
    reporter: Reporter,
    *,
    folder: str = "",
) -> Exercised:
    """Boot the variant ``image`` once and return what of ``changed`` the stretch of ``workload`` executed.

    ``params`` is the smaller point; the larger one has twice its size. The first repetition at each point is
    not counted, since it does some things for the first time. Raises GuestError, LabError, InputError.
    """
    sizes = two_sizes(workload, params)
    # A trial at the small size first, for what the kernel does only once.
    kernel = Bootable(image.image, image.modules)
    booted = boot_counted(kernel, workload, [sizes[0], *sizes], reporter, folder=folder)
    trials = booted.trials[1:]
    for trial in trials:
        if not trial.ran:
            raise GuestError(
                f"{workload.name} did not run in the guest that counts what it executes: {trial.detail}",
                hint="run the workload alone, with `kteardown compare` and the same series, to see more.",
            )
    info = DebugInfo(image.image.parent)
    info.learn(addresses_of(trial.executed for trial in trials))
    return _exercised(workload, trials, changed, info, booted.end.duration_s)


def _exercised(
    workload: Workload,
    trials: Sequence[CountedTrial],
    changed: Sequence[ChangedFunction],
    info: DebugInfo,
    seconds: float,
) -> Exercised:
    here = [one for one in changed if one.kind == "function" and one.exists_after]
    wanted = {one.id for one in here}
    counts = [counts_of(trial.executed, inside=True) for trial in trials]
    sides = [info.count(count) for count in counts]
    own = info.instructions_in(counts[-1], wanted)
    sizes = [trial.params.get(workload.law) for trial in trials]
    small, large = sizes[0], sizes[-1]
    # 0 if there is one size.
    objects = large - small if isinstance(small, int) and isinstance(large, int) else 0
    outside = info.count(counts_of(trials[-1].executed, inside=False))
    functions = [_function(one, sides, outside, objects) for one in here]
    functions.sort(key=lambda one: (-one.executions, -one.calls, str(one.function)))
    return Exercised(
        workload.name,
        trials[-1].params,
        workload.law if objects else "",
        tuple(functions),
        own,
        own / sides[-1].instructions if sides[-1].instructions else 0.0,
        seconds,
    )


def _function(
    changed: ChangedFunction, sides: Sequence[Executed], outside: Executed, objects: int
) -> ExercisedFunction:
    before, after, elsewhere = (_executions(changed, side) for side in (sides[0], sides[-1], outside))
    most = max(range(len(after)), key=after.__getitem__)
    per_object = (after[most] - before[most]) / objects if objects else None
    calls, statements = _calls(changed, sides[-1]), sum(1 for count in after if count)
    return ExercisedFunction(changed, calls, after[most], per_object, statements, max(elsewhere))


def _calls(changed: ChangedFunction, side: Executed) -> int:
    return side.functions.get(changed.id, Counts()).calls


def _executions(changed: ChangedFunction, side: Executed) -> list[int]:
    """Return how often each changed statement was executed: the most often executed of its lines.

    Where lines were only removed, what is left of the function counts as a whole.
    """
    if not changed.statements_after:
        return [_calls(changed, side)]
    return [
        max(side.lines.get((changed.file, line), 0) for line in range(first, last + 1))
        for first, last in changed.statements_after
    ]


def coverage_of(workload: Workload, booted: CountedBoot, info: DebugInfo) -> WorkloadCoverage:
    """Return the functions of what was counted in a boot of ``workload``."""
    info.learn(addresses_of(trial.executed for trial in booted.trials))
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
    seen = {function for point in points for function in point.inside}
    return WorkloadCoverage(
        workload.name, tuple(points), frozenset(outside - seen), booted.end.duration_s, tuple(failed)
    )
