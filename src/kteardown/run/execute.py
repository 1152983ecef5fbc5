"""Execute a plan: boot its kernels in order, and write every record as it arrives."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from kteardown.errors import LabError
from kteardown.kernels.source_lines import SourceLines
from kteardown.model.arch import Arch
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import (
    AgentError,
    BootEnd,
    BootStart,
    ParamValue,
    Record,
    TrialEnd,
    TrialStart,
    parse,
)
from kteardown.progress import Reporter
from kteardown.run.make_plan import guest_plan
from kteardown.rundir.completeness import hopeless
from kteardown.vm.host import load_average
from kteardown.vm.initramfs import pack
from kteardown.vm.job import Acceleration, BootJob, BootResult, Machine

# How much longer than on hardware a guest may be silent under each acceleration before its outcome is
# `hang`. Workloads write a record every few seconds even with mttcg; the factor is for a loaded host, which
# does not matter to icount: its limit is on the guest's own clock.
SILENCE_FACTOR: Mapping[Acceleration, float] = {"kvm": 1.0, "mttcg": 5.0, "icount": 0.5}
_ATTEMPTS = 3


@dataclass(frozen=True)
class Bootable:
    """The files of a kernel of the plan."""

    image: Path
    modules: tuple[Path, ...] = ()
    optional_modules: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """By name, what to load for a module that a boot of the plan needs."""

    def modules_of(self, boot: PlannedBoot) -> tuple[Path, ...]:
        """Return the modules that ``boot`` loads, in order."""
        more = (path for name in boot.modules for path in self.optional_modules.get(name, ()))
        return tuple(dict.fromkeys((*self.modules, *more)))

    def source_lines(self, arch: Arch) -> SourceLines:
        """Return the source lines of the kernel, whose line table is beside the image."""
        return SourceLines(self.image.parent, arch)


@dataclass(frozen=True)
class Lab:
    """Where and how the boots run."""

    machine: Machine
    agent: Path
    arch: Arch
    acceleration: Acceleration
    agent_hash: str = ""
    """SHA-256 of the agent, on which a result depends."""
    jobs: int = 1
    """Guests that run at the same time; more than one only if they cannot affect each other's figures."""
    kernel_args: tuple[str, ...] = ()
    programs: tuple[Path, ...] = ()
    """The programs that the guests have in addition to the agent."""


class Log(Protocol):
    """The part of a run directory that boots write to. Safe to call from several threads."""

    def append(self, record: Record, *, boot: int, attempt: int) -> None:
        """Write one record with its boot and attempt, and sync it to the disk."""

    def console_path(self, boot: int, attempt: int) -> Path:
        """Return the file of the console of this attempt."""

    def finished(self) -> Mapping[int, BootEnd]:
        """Return the boots that need no further attempt, with their last end record."""

    def completed(self, boot: int) -> frozenset[int]:
        """Return the indices of the trials of this boot that need not be run again."""

    def next_attempt(self, boot: int) -> int:
        """Return the number of the next attempt at this boot, from 0."""


class _Shown:
    """The displayed progress: the completed trials, weighted by expected time, and each guest's trial."""

    def __init__(self, update: Callable[[float, str], None], weight: Callable[[PlannedTrial], float]) -> None:
        self._update = update
        self._weight = weight
        self._done = 0.0
        self._now: dict[int, str] = {}
        self._lock = threading.Lock()

    def boot(self, boot: PlannedBoot) -> None:
        """Show that ``boot`` is being started."""
        self._set(boot, "starting")

    def trial(self, boot: PlannedBoot, index: int) -> None:
        """Show that trial ``index`` of ``boot`` began."""
        if index < len(boot.trials):
            trial = boot.trials[index]
            words = _words({**boot.machine, **trial.params})
            self._set(boot, f"{trial.workload} {words}, trial {index + 1} of {len(boot.trials)}")

    def done(self, boot: PlannedBoot, index: int) -> None:
        """Add trial ``index`` of ``boot`` to the completed ones."""
        if index < len(boot.trials):
            self._set(boot, "", self._weight(boot.trials[index]))

    def ended(self, boot: PlannedBoot) -> None:
        """Remove the guest of ``boot`` from the display."""
        with self._lock:
            self._now.pop(boot.index, None)

    def _set(self, boot: PlannedBoot, doing: str, more: float = 0.0) -> None:
        with self._lock:
            self._done += more
            if doing:
                self._now[boot.index] = f"{boot.kernel}, seed {boot.seed}: {doing}"
            self._update(self._done, "\n".join(self._now.values()))


