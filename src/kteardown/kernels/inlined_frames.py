"""The functions of an instruction, inlined ones and their caller, from the output of addr2line."""

from __future__ import annotations

import re
from typing import NamedTuple

_PREFIX = re.compile(r"^(?:\./|\.\./)+")
_DISCRIMINATOR = re.compile(r" \(discriminator \d+\)$")


class Frame(NamedTuple):
    """A function, and the line of its source that an instruction belongs to; 0 if that is not known."""

    function: str
    file: str
    line: int


Chain = tuple[Frame, ...]
"""The innermost inlined function first, the function that is called last."""


def parse_addr2line(text: str) -> dict[int, Chain]:
    """Parse the output of ``addr2line -a -i -f``: an address, then pairs of a function and ``FILE:LINE``."""
    chains: dict[int, Chain] = {}
    frames: list[Frame] = []
    address = None
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("0x"):
            if address is not None:
                chains[address] = tuple(frames)
            address, frames = int(line, 16), []
            continue
        place = _DISCRIMINATOR.sub("", next(lines, ""))
        file, _, number = place.rpartition(":")
        # Assembler that was built without debug information is named after its object file.
        if not line.startswith("?") and file.endswith((".c", ".h", ".S")):
            frames.append(Frame(line, _PREFIX.sub("", file), int(number) if number.isdigit() else 0))
    if address is not None:
        chains[address] = tuple(frames)
    return chains
