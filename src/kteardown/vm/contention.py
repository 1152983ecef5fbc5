"""The plugin that counts which cache lines move between the CPUs of a guest, and what it writes.

``plugins/contention`` says what the lines of a section mean.
"""

import contextlib
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kteardown import spawn
from kteardown.errors import LabError
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.progress import Reporter
from kteardown.vm.agent import Also
from kteardown.vm.host import qemu_version
from kteardown.vm.qemu_library import agent_marks, build_counter

_END = b"\nend\n"
"""Behind each stretch."""


@dataclass(frozen=True)
class Moves:
    """How often lines moved and were read while shared, and how many locked instructions ran."""

    moves: int = 0
    shared_reads: int = 0
    locked: int = 0
    shared_lines: int = 0
    """Different lines that several CPUs wrote."""
    spins: int = 0
    """Rounds of loops that wait."""

    def __add__(self, other: "Moves") -> "Moves":
        return Moves(
            self.moves + other.moves,
            self.shared_reads + other.shared_reads,
            self.locked + other.locked,
            self.shared_lines + other.shared_lines,
            self.spins + other.spins,
        )


class Mover(NamedTuple):
    """An instruction that moved a line so many times."""

    address: int
    caller: int
    """The address of the call in which a CPU executes a locked instruction; 0 if not known, and of
    other instructions."""
    offset: int
    """What it accessed last in the line, in bytes from its start."""
    moves: int


@dataclass(frozen=True)
class MovedLine:
    """A cache line that moved: its address, and the instructions that caused most of it."""

    address: int
    """A virtual address of the kernel's image, or a physical one."""
    moves: int
    cpus: int
    """How many CPUs wrote it."""
    spins: int
    """Rounds of waiting after a locked instruction on this line."""
    waited_ticks: int
    """How long CPUs waited for it, all together."""
    movers: tuple[Mover, ...]


@dataclass
class CountedStretch:
    """What was counted in one stretch."""

    trial: int
    """The index among the trials that the guest has begun, from 0."""
    instructions: int = 0
    """Of all CPUs, those of programs included."""
    elapsed_ticks: int = 0
    """By the clock of the CPU that is farthest."""
    busy_ticks: dict[int, int] = field(default_factory=dict)
    """By CPU, how long it did not sleep."""
    kernel: Moves = Moves()
    programs: Moves = Moves()
    sites: dict[int, Moves] = field(default_factory=dict)
    """By the address of the instruction."""
    lines: list[MovedLine] = field(default_factory=list)


@contextlib.contextmanager
def counts_file() -> Iterator[tuple[Path, BinaryIO]]:
    """Yield a new file for what is counted in a boot, and a stream that reads it."""
    with tempfile.TemporaryDirectory(prefix="kteardown-contention-") as name:
        out = Path(name, "counts")
        out.touch()
        with out.open("rb") as stream:
            yield out, stream


def need_turns(arch: Arch, *, cache: Path, reporter: Reporter) -> None:
    """Raise LabError if the plugin cannot end turns of the CPUs in the host's QEMU; BuildError."""
    plugin = build_counter("contention", arch, cache=cache, reporter=reporter)
    qemu = ARCHITECTURES[arch].qemu
    # Without a file for the counts, the plugin ends QEMU once it has found what it needs.
    argv = [qemu, "-M", "none", "-display", "none", "-plugin", f"file={plugin}"]
    done = spawn.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if lacks := re.search(r"contention plugin: (.+)", done.stderr):
        raise LabError(
            f"the contention clock does not work with {qemu} {qemu_version(arch)}: {lacks[1]}",
            hint="install the QEMU of your distribution, or choose another clock.",
        )


def contention_arguments(
    arch: Arch,
    out: Path,
    transfer_ticks: int,
    *,
    cache: Path,
    reporter: Reporter,
    own: Sequence[Path] = (),
    also: Also = "",
) -> tuple[str, ...]:
    """Return the plugin and its arguments for a boot whose counts go to ``out``.

    ``own`` and ``also`` as for the agent. Raises LabError, BuildError.
    """
    plugin = build_counter("contention", arch, cache=cache, reporter=reporter)
    marks = agent_marks(arch, cache=cache, reporter=reporter, own=own, also=also)
    return (f"file={plugin}", f"out={out}", *marks, f"transfer={transfer_ticks}")


class StretchReader:
    """Reads stretches while QEMU writes them.

    The plugin writes a stretch before the guest goes on. So at the end of a trial all of its
    stretches are there, and perhaps some of later trials, the last of them in part.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._rest = b""
        self._waiting: list[CountedStretch] = []

    def of_trial(self, trial: int) -> list[CountedStretch]:
        """Return the stretches of a trial, by its index; later ones are kept."""
        *whole, self._rest = (self._rest + self._stream.read()).split(_END)
        self._waiting += map(_stretch, whole)
        of_trial = [stretch for stretch in self._waiting if stretch.trial == trial]
        self._waiting = [stretch for stretch in self._waiting if stretch.trial > trial]
        return of_trial


def _stretch(text: bytes) -> CountedStretch:
    stretch = CountedStretch(-1)
    for line in text.decode("ascii", errors="replace").splitlines():
        kind, *words = line.split()
        if kind == "stretch":
            stretch.trial = int(words[0])
        else:
            _take(stretch, kind, words)
    return stretch


def _take(stretch: CountedStretch, kind: str, words: Sequence[str]) -> None:
    if kind == "cpu":
        now = int(words[1])
        slept_ticks = int(words[4])
        stretch.instructions += int(words[2])
        stretch.elapsed_ticks = max(stretch.elapsed_ticks, now)
        stretch.busy_ticks[int(words[0])] = now - slept_ticks
    elif kind == "count":
        counted = Moves(*map(int, words[1:]))
        if words[0] == "kernel":
            stretch.kernel = counted
        else:
            stretch.programs = counted
    elif kind == "site":
        address = int(words[0], 16)
        seen = stretch.sites.get(address, Moves())
        stretch.sites[address] = seen + Moves(*map(int, words[1:]))
    elif kind == "line":
        movers = (word.split(":") for word in words[6:])
        stretch.lines.append(
            MovedLine(
                address=int(words[0], 16),
                moves=int(words[1]),
                cpus=int(words[3]),
                spins=int(words[4]),
                waited_ticks=int(words[5]),
                movers=tuple(
                    Mover(int(at, 16), int(caller, 16), int(offset), int(moves))
                    for at, caller, offset, moves in movers
                ),
            )
        )
