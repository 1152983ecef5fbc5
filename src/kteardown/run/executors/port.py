"""The interface of what runs the boots of a plan, and what it is given.

``run.execute`` decides which boots run, in which order, and which of them count; an executor only runs what
it is given. Everything above ``run.execute`` is the same for every executor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kteardown.kernels.source_lines import SourceLines
from kteardown.model.arch import Arch
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import BootEnd, Outcome
from kteardown.progress import Reporter
from kteardown.rundir.writer import RecordWriter
from kteardown.vm.job import Acceleration, Machine

Piece = tuple[PlannedBoot, ...]
"""Boots that run one after another on one machine."""


@dataclass(frozen=True)
class Bootable:
    """The files of a kernel of the plan."""

    image: Path
    modules: tuple[Path, ...] = ()
    optional_modules: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """By name, what to load for a module that a boot of the plan needs."""
    lines: Path | None = None
    """The folder with its line table; None: that of the image."""

    def files(self) -> Iterator[Path]:
        """Yield every file that a guest needs."""
        yield from (self.image, *self.modules)
        for paths in self.optional_modules.values():
            yield from paths

    def modules_of(self, boot: PlannedBoot) -> tuple[Path, ...]:
        """Return the modules that ``boot`` loads, in order."""
        more = (path for name in boot.modules for path in self.optional_modules.get(name, ()))
        return tuple(dict.fromkeys((*self.modules, *more)))

    def source_lines(self, arch: Arch) -> SourceLines:
        """Return the source lines of the kernel."""
        return SourceLines(self.lines or self.image.parent, arch)


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
    lost_limit: float | None = None
    """In real time: the share of its time above which a trial that lost it is disturbed; None: no limit."""
    lost_asked: bool = True
    """Whether that limit was asked for; else it holds only on a host with more CPUs than the guest."""
    backend: Backend | None = None
    """What runs the boots; None: this machine."""

    def stop(self) -> None:
        """End what runs. May be called from any thread."""
        (self.backend or self.machine).stop()


class Watch:
    """The displayed progress: the completed trials, weighted by expected time, and each guest's trial.

    Without arguments nothing is displayed. Safe to call from several threads.
    """

    def __init__(
        self,
        update: Callable[[float, str], None] = lambda *_: None,
        weight: Callable[[PlannedTrial], float] = lambda _: 1.0,
    ) -> None:
        self._update = update
        self._weight = weight
        self._done = 0.0
        self._now: dict[int, str] = {}
        self._lock = threading.Lock()

    def boot(self, boot: PlannedBoot, doing: str = "starting") -> None:
        """Show that ``boot`` is being started, or what it does."""
        self._set(boot, doing)

    def trial(self, boot: PlannedBoot, index: int) -> None:
        """Show that trial ``index`` of ``boot`` began."""
        if index < len(boot.trials):
            trial = boot.trials[index]
            words = " ".join(f"{name}={value}" for name, value in {**boot.machine, **trial.params}.items())
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


@dataclass(frozen=True)
class Ended:
    """A boot that has ended. ``keep`` writes its records to the log, unless they are there already."""

    boot: PlannedBoot
    outcome: Outcome
    detail: str
    keep: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Setting:
    """What an executor is given for one plan."""

    plan: Plan
    kernels: Mapping[str, Bootable]
    lab: Lab
    log: RecordWriter
    watch: Watch
    reporter: Reporter


class Executor(Protocol):
    """Runs pieces of a plan."""

    ahead: bool
    """Whether boots run before it is known whether they count. Their records are not in the log before
    ``Ended.keep`` is called, which is not done for a boot that turns out not to count."""

    def pieces(self, plan: Plan, finished: Mapping[int, BootEnd]) -> Sequence[Piece]:
        """Divide the boots of ``plan`` that have to run into pieces, in the order of the plan."""

    def room(self) -> bool:
        """Return whether another piece may be submitted now."""

    def submit(self, piece: Piece) -> None:
        """Begin to run ``piece``. Raises LabError, InputError."""

    def wait(self) -> Sequence[Ended]:
        """Wait until boots have ended, and return them; each boot of each piece is returned once.

        Raises LabError if a boot cannot be run, KeyboardInterrupt after ``Backend.stop``.
        """


class Backend(Protocol):
    """Makes executors."""

    @property
    def words(self) -> str:
        """Where and how many boots run at a time, to follow ``booting 12 guests``; may be empty."""

    def unsettled(self, log: RecordWriter) -> bool:
        """Return whether an interrupted run left something to do, even if every boot has ended."""

    def open(self, setting: Setting) -> AbstractContextManager[Executor]:
        """Return an executor for one plan. Nothing of it is left running on this machine when it is left."""

    def stop(self) -> None:
        """End every executor: ``wait`` raises KeyboardInterrupt. May be called from any thread."""
