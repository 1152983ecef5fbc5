"""The stretches of a profile, and the frames in them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kteardown.model.point import Key, key
from kteardown.model.record import ProfileStretch, Stack, TrialStart
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


def collect(boots: Iterable[BootRecords]) -> list[Stretches]:
    """Return the samples of usable trials, by kernel, workload and point, in order of
    occurrence."""
    result: dict[tuple[str, str, Key], Stretches] = {}
    for boot in boots:
        usable = {trial.index for trial in trials(boot.records) if trial.usable}
        running: dict[int, Stretches] = {}
        for record in boot.records:
            if isinstance(record, TrialStart) and record.trial in usable:
                place = (boot.start.kernel, record.workload, key(record.params))
                running[record.trial] = result.setdefault(place, Stretches(*place))
            elif isinstance(record, ProfileStretch) and record.trial in running:
                running[record.trial].periods.append(record)
                running[record.trial].boots[boot.start.block] += 1
            elif isinstance(record, Stack) and record.trial in running:
                stretches = running[record.trial]
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