def execute(
    plan: Plan,
    kernels: Mapping[str, Bootable],
    lab: Lab,
    log: Log,
    reporter: Reporter,
    weight: Callable[[PlannedTrial], float] = lambda trial: 1.0,
    between: Callable[[], None] = lambda: None,
) -> None:
    """Run every boot of ``plan`` that ``log`` does not have yet.

    ``weight``: the expected time of a trial, in any unit; it only scales the displayed progress.
    ``between`` is called after a boot has ended and before the next begins: with one job, no guest runs then.
    A boot whose guest fails is recorded, and the plan continues. A boot that fails because of the host is
    attempted up to three times. Raises LabError if it fails three times. Records that were written before an
    error or a KeyboardInterrupt are kept.
    """
    done = log.finished()
    todo = deque(boot for boot in plan.boots if boot.index not in done)
    if not todo:
        return
    ended = {boot: end.outcome for boot, end in done.items()}
    running: dict[Future[BootResult], PlannedBoot] = {}
    title = f"booting {len(todo)} guests" + (f", {lab.jobs} at a time" if lab.jobs > 1 else "")
    total = sum(weight(trial) for boot in todo for trial in boot.trials)
    with reporter.task(title, total=total) as task, ThreadPoolExecutor(lab.jobs) as pool:
        shown = _Shown(task.update, weight)
        try:
            while todo or running:
                while todo and len(running) < lab.jobs:
                    given_up = hopeless(todo[0], plan, ended)
                    if given_up is None:
                        break
                    boot = todo.popleft()
                    if given_up:
                        reporter.note(
                            f"boot {boot.index} of {boot.kernel} is skipped: earlier boots of it failed"
                        )
                        continue
                    shown.boot(boot)
                    running[pool.submit(_boot, boot, plan, kernels[boot.kernel], lab, log, shown)] = boot
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    boot = running.pop(future)
                    shown.ended(boot)
                    result = future.result()
                    ended[boot.index] = result.outcome
                    if result.outcome != "ok":
                        reporter.note(
                            f"boot {boot.index} of {boot.kernel}: {result.outcome}: {result.detail}"
                        )
                if todo:
                    between()
        except BaseException:
            lab.machine.stop()
            raise


def _boot(boot: PlannedBoot, plan: Plan, kernel: Bootable, lab: Lab, log: Log, shown: _Shown) -> BootResult:
    """Attempt a boot until it ends for a reason other than the host. Raises LabError after three attempts."""
    first = log.next_attempt(boot.index)
    for attempt in range(first, first + _ATTEMPTS):
        result = _attempt(boot, attempt, plan, kernel, lab, log, shown)
        if result.outcome != "infrastructure-error":
            return result
    raise LabError(
        f"boot {boot.index} of {boot.kernel} failed {_ATTEMPTS} times because of the host: {result.detail}",
        hint="check this host with `kteardown doctor`, then resume the run.",
    )


def _attempt(
    boot: PlannedBoot, attempt: int, plan: Plan, kernel: Bootable, lab: Lab, log: Log, shown: _Shown
) -> BootResult:
    def keep(record: Record) -> None:
        log.append(record, boot=boot.index, attempt=attempt)

    def on_line(raw: bytes) -> None:
        record = _parse(raw)
        if isinstance(record, TrialEnd):
            record = record.model_copy(update={"at_s": round(time.monotonic() - began, 3)})
            shown.done(boot, record.trial)
        elif isinstance(record, TrialStart):
            shown.trial(boot, record.trial)
            record = record.model_copy(update={"params": {**boot.machine, **record.params}})
        keep(record)

    console = log.console_path(boot.index, attempt)
    # In the run directory, so that a killed kteardown leaves no file elsewhere.
    initramfs = console.with_suffix(".cpio")
    modules = kernel.modules_of(boot)
    done = log.completed(boot.index)
    left = boot.model_copy(update={"trials": tuple(t for t in boot.trials if t.index not in done)})
    try:
        pack(
            initramfs,
            agent=lab.agent,
            plan=guest_plan(left, [f"/modules/{path.name}" for path in modules]),
            modules=modules,
            programs=lab.programs,
        )
        keep(
            BootStart(
                kernel=boot.kernel,
                block=boot.block,
                seed=boot.seed,
                acceleration=lab.acceleration,
                host_load=load_average(),
                started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                machine=boot.machine,
            )
        )
        began = time.monotonic()
        result = lab.machine.boot(_job(boot, plan, kernel, lab, console, initramfs), on_line)
    finally:
        initramfs.unlink(missing_ok=True)
    result = _with_source_lines(result, kernel.source_lines(lab.arch))
    keep(
        BootEnd(
            outcome=result.outcome,
            detail=result.detail,
            duration_s=result.duration_s,
            first_record_s=result.first_record_s,
            command=list(result.command),
            host_load=load_average(),
            peak_rss_kb=result.peak_rss_kb,
            problems=result.problems,
            last_lines=result.last_lines,
        )
    )
    return result


def _with_source_lines(result: BootResult, source: SourceLines) -> BootResult:
    """Return ``result`` with the source lines of what the kernel printed."""
    texts = [(result.detail,), result.last_lines, *(problem.excerpt for problem in result.problems)]
    flat = source.annotate([line for text in texts for line in text])
    found = iter(flat)
    (detail,), last, *excerpts = (tuple(itertools.islice(found, len(text))) for text in texts)
    return replace(
        result,
        detail=detail,
        last_lines=last,
        problems=tuple(
            problem.model_copy(update={"excerpt": excerpt})
            for problem, excerpt in zip(result.problems, excerpts, strict=True)
        ),
    )


def _job(
    boot: PlannedBoot, plan: Plan, kernel: Bootable, lab: Lab, console: Path, initramfs: Path
) -> BootJob:
    return BootJob(
        image=kernel.image,
        initramfs=initramfs,
        arch=lab.arch,
        acceleration=lab.acceleration,
        cpus=boot.machine.get("cpus", plan.cpus),
        memory_mb=plan.memory_mb,
        seed=boot.seed,
        console=console,
        silence_s=plan.silence_s * SILENCE_FACTOR[lab.acceleration],
        kernel_args=lab.kernel_args,
        possible_cpus=boot.machine.get("possible_cpus", plan.possible_cpus),
        numa_nodes=boot.machine.get("numa_nodes", plan.numa_nodes),
    )


def _parse(raw: bytes) -> Record:
    """Parse a line of the agent. An unparsable line becomes an AgentError."""
    try:
        return parse(raw)
    except ValidationError:
        return AgentError(detail="not a record: " + raw[:200].decode(errors="backslashreplace"))


def _words(params: Mapping[str, ParamValue]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())
