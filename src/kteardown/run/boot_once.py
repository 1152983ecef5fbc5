"""One boot of one kernel with one workload, for what it executes or what it leaves behind.

Its figures are not compared with anything: it belongs to no run.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from kteardown.door import LARGE, Entry
from kteardown.errors import GuestError, InputError, LabError
from kteardown.inputs.load import own_sources, runs_own_programs
from kteardown.kernels.guest_programs import guest_programs
from kteardown.kernels.source import Sources
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.experiment import MachineSpec
from kteardown.model.plan import PlannedBoot, PlannedTrial, modules_of, script_of
from kteardown.model.record import BASE, BootEnd, Record, TrialEnd
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.boot_job import SILENCE_FACTOR, GuestModules, guest_plan
from kteardown.run.guest_records import ForgedError, GuestRecords, reports_of
from kteardown.run.places import HERE
from kteardown.run.setting import Bootable
from kteardown.script.files import script_archives
from kteardown.vm.agent import Also, build_agent
from kteardown.vm.initramfs import pack
from kteardown.vm.job import Acceleration, BootJob
from kteardown.vm.machine import Machine
from kteardown.vm.qemu_library import TrialBlocks, plugin_arguments, read_counts

Params = Mapping[str, ParamValue]
_SPEC = MachineSpec()
_NOTHING = TrialBlocks(0, ())
_KERNEL_MB = 64
"""What a kernel needs for itself, at most."""
_QUIET = 200_000
"""What the kernel of a quiet guest executes in 100 ms is less; a timer tick takes some
thousands."""
_MOST_RECORDS = 500_000
"""What an agent writes is less; a script can write to the port of the records, too."""


@dataclass(frozen=True)
class CountedTrial:
    """One trial with what it executed. ``status`` is that of its record, empty if it did not
    end."""

    workload: str
    params: dict[str, ParamValue]
    status: str
    detail: str
    executed: TrialBlocks
    later: int | None = None
    """Instructions of the kernel after the stretch; None if not counted, or if the guest is not
    quiet."""
    afterwards: TrialBlocks = _NOTHING
    """What these instructions are, all outside of a stretch; empty if their number is not known."""

    @property
    def ran(self) -> bool:
        """Whether it has counts of a stretch."""
        # A void trial ran, though at so small a size an invariant of its figures may not hold.
        return self.status in ("ok", "void") and bool(self.executed.stretches)


@dataclass(frozen=True)
class CountedBoot:
    """One boot with the plugin: the kernel's own start, the trials, and every record of the
    agent."""

    start: TrialBlocks
    trials: tuple[CountedTrial, ...]
    records: tuple[Record, ...]
    end: BootEnd


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
    folder: str = "",
    spec: MachineSpec = _SPEC,
    acceleration: Acceleration = "icount",
    counted: bool = True,
    seed: int = 1,
    machine: Machine | None = None,
    also: Also = "",
    place: Entry | None = None,
    on_record: Callable[[Record], None] = lambda record: None,
    on_clock: Callable[[float], None] | None = None,
) -> CountedBoot:
    """Boot ``kernel`` once, with a trial of one repetition at each of ``points``.

    ``folder``: of a workload that is not shipped. ``spec``: of the guest. ``counted``: load the
    plugin; ``also`` ("later") as for the agent. ``machine`` boots it, and another thread may stop
    it; None: QEMU. ``place``: the run that keeps the files of a script. ``on_record`` gets each
    record as it comes, ``on_clock`` the guest's clock (``BootJob.on_clock``). Raises GuestError if
    the guest fails, LabError, InputError.
    """
    planned = _planned(workload, points, seed)
    with tempfile.TemporaryDirectory(prefix="kteardown-boot-") as name:
        scratch = Entry(Path(name))
        initramfs = _initramfs(
            scratch, place or scratch, kernel, workload, planned, folder, reporter, also
        )
        memory_mb = spec.memory_mb or workload.memory_mb
        check_size(initramfs.stat().st_size, memory_mb)
        counts = scratch.path / "counts"
        plugin = _plugin(counts, workload, folder, reporter, also) if counted else ()
        job = BootJob(
            image=kernel.image,
            initramfs=initramfs,
            arch=DEFAULT_ARCH,
            acceleration=acceleration,
            cpus=spec.largest("cpus") or workload.cpus,
            memory_mb=memory_mb,
            kernel_args=spec.kernel_args,
            has_own_programs=runs_own_programs({workload.name: workload}),
            possible_cpus=spec.largest("possible_cpus"),
            numa_nodes=spec.largest("numa_nodes"),
            seed=planned.seed,
            console=scratch / "console",
            silence_s=workload.silence_s * SILENCE_FACTOR[acceleration],
            plugin=plugin,
            on_clock=on_clock,
        )
        machine = machine or HERE.machine("", reporter, repeat=False)
        records = _Records(planned, workload, on_record)
        result = _boot(machine, job, records, workload)
        _check(result, workload, scratch)
        start, *sections = read_counts(counts) if counted else [TrialBlocks(0, ())]
    trials = _trials(planned, records.kept, sections, 4 if also else 1)
    return CountedBoot(start, trials, tuple(records.kept), result)


class _Records:
    """The records of a guest, as they come."""

    def __init__(
        self, planned: PlannedBoot, workload: Workload, on_record: Callable[[Record], None]
    ) -> None:
        self._guest = GuestRecords(planned, reports_of({workload.name: workload}))
        self._workload = workload.name
        self._on_record = on_record
        self._began = time.monotonic()
        self.kept: list[Record] = []

    def add(self, line: bytes) -> None:
        """Add a line. Raises ForgedError, and GuestError if there are too many."""
        record = self._guest.next(line)
        if isinstance(record, TrialEnd):
            record = record.model_copy(update={"at_s": time.monotonic() - self._began})
        if len(self.kept) == _MOST_RECORDS:
            raise GuestError(
                f"the guest that ran {self._workload} wrote more than {_MOST_RECORDS:,} records",
                hint="let the script print less: output of more than 20,000 lines is not kept.",
            )
        self.kept.append(record)
        self._on_record(record)


def _boot(machine: Machine, job: BootJob, records: _Records, workload: Workload) -> BootEnd:
    try:
        return machine.boot(job, records.add)
    except ForgedError as error:
        raise GuestError(
            f"the guest that ran {workload.name} forged a record: {error}",
            hint="a script may not write to the ports of virtio (/dev/vport*): the agent uses "
            "them.",
        ) from error


def boot_together(
    boots: Sequence[Callable[[], CountedBoot]], machine: Machine, update: Callable[[int], None]
) -> list[CountedBoot]:
    """Return the boots, of which two run at a time on ``machine``; ``update`` gets how many have
    ended.

    Raises what they raise; that and ^C end the guests.
    """
    with ThreadPoolExecutor(2) as pool:
        booting = [pool.submit(boot) for boot in boots]
        try:
            while (state := wait(booting, timeout=1)).not_done:
                update(len(state.done))
            return [boot.result() for boot in booting]
        except BaseException:
            machine.stop()
            raise


def _plugin(
    counts: Path, workload: Workload, folder: str, reporter: Reporter, also: Also
) -> tuple[str, ...]:
    sources = own_sources({workload.name: workload}, folder)
    return plugin_arguments(
        DEFAULT_ARCH, counts, cache=cache_dir(), reporter=reporter, own=sources, also=also
    )


def _initramfs(
    scratch: Entry,
    place: Entry,
    kernel: Bootable,
    workload: Workload,
    planned: PlannedBoot,
    folder: str,
    reporter: Reporter,
    also: Also,
) -> Path:
    cache = cache_dir()
    sources = own_sources({workload.name: workload}, folder)
    program_names = programs_of(workload, [trial.params for trial in planned.trials])
    modules = GuestModules.of(planned, kernel)
    return pack(
        scratch / "initramfs",
        agent=build_agent(DEFAULT_ARCH, cache=cache, reporter=reporter, own=sources, also=also),
        plan=guest_plan(planned, modules.first),
        modules=modules.files,
        module_index=modules.index,
        programs=guest_programs(program_names, DEFAULT_ARCH, Sources(cache, reporter), reporter),
        archives=script_archives({workload.name: workload}, folder, place, DEFAULT_ARCH, reporter),
    )


def check_size(size: int, memory_mb: int) -> None:
    """Raise InputError if the files of a guest do not fit into its memory."""
    # They are in it twice while it starts, and a tmpfs may use half of what the archive leaves.
    size_mb = -(-size // 2**20)
    if 3 * size_mb + _KERNEL_MB > memory_mb:
        raise InputError(
            f"the files of the guest, {size_mb} MB, do not fit into its memory of {memory_mb} MB",
            hint=(
                f"give the guest more memory, --memory-mb {3 * size_mb + _KERNEL_MB + 256}, or "
                "leave out large programs."
            ),
        )


def _planned(workload: Workload, points: Sequence[Params], seed: int) -> PlannedBoot:
    script = script_of(workload)
    trials = [
        PlannedTrial(
            index=n,
            workload=workload.name,
            params={**point},
            warmup=0,
            repetitions=1,
            script=script,
        )
        for n, point in enumerate(points)
    ]
    return PlannedBoot(
        index=0,
        block=0,
        kernel=BASE,
        seed=seed,
        trials=tuple(trials),
        modules=modules_of([workload]),
    )


def _trials(
    planned: PlannedBoot, records: Sequence[Record], sections: Sequence[TrialBlocks], per_trial: int
) -> tuple[CountedTrial, ...]:
    """Return the trials, each with the counts of ``per_trial`` sections."""
    if len(sections) != per_trial * len(
        planned.trials
    ):  # Nothing was counted, or the setup of one failed.
        sections = [TrialBlocks(0, ())] * per_trial * len(planned.trials)
    ends = {record.trial: record for record in reversed(records) if isinstance(record, TrialEnd)}
    trials = []
    for trial, section, *parts in zip(
        planned.trials, *(sections[n::per_trial] for n in range(per_trial)), strict=True
    ):
        end = ends.get(trial.index)
        status, detail = (end.status, end.detail) if end else ("", "")
        counted = CountedTrial(trial.workload, trial.params, status, detail, section)
        if parts and parts[1].outside < _QUIET:
            counted = replace(counted, later=parts[0].outside, afterwards=parts[0])
        trials.append(counted)
    return tuple(trials)


def _check(result: BootEnd, workload: Workload, folder: Entry) -> None:
    if result.outcome == "ok":
        return
    if "plugin" in result.detail:
        raise LabError(
            "this host's QEMU does not load the plugin that counts what a kernel executes: "
            f"{result.detail}",
            hint="use a QEMU that was built with TCG plugins, as those of Debian are.",
        )
    kept = Entry(cache_dir() / "logs", (f"boot-{workload.name}.console",))
    kept.root.mkdir(parents=True, exist_ok=True)
    kept.replace((folder / "console").content(LARGE), synced=False)
    raise GuestError(
        f"the guest that ran {workload.name} ended with {result.outcome}: {result.detail}",
        hint=f"read its console, {kept}, and check this host's QEMU with `kteardown doctor`.",
    )
