"""A boot on the contention clock: the plugin that counts, and the samples that its counts are.

What the agent measures itself is not used: the guest's clock is the sum over its CPUs.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, itemgetter

from kteardown.kernels.source_lines import SourceLines
from kteardown.kernels.symbol_map import SymbolMap
from kteardown.model.plan import PlannedBoot, PlannedTrial
from kteardown.model.record import Buckets, Record, Sample, TrialEnd
from kteardown.model.sharing import SharedData, Sharing, SharingFunction
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.run.setting import Bootable, GuestSetup
from kteardown.vm.contention import (
    CountedStretch,
    MovedLine,
    Mover,
    Moves,
    StretchReader,
    contention_arguments,
    counts_file,
)
from kteardown.vm.job import BootJob

_MOST_FUNCTIONS = 40
_MOST_DATA = 40
"""Of each, so many with most moves are kept of a repetition, and as many functions with most locked
instructions and data with most waiting."""
_PART_OF_LINE = 0.25
"""A symbol that has less of the moves of a line is not named."""
_MOVERS = 2
"""Allocated lines that the same functions move have one name."""
_LOCKS = (
    *("_raw_", "queued_", "native_queued_", "__pv_queued_", "lockref_"),
    *("mutex_", "__mutex_", "osq_", "down_", "up_", "rwsem_"),
)
"""Functions that move a line for their caller: another one says more about what the line is."""


class Uncounted:
    """A boot on another clock."""

    def job(self, job: BootJob) -> BootJob:
        """Return the job unchanged."""
        return job

    def add(self, record: Record) -> Sequence[Record]:
        """Return the record of the agent alone."""
        return (record,)


@contextlib.contextmanager
def counting(
    boot: PlannedBoot, lab: GuestSetup, kernel: Bootable
) -> Iterator["BootCounts | Uncounted"]:
    """Yield what counts a boot on the contention clock. Raises LabError, BuildError."""
    if not lab.contention:
        yield Uncounted()
        return
    with counts_file() as (out, stream):
        arguments = contention_arguments(
            lab.arch,
            out,
            boot.machine["transfer_ticks"],
            cache=cache_dir(),
            reporter=SilentReporter(),
            own=lab.contention.sources,
            also=lab.contention.also,
        )
        folder = kernel.lines or kernel.image.parent
        names = Names(SymbolMap(folder, kernel.image), SourceLines(folder, lab.arch))
        yield BootCounts(
            boot.trials, lab.contention.objects_of, names, arguments, StretchReader(stream)
        )


@dataclass(frozen=True)
class Names:
    """The names of what a kernel executes and accesses."""

    symbols: SymbolMap
    source: SourceLines


@dataclass
class BootCounts:
    """What is counted in one boot, trial by trial."""

    trials: Sequence[PlannedTrial]
    """Those that the guest runs, in their order."""
    objects_of: Callable[[PlannedTrial], int]
    """How many objects a repetition has."""
    names: Names
    arguments: tuple[str, ...]
    reader: StretchReader
    ended: int = 0

    def job(self, job: BootJob) -> BootJob:
        """Return the job with the plugin."""
        return replace(job, plugin=self.arguments, counts_contention=True)

    def add(self, record: Record) -> Sequence[Record]:
        """Return what to keep of a record of the agent: before the end of a trial, its counts.

        A trial without counts of each repetition is void.
        """
        if isinstance(record, Sample | Buckets):
            return ()
        if not isinstance(record, TrialEnd):
            return (record,)
        trial = self.trials[self.ended]
        stretches = self.reader.of_trial(self.ended)
        self.ended += 1
        if record.status != "ok":
            return (record,)
        repetitions = trial.warmup + trial.repetitions
        each, left = divmod(len(stretches), repetitions)
        if left or not each:
            detail = f"{len(stretches)} stretches were counted in {repetitions} repetitions"
            return (record.model_copy(update={"status": "void", "detail": detail}),)
        kept: list[Record] = []
        for repetition in range(trial.warmup, repetitions):
            of_repetition = stretches[repetition * each : (repetition + 1) * each]
            kept += self._records(trial, repetition, of_repetition)
        return (*kept, record)

    def _records(
        self, trial: PlannedTrial, repetition: int, stretches: Sequence[CountedStretch]
    ) -> Iterator[Record]:
        objects = self.objects_of(trial)
        for metric, count in _figures(stretches).items():
            value = count / objects
            yield Sample(trial=trial.index, repetition=repetition, metric=metric, value=value)
        yield Sharing(
            trial=trial.index,
            repetition=repetition,
            elapsed_ticks=sum(stretch.elapsed_ticks for stretch in stretches),
            busy_ticks=_busy_ticks(stretches),
            functions=_functions(stretches, self.names),
            data=_data(stretches, self.names.symbols),
        )


def _figures(stretches: Sequence[CountedStretch]) -> dict[str, int]:
    """Return the counts of a repetition by metric (``inputs/contention.toml``)."""
    kernel = reduce(add, (stretch.kernel for stretch in stretches))
    programs = reduce(add, (stretch.programs for stretch in stretches))
    return {
        "line_moves_count": kernel.moves,
        "locked_count": kernel.locked,
        "shared_reads_count": kernel.shared_reads,
        "shared_lines_count": kernel.shared_lines,
        "spins_count": kernel.spins,
        "all_instructions_count": sum(stretch.instructions for stretch in stretches),
        "program_line_moves_count": programs.moves,
        "program_locked_count": programs.locked,
        "program_shared_reads_count": programs.shared_reads,
        "program_shared_lines_count": programs.shared_lines,
    }


def _busy_ticks(stretches: Sequence[CountedStretch]) -> tuple[float, ...]:
    """Return by CPU how long it did not sleep in a repetition."""
    last = max((cpu for stretch in stretches for cpu in stretch.busy_ticks), default=-1)
    return tuple(
        sum(stretch.busy_ticks.get(cpu, 0) for stretch in stretches) for cpu in range(last + 1)
    )


def _functions(stretches: Sequence[CountedStretch], names: Names) -> tuple[SharingFunction, ...]:
    """Return the functions of the kernel with most moves, and those with most locked
    instructions."""
    counts: dict[str, Moves] = defaultdict(Moves)
    of_address: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for stretch in stretches:
        for address, moves in stretch.sites.items():
            if name := names.symbols.function(address):
                counts[name] += moves
                of_address[name][address] += moves.moves
    by_moves = sorted(counts, key=lambda name: (-counts[name].moves, name))
    by_locks = sorted(counts, key=lambda name: (-counts[name].locked, name))
    kept = dict.fromkeys((*by_moves[:_MOST_FUNCTIONS], *by_locks[:_MOST_FUNCTIONS]))
    first = {name: max(of_address[name].items(), key=itemgetter(1))[0] for name in kept}
    lines = names.source.lines(first.values())
    return tuple(
        SharingFunction(
            name=name,
            line=lines.get(first[name], ""),
            moves=counts[name].moves,
            shared_reads=counts[name].shared_reads,
            locked=counts[name].locked,
        )
        for name in kept
    )


def _data(stretches: Sequence[CountedStretch], symbols: SymbolMap) -> tuple[SharedData, ...]:
    """Return the data with most moves and that with most waiting.

    Data has the name of its symbols, or is described by the functions that move its lines.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[MovedLine]] = defaultdict(list)
    for stretch in stretches:
        for line in stretch.lines:
            name = _symbols_in(line, symbols)
            movers = () if name else _movers([line], symbols)
            groups[name, movers].append(line)
    data = [
        SharedData(
            name=name,
            lines=len({line.address for line in lines}),
            cpus=max(line.cpus for line in lines),
            moves=sum(line.moves for line in lines),
            spins=sum(line.spins for line in lines),
            waited_ticks=sum(line.waited_ticks for line in lines),
            movers=movers or _movers(lines, symbols),
        )
        for (name, movers), lines in groups.items()
    ]
    by_moves = sorted(data, key=lambda entry: (-entry.moves, entry.name, entry.movers))
    by_waits = sorted(data, key=lambda entry: (-entry.waited_ticks, entry.name, entry.movers))
    return tuple(dict.fromkeys((*by_moves[:_MOST_DATA], *by_waits[:_MOST_DATA])))


