"""Whether a variant executed what it changes: boots it with the plugin, at two sizes of a workload.

"Same" says little about lines that were never executed. What is counted here is apart from what is compared.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from kteardown.errors import GuestError, LabError
from kteardown.kernels import prebuilt
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source import Sources
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.plan import PlannedBoot, PlannedTrial
from kteardown.model.record import BASE, BootEnd, ParamValue, TrialEnd, parse
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.execute import SILENCE_FACTOR, Bootable, guest_plan
from kteardown.vm.agent import build_agent
from kteardown.vm.initramfs import pack
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine
from kteardown.vm.qemu_library import TrialBlocks, plugin_arguments, read_counts

Params = Mapping[str, ParamValue]
_SEED = 1


@dataclass(frozen=True)
class CountedTrial:
    """One trial with what it executed. ``status`` is that of its record, empty if it did not end."""

    workload: str
    params: dict[str, ParamValue]
    status: str
    detail: str
    executed: TrialBlocks

    @property
    def ran(self) -> bool:
        """Whether it has counts of a stretch."""
        # A void trial ran, though at so small a size an invariant of its figures may not hold.
        return self.status in ("ok", "void") and bool(self.executed.stretches)


@dataclass(frozen=True)
class CountedBoot:
    """One boot with the plugin: the kernel's own start, the trials, and every line of the agent."""

    start: TrialBlocks
    trials: tuple[CountedTrial, ...]
    lines: tuple[bytes, ...]
    seconds: float


def programs_of(workload: Workload, points: Sequence[Params]) -> tuple[str, ...]:
    """Return the programs that guests need for ``points`` in addition to the agent."""
    names = {
        program
        for point in points
        for name, value in point.items()
        for program in workload.parameters[name].programs.get(str(value), ())
    }
    return tuple(sorted(names))


def boot_counted(
    kernel: Bootable,
    workload: Workload,
    points: Sequence[Params],
    reporter: Reporter,
    *,
    own: Sequence[Path] = (),
    cpus: int | None = None,
    counted: bool = True,
) -> CountedBoot:
    """Boot ``kernel`` once, with a trial of one repetition at each of ``points``.

    ``own``: the agent's sources of workloads that are not shipped. Without ``counted`` the plugin is left
    out, and nothing is counted. Raises GuestError if the guest did not end well, LabError, BuildError.
    """
    trials = tuple(
        PlannedTrial(index=n, workload=workload.name, params=dict(point), warmup=0, repetitions=1)
        for n, point in enumerate(points)
    )
    planned = PlannedBoot(index=0, block=0, kernel=BASE, seed=_SEED, trials=trials)
    lines: list[bytes] = []
    cache = cache_dir()
    with tempfile.TemporaryDirectory(prefix="kteardown-coverage-") as name:
        folder = Path(name)
        wanted = programs_of(workload, points)
        initramfs = pack(
            folder / "initramfs",
            agent=build_agent(DEFAULT_ARCH, cache=cache, reporter=reporter, own=own),
            plan=guest_plan(planned, [f"/modules/{path.name}" for path in kernel.modules]),
            modules=kernel.modules,
            programs=prebuilt.guest_programs(wanted, DEFAULT_ARCH, Sources(cache, reporter), reporter),
        )
        counts = folder / "counts"
        plugin = (
            plugin_arguments(DEFAULT_ARCH, counts, cache=cache, reporter=reporter, own=own) if counted else ()
        )
        job = BootJob(
            image=kernel.image,
            initramfs=initramfs,
            arch=DEFAULT_ARCH,
            acceleration="icount",
            cpus=cpus or workload.cpus,
            memory_mb=workload.memory_mb,
            seed=planned.seed,
            console=folder / "console",
            silence_s=workload.silence_s * SILENCE_FACTOR["icount"],
            plugin=plugin,
        )
        result = QemuMachine(reporter.command).boot(job, lines.append)
        _check(result, workload, folder)
        sections = read_counts(counts) if counted else [TrialBlocks(0, ())] * (1 + len(trials))
    records = [parse(line) for line in lines]
    ends = {record.trial: record for record in reversed(records) if isinstance(record, TrialEnd)}
    ended = []
    for trial, section in zip(trials, sections[1:], strict=True):
        end = ends.get(trial.index)
        status, detail = (end.status, end.detail) if end else ("", "")
        ended.append(CountedTrial(trial.workload, trial.params, status, detail, section))
    return CountedBoot(sections[0], tuple(ended), tuple(lines), result.duration_s)


def _check(result: BootEnd, workload: Workload, folder: Path) -> None:
    if result.outcome == "ok":
        return
    if "plugin" in result.detail:
        raise LabError(
            f"this host's QEMU does not load the plugin that counts what a kernel executes: {result.detail}",
            hint="use a QEMU that was built with TCG plugins, as those of Debian are.",
        )
    kept = cache_dir() / "logs" / f"coverage-{workload.name}.console"
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / "console", kept)
    raise GuestError(
        f"the guest that counts what {workload.name} executes ended with {result.outcome}: {result.detail}",
        hint=f"read its console, {kept}, and check this host's QEMU with `kteardown doctor`.",
    )


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
    own: Sequence[Path] = (),
) -> Exercised:
    """Boot the variant ``image`` once and return what of ``changed`` the stretch of ``workload`` executed.

    ``params`` is the smaller point; the larger one has twice its size. The first repetition at each point is
    not counted, since it does some things for the first time. Raises GuestError, LabError, InputError.
    """
    sizes = two_sizes(workload, params)
    # A trial at the small size first, for what the kernel does only once.
    kernel = Bootable(image.image, image.modules)
    booted = boot_counted(kernel, workload, [sizes[0], *sizes], reporter, own=own)
    trials = booted.trials[1:]
    for trial in trials:
        if not trial.ran:
            raise GuestError(
                f"{workload.name} did not run in the guest that counts what it executes: {trial.detail}",
                hint="run the workload alone, with `kteardown compare` and the same series, to see more.",
            )
    info = DebugInfo(image.image.parent)
    info.learn(addresses_of(trial.executed for trial in trials))
    return _exercised(workload, trials, changed, info, booted.seconds)


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
        workload.name, tuple(points), frozenset(outside - seen), booted.seconds, tuple(failed)
    )
