"""Boot a kernel with the emulator's coverage plugin, and return what each trial executed.

These boots are apart from those that are compared. They are always on the instruction clock, in the emulator.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import GuestError, LabError
from kteardown.kernels import prebuilt
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