def _symbols_in(line: MovedLine, symbols: SymbolMap) -> str:
    """Return the symbols of what moves a line: several if they are falsely shared."""
    moves: dict[str, int] = defaultdict(int)
    for mover in line.movers:
        moves[symbols.data(line.address + mover.offset)] += mover.moves
    least = _PART_OF_LINE * sum(moves.values())
    return ", ".join(sorted(name for name, count in moves.items() if name and count >= least))


def _movers(lines: Sequence[MovedLine], symbols: SymbolMap) -> tuple[str, ...]:
    """Return the functions that move lines most, in the order of their names.

    One that only locks for others is among them if no other moves these lines.
    """
    counts: dict[str, int] = defaultdict(int)
    for line in lines:
        for mover in line.movers:
            counts[_mover_name(mover, symbols)] += mover.moves
    others = [name for name in counts if not name.startswith(_LOCKS)]
    order = sorted(others or counts, key=lambda name: (-counts[name], name))
    return tuple(sorted(order[:_MOVERS]))


def _mover_name(mover: Mover, symbols: SymbolMap) -> str:
    """Return the function that moved a line: the caller of one that only locks, if it is known."""
    name = symbols.function(mover.address) or "programs"
    if name.startswith(_LOCKS) and mover.caller:
        return symbols.function(mover.caller) or name
    return name
