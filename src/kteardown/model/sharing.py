"""What CPUs did to each other in a stretch: which functions moved cache lines, and which lines."""

from typing import Literal

from pydantic import Field

from kteardown.model.record_fields import Count, ParamValue, RecordFields
from kteardown.model.workload import FiniteModel


class SharingFunction(FiniteModel):
    """A function of the kernel, and how often its own instructions did this.

    ``name`` is empty for programs of the guest. ``line``: the source line with most of the moves,
    ``FILE:LINE``; empty without a line table.
    """

    name: str
    line: str = ""
    moves: float
    shared_reads: float
    locked: float


class SharedData(FiniteModel):
    """Cache lines that moved and have one name.

    ``name`` is that of the symbols that are accessed; of memory that is allocated, empty.
    ``lines`` is how many there are, ``cpus`` how many CPUs wrote each, at most. ``movers`` are the
    functions with most of the moves: of a lock, those that take it. ``spins`` are rounds of waiting
    for a lock in these lines; ``waited_ticks`` is how long CPUs waited for the lines, all together.
    """

    name: str
    lines: float
    cpus: int
    moves: float
    movers: tuple[str, ...]
    spins: float = 0
    waited_ticks: float = 0


class Sharing(RecordFields):
    """What was counted in one repetition, by function and by line: raw counts of the kernel.

    Both are the ones with most moves. What is left of the kernel's counts has no name here.
    """

    type: Literal["sharing"] = "sharing"
    trial: Count
    repetition: Count
    elapsed_ticks: float = 0
    """How long the repetition took, by the clock of the CPU that is farthest."""
    busy_ticks: tuple[float, ...] = ()
    """By CPU, how long it did not sleep; those that did not run at the end may be missing."""
    functions: tuple[SharingFunction, ...]
    data: tuple[SharedData, ...]


class SharingRow(FiniteModel):
    """A function, or data with one name, and what each kernel does with it for one object.

    The values are means over boots, by kernel. ``name`` is empty for memory that is allocated,
    which ``movers`` describe: the functions that move its lines. ``line`` as in
    ``SharingFunction``.
    """

    name: str
    movers: tuple[str, ...] = ()
    line: str = ""
    moves: dict[str, float]
    shared_reads: dict[str, float] = Field(default={})
    locked: dict[str, float] = Field(default={})
    lines: dict[str, float] = Field(default={})
    """Different cache lines of the data."""
    spins: dict[str, float] = Field(default={})
    """Rounds of waiting for a lock in them."""


class SharingProfile(FiniteModel):
    """Which functions and which data cause the line moves of a workload at a point, most first."""

    workload: str
    point: dict[str, ParamValue]
    object: str
    """What the values are for one of."""
    functions: tuple[SharingRow, ...]
    data: tuple[SharingRow, ...]
