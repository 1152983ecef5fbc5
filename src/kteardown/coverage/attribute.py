"""From counts of blocks to functions and source lines.

The debug information of the kernel's vmlinux says to which functions an instruction belongs: the
function in whose source it is written, and those into which that one was inlined.
"""

import bisect
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kteardown import sandbox
from kteardown.coverage.direct_calls import DirectCalls
from kteardown.errors import InputError, MissingError
from kteardown.kernels.source_lines import Chain, Frame, parse_addr2line
from kteardown.vm.qemu_library import TrialBlocks

# What it costs depends on the other tasks: it is not followed.
_SCHEDULER = "__schedule"


class FunctionId(NamedTuple):
    """A function of the kernel; ``file`` is empty where there is no debug information
    (assembler)."""

    file: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.name}" if self.file else self.name


@dataclass
class Counts:
    """How often something was executed in one trial."""

    calls: int = 0
    """How often it was entered; an inlined copy, how often its first instruction was executed."""
    instructions: int = 0
    """Instructions of the function itself, without what it calls, and without what is inlined into
    it."""


@dataclass
class Executed:
    """What one trial executed on one side: inside or outside of its measured stretches."""

    functions: dict[FunctionId, Counts] = field(default_factory=dict)
    lines: dict[tuple[str, int], int] = field(default_factory=dict)
    """By file and line, how often the line was executed."""
    instructions: int = 0
    """All instructions of the kernel."""


class Entered(NamedTuple):
    """How often a function was entered from one place in ``callers``: a function, and those into
    which it is inlined. Without callers: through pointers."""

    name: str
    callers: frozenset[str]
    times: int


class _Place(NamedTuple):
    """What an address belongs to, as numbers: its function, the entries and lines it counts for."""

    function: int
    within: tuple[int, ...]
    """The function, and those into which it was inlined."""
    entries: tuple[int, ...]
    lines: tuple[int, ...]


