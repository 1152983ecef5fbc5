"""The clocks of a guest, and the unit in which the values of a metric are on each."""

from collections.abc import Mapping
from typing import Literal

Clock = Literal["instructions", "wall", "contention"]
CLOCKS: Mapping[Clock, str] = {
    "instructions": "the instruction clock",
    "wall": "the wall clock",
    "contention": "the contention clock",
}
"""What each is called in texts. The exact one is first, because it is the faster one to a first
answer. That of contention counts what moves between CPUs, and measures no time."""
BOTH: tuple[Clock, ...] = ("instructions", "wall")
"""The clocks of a run on both (``--clock both``)."""

IN_INSTRUCTIONS: Mapping[str, str] = {
    "ns": "instructions",
    "us": "1000 instructions",
    "per_s": "per 1e9 instructions",
}
"""Units of time by what they are on the instruction clock, where a nanosecond is one
instruction."""


def value_unit(unit: str, clock: str) -> str:
    """Return the unit of values of a metric whose unit in the workload's file is ``unit``."""
    return IN_INSTRUCTIONS.get(unit, unit) if clock == "instructions" else unit
