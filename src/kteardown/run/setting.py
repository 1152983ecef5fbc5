"""What a run boots, where, and with which limits."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kteardown.kernels.request import KernelImage
from kteardown.model.arch import Arch
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import Outcome
from kteardown.progress import Reporter
from kteardown.run.guest_records import Reports
from kteardown.rundir.writer import RecordWriter
from kteardown.vm.agent import Also
from kteardown.vm.job import Acceleration
from kteardown.vm.machine import Machine

if TYPE_CHECKING:
    from kteardown.run.execute import Executor


@dataclass(frozen=True)
class Bootable:
    image: Path
    modules: tuple[Path, ...] = ()
    optional_modules: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """By name or alias, what to load for a module that a boot of the plan needs."""
    builtin: tuple[str, ...] = ()
    """The modules that are built in, as far as that is known."""
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """In a rehearsal: modules that the guest loads if the script asks, each with its aliases."""
    lines: Path | None = None
    """The folder with its line table; None: that of the image."""

    def placed(self, place: Callable[[Path], Path]) -> "Bootable":
        """Return the same with ``place`` of each file."""
        more = {name: tuple(map(place, files)) for name, files in self.optional_modules.items()}
        modules = tuple(map(place, self.modules))
        return replace(self, image=place(self.image), modules=modules, optional_modules=more)

    @classmethod
    def of(cls, image: KernelImage) -> "Bootable":
        """Return what a kernel of the cache boots with."""
        return cls(image.image, image.modules, image.optional_modules, image.builtin)


@dataclass(frozen=True)
class ContentionSetup:
    """What the contention clock has to know about the guests.

    ``sources`` and ``also`` as for the agent, which marks what is counted.
    """

    objects_of: Callable[[PlannedTrial], int]
    """How many objects a repetition of a trial has."""
    sources: tuple[Path, ...] = ()
    also: Also = ""


@dataclass(frozen=True)
class GuestSetup:
    """What every guest of a run is given."""

    agent: Path
    arch: Arch
    acceleration: Acceleration
    reports: Mapping[str, Reports] = field(default_factory=dict)
    """By workload of the plan, what the agent may report of it."""
    kernel_args: tuple[str, ...] = ()
    programs: tuple[Path, ...] = ()
    """The programs that the guests have in addition to the agent."""
    archives: tuple[Path, ...] = ()
    """Archives in the format of an initramfs with the files of scripts."""
    has_own_programs: bool = False
    """As in ``BootJob``."""
    first: Path | None = None
    """The first process of a machine that is not of this lab, which runs the agent."""
    streams: bool = True
    """Whether records come while the guest runs, and not only at its end."""
    is_watched: bool = True
    """Whether the host of a guest sees what its other work takes from the guest."""
    contention: ContentionSetup | None = None
    """None on other clocks."""
    lost_limit: float | None = None
    """In real time: the share of its time above which a trial that lost it is disturbed; None: no
    limit."""
    lost_asked: bool = True
    """Whether that limit was asked for; else it holds only on a host with more CPUs than the
    guest."""

    def placed(self, place: Callable[[Path], Path]) -> "GuestSetup":
        """Return what guests are given, with ``place`` of each file."""
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(GuestSetup)}
        more = {name: tuple(map(place, values[name])) for name in ("programs", "archives")}
        return GuestSetup(**{**values, **more, "agent": place(self.agent)})


@dataclass(frozen=True)
class Lab(GuestSetup):
    """Where and how the boots run."""

    machine: Machine = field(kw_only=True)
    agent_hash: str = ""
    """SHA-256 of the agent, on which a result depends."""
    jobs: int = 1
    """Guests that run at the same time; more than one only if they cannot affect each other's
    figures."""
    executor: "Executor | None" = None
    """What runs the boots; None: this machine."""

    def stop(self) -> None:
        """End what runs. May be called from any thread."""
        (self.executor or self.machine).stop()


@dataclass
class Watch:
    """The displayed progress: the completed trials, weighted by expected time, and each guest's
    trial.

    Without arguments nothing is displayed. Safe to call from several threads.
    """

    update: Callable[[float, str], None] = lambda *_: None
    weight: Callable[[PlannedTrial], float] = lambda _: 1.0
    _done: float = 0.0
    _now: dict[int, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def boot(self, boot: PlannedBoot, doing: str = "starting", more: float = 0.0) -> None:
        """Show what ``boot`` is doing, unless that is empty, and add ``more`` to what is
        completed."""
        with self._lock:
            self._done += more
            if doing:
                self._now[boot.index] = f"{boot.kernel}, seed {boot.seed}: {doing}"
            self.update(self._done, "\n".join(self._now.values()))

    def trial(self, boot: PlannedBoot, index: int) -> None:
        if index < len(boot.trials):
            trial = boot.trials[index]
            params = {**boot.machine, **trial.params}
            words = " ".join(
                [trial.workload, *(f"{name}={value}" for name, value in params.items())]
            )
            self.boot(boot, f"{words}, trial {index + 1} of {len(boot.trials)}")

    def done(self, boot: PlannedBoot, index: int) -> None:
        if index < len(boot.trials):
            self.boot(boot, "", self.weight(boot.trials[index]))

    def ended(self, boot: PlannedBoot) -> None:
        with self._lock:
            self._now.pop(boot.index, None)


@dataclass(frozen=True)
class Ended:
    """A boot that has ended. ``keep`` writes its records to the log, unless they are there
    already."""

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