class _Numbers(dict[Any, int]):
    """Gives every key the next number."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


class DebugInfo:
    """The debug information of one kernel: ``vmlinux`` and ``System.map`` of its folder in the
    cache."""

    def __init__(self, folder: Path) -> None:
        self._vmlinux = folder / "vmlinux"
        if not self._vmlinux.is_file() or not (folder / "System.map").is_file():
            raise InputError(
                f"the kernel in {folder} has no debug information, so kteardown cannot name the "
                "functions that it executes",
                hint=(
                    "use a source that kteardown builds (debian:6.12), not a kernel that is "
                    "already built."
                ),
            )
        if shutil.which("addr2line") is None:
            raise MissingError("addr2line is not installed", ["binutils"])
        symbols = (
            line.split()
            for line in (folder / "System.map").read_text(errors="replace").splitlines()
        )
        names = {
            int(parts[0], 16): parts[2]
            for parts in symbols
            if len(parts) == 3 and parts[1] in "tTwW"
        }
        self._starts = sorted(names)
        self._names = [names[start] for start in self._starts]
        self._apart = {start for start, name in names.items() if name == _SCHEDULER}
        self._places: dict[int, _Place | None] = {}
        self._start_of: dict[int, int] = {}
        """By address, that of the function that it is in."""
        self._targets: dict[int, int | None] = {}
        self._functions, self._entries, self._lines = _Numbers(), _Numbers(), _Numbers()

    def learn(self, addresses: Iterable[int]) -> None:
        """Look up the functions and lines of ``addresses``: one call for many is much faster."""
        wanted = set(addresses) - self._places.keys()
        for address, chain in self._look_up(wanted).items():
            self._places[address] = self._place(address, chain)
            self._start_of[address] = self._symbol(address)

    def chains(self, addresses: Iterable[int]) -> dict[int, tuple[FunctionId, ...]]:
        """Return the functions of each address, the innermost inlined one first."""
        frames = self._look_up(set(addresses))
        return {address: tuple(_id(frame) for frame in chain) for address, chain in frames.items()}

    def named(self, names: Collection[str]) -> set[FunctionId]:
        """Return the functions with one of ``names``, which the compiler may have divided
        (f.cold)."""
        symbols = zip(self._starts, self._names, strict=True)
        starts = [start for start, symbol in symbols if symbol.split(".")[0] in names]
        return {chain[-1] for chain in self.chains(starts).values() if chain}

    def _look_up(self, addresses: Collection[int]) -> dict[int, Chain]:
        if not addresses:
            return {}
        text = "".join(f"{address:#x}\n" for address in sorted(addresses))
        argv = ["addr2line", "-a", "-i", "-f", "-e", str(self._vmlinux)]
        chains = parse_addr2line(sandbox.capture(argv, [self._vmlinux], text_in=text))
        return {address: chains.get(address, ()) for address in addresses}

    def count(self, counts: Mapping[int, int]) -> Executed:
        """Return the functions and lines of instructions that were executed so often."""
        self.learn(counts)
        instructions: dict[int, int] = defaultdict(int)
        entries: dict[int, int] = {}
        lines: dict[int, int] = defaultdict(int)
        for address in sorted(counts):
            count = counts[address]
            place = self._places[address]
            if place is None:
                continue
            instructions[place.function] += count
            for entry in place.entries:
                entries.setdefault(
                    entry, count
                )  # The first address of each copy: addresses come in order.
            for line in place.lines:
                lines[line] = max(lines[line], count)
        names, copies, places = (
            list(numbers) for numbers in (self._functions, self._entries, self._lines)
        )
        executed = Executed(instructions=sum(counts.values()))
        for number, count in instructions.items():
            executed.functions[names[number]] = Counts(0, count)
        for number, count in entries.items():
            executed.functions.setdefault(copies[number][0], Counts()).calls += count
        for number, count in lines.items():
            file, line, _ = places[number]
            executed.lines[file, line] = executed.lines.get((file, line), 0) + count
        return executed

    def entered(self, counts: Mapping[int, int], names: Collection[str]) -> list[Entered]:
        """Return how often functions with these ``names`` were entered, by their callers.

        What the compiler divided off a function (f.part.0, f.cold), and may have inlined into it
        again, is entered by that function itself, which is no entry.
        """
        self.learn(counts)
        wanted = {number for function, number in self._functions.items() if function.name in names}
        first: dict[int, int] = {}
        for at in sorted(counts):
            if (place := self._places[at]) and not wanted.isdisjoint(place.within):
                for entry in place.entries:
                    first.setdefault(entry, counts[at])
        copies = list(self._entries)
        entered: list[Entered] = []
        symbols: dict[int, Entered] = {}
        for entry, count in first.items():
            function, (start, outer) = copies[entry]
            if function.name in names and outer:
                callers = frozenset(frame.function for frame in outer)
                entered.append(Entered(function.name, callers, count))
            elif function.name in names and ".part" not in self._name(start):
                symbols[start] = Entered(function.name, frozenset(), count)
        functions = list(self._functions)
        for at, to in self._calls(counts) if symbols else ():
            if to in symbols and (place := self._places[at]):
                callers = frozenset(functions[number].name for number in place.within)
                entered.append(Entered(symbols[to].name, callers, counts[at]))
                symbols[to] = symbols[to]._replace(times=symbols[to].times - counts[at])
        return [entry for entry in (*entered, *symbols.values()) if entry.name not in entry.callers]

    def _within(self, counts: Mapping[int, int], functions: Collection[FunctionId]) -> set[int]:
        """Return the addresses of the instructions of ``functions`` and of what is inlined into
        them."""
        self.learn(counts)
        numbers = {self._functions[function] for function in functions}
        return {
            at
            for at in counts
            if (place := self._places[at]) and not numbers.isdisjoint(place.within)
        }

    def instructions_in(self, counts: Mapping[int, int], functions: Collection[FunctionId]) -> int:
        """Return how many instructions were executed in ``functions`` and in what is inlined into
        them."""
        return sum(counts[address] for address in self._within(counts, functions))

    def with_callees(
        self,
        counts: Mapping[int, int],
        functions: Collection[FunctionId],
        least_shares: Mapping[str, float] | None = None,
    ) -> float:
        """Return how many instructions were executed in ``functions`` and in all that they call.

        Of a function that others call too, their part of its calls counts, as in gprof, and at
        least its part in ``least_shares``. Calls through pointers are not known, and the scheduler
        is not followed.
        """
        within = self._within(counts, functions)
        elsewhere: dict[int, int] = defaultdict(int)
        for address in counts.keys() - within:
            elsewhere[self._start_of[address]] += counts[address]
        shares = self._shares(counts, within)
        unique = self._unique() if least_shares else {}
        least = {start: (least_shares or {}).get(name, 0.0) for start, name in unique.items()}
        return sum(counts[at] for at in within) + sum(
            count * max(shares.get(to, 0.0), least.get(to, 0.0)) for to, count in elsewhere.items()
        )

    def shares_of_callees(
        self, counts: Mapping[int, int], functions: Collection[FunctionId]
    ) -> dict[str, float]:
        """Return by name the part of each function that counts in ``with_callees``.

        Where a variant calls a function through a pointer instead, its part in base is known all
        the same.
        """
        shares = self._shares(counts, self._within(counts, functions))
        names = self._unique()
        return {names[start]: share for start, share in shares.items() if start in names}

    def _unique(self) -> dict[int, str]:
        """Return by address the names that only one function has."""
        often = Counter(self._names)
        named = zip(self._starts, self._names, strict=True)
        return {start: name for start, name in named if often[name] == 1}

    def _shares(self, counts: Mapping[int, int], within: Collection[int]) -> dict[int, float]:
        """Return by address the part of each function that the instructions at ``within`` call."""
        callers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for at, to in self._calls(counts):
            if counts.get(to) and to not in within and to not in self._apart:
                callers[to].append((-1 if at in within else self._start_of[at], counts[at]))
        # The share of each function, by its address, that counts; that of all in ``within`` is 1.
        shares = {-1: 1.0}
        moved = 1.0
        for _ in range(100):  # They only grow, and recursion is rare.
            if moved < 1e-6:
                break
            moved = 0.0
            for to, calls in callers.items():
                share = min(sum(n * shares.get(at, 0.0) for at, n in calls) / counts[to], 1.0)
                moved = max(moved, share - shares.get(to, 0.0))
                shares[to] = share
        return shares

    def _calls(self, addresses: Iterable[int]) -> list[tuple[int, int]]:
        """Return each direct call of a function at ``addresses``, in their order, and where it
        leads."""
        wanted = sorted(addresses)
        if new := [at for at in wanted if at not in self._targets]:
            code = DirectCalls(self._vmlinux)
            functions = set(self._starts)
            for at in new:
                to = code.target(at)
                self._targets[at] = to if to in functions else None
        return [(at, to) for at in wanted if (to := self._targets[at]) is not None]

    def _name(self, start: int) -> str:
        return self._names[bisect.bisect_left(self._starts, start)]

    def _symbol(self, address: int) -> int:
        """Return the address of the function that ``address`` is in."""
        return self._starts[max(bisect.bisect_right(self._starts, address) - 1, 0)]

    def _place(self, address: int, chain: Chain) -> _Place | None:
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        symbol = self._names[at]
        start = self._starts[at]
        # Without debug information, an address belongs to its symbol.
        chain = chain or (Frame(symbol, "", 0),)
        entries = []
        lines = []
        for depth, frame in enumerate(chain):
            copy = (start, chain[depth + 1 :])
            # A function that is called is entered at its symbol; what the compiler moved away is
            # not entered.
            if depth < len(chain) - 1 or (address == start and ".cold" not in symbol):
                entries.append(self._entries[_id(frame), copy])
            if frame.line:
                lines.append(self._lines[frame.file, frame.line, copy])
        within = tuple(self._functions[_id(frame)] for frame in chain)
        return _Place(within[0], within, tuple(entries), tuple(lines))


def attribute(trial: TrialBlocks, info: DebugInfo) -> tuple[Executed, Executed]:
    """Return what a trial executed inside and outside of its stretches."""
    return info.count(counts_of(trial, inside=True)), info.count(counts_of(trial, inside=False))


def counts_of(trial: TrialBlocks, *, inside: bool) -> dict[int, int]:
    """Return how often each instruction was executed inside (outside) of the stretches of a
    trial."""
    counts: dict[int, int] = defaultdict(int)
    for block in trial.blocks:
        count = block.inside if inside else block.outside
        if count:
            for address in block.addresses():
                counts[address] += count
    return counts


def _id(frame: Frame) -> FunctionId:
    return FunctionId(frame.file, frame.function)
