"""The stretches of a profile, and the frames in them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kteardown.model.point import Key, key
from kteardown.model.record import ProfileStretch, Record, Stack, TrialStart
from kteardown.rundir.counting import BootRecords, trials

IDLE_TASK = "[idle task]"
NO_INTERRUPTS = "[no interrupts]"
_COMPILER = re.compile(r"\.(isra|part|constprop|cold|llvm|lto_priv)\b.*$")
_IDLE = frozenset(
    (
        "default_idle_call",
        "cpuidle_enter",
        "cpuidle_enter_state",
        "cpuidle_idle_call",
        "arch_cpu_idle",
    )
)
_WORK = re.compile(
    r"^(asm_)?sysvec_|_interrupt$|softirq|^el1h_64_irq$|^flush_smp_call_function_queue$"
)


@dataclass
class Weight:
    """Samples of one kind: their number, the sum of their times, and the variance of that sum."""

    count: int = 0
    ns: int = 0
    variance: float = 0.0

    def add(self, count: int, ns: int) -> None:
        """Add ``count`` samples of one stack that represent ``ns`` together."""
        self.count += count
        self.ns += ns
        self.variance += ns * ns / count


@dataclass
class Stretches:
    """The samples of one kernel at one point, of all repetitions of all boots."""

    kernel: str
    workload: str
    key: Key
    stacks: dict[str, Weight] = field(default_factory=lambda: defaultdict(Weight))
    """By stack, "outermost;...;innermost", with the functions as the guest names them."""
    boots: dict[int, int] = field(default_factory=Counter)
    """The number of repetitions by block."""
    by_boot: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By block, the ns in each function itself."""
    periods: list[ProfileStretch] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.periods)


def of_usable_trials(
    boots: Iterable[BootRecords],
) -> Iterator[tuple[BootRecords, tuple[str, str, Key], Record]]:
    """Yield the records of usable trials in order, each with its boot and its kernel, workload and
    point."""
    for boot in boots:
        usable = {trial.index for trial in trials(boot.records) if trial.usable}
        running: dict[int, tuple[str, str, Key]] = {}
        for record in boot.records:
            if isinstance(record, TrialStart) and record.trial in usable:
                place = (boot.start.kernel, record.workload, key(record.params))
                running[record.trial] = place
            elif (trial := getattr(record, "trial", None)) in running:
                yield boot, running[trial], record


def collect(boots: Iterable[BootRecords]) -> list[Stretches]:
    """Return the samples of usable trials, by kernel, workload and point, in order of
    occurrence."""
    result: dict[tuple[str, str, Key], Stretches] = {}
    for boot, place, record in of_usable_trials(boots):
        if isinstance(record, ProfileStretch):
            stretches = result.setdefault(place, Stretches(*place))
            stretches.periods.append(record)
            stretches.boots[boot.start.block] += 1
        elif isinstance(record, Stack):
            stretches = result.setdefault(place, Stretches(*place))
            frames = frames_of(record.stack)
            stretches.stacks[record.stack].add(record.count, record.ns)
            if not is_idle(frames):
                stretches.by_boot[boot.start.block][innermost(frames)] += record.ns
    return [stretches for stretches in result.values() if stretches.count]


def frames_of(stack: str) -> tuple[str, ...]:
    """Return the functions of a stack, outermost first, with the names that they have in the
    source."""
    return tuple(_COMPILER.sub("", frame) for frame in stack.split(";"))


def innermost(frames: Sequence[str]) -> str:
    """Return the function in which the sample was taken."""
    return next(frame for frame in reversed(frames) if frame != NO_INTERRUPTS or len(frames) == 1)


def is_idle(frames: Sequence[str]) -> bool:
    """Return whether the CPU was idle. Interrupts and soft interrupts of an idle CPU are not idle
    time."""
    return (
        frames[0] == IDLE_TASK
        and not _IDLE.isdisjoint(frames)
        and not any(_WORK.search(frame) for frame in frames)
    )
