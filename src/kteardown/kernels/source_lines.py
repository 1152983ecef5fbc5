"""Add the source lines to what a kernel printed: the stack of an oops, the address at which a guest
hangs.

A kernel that was built here has a line table in its vmlinux; for others the text is returned
unchanged.
"""

import bisect
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kteardown import sandbox
from kteardown.model.arch import ARCHITECTURES, Arch

_PREFIX = re.compile(r"^(?:\./|\.\./)+")
_AT = re.compile(r"0x[0-9a-f]{1,16}")
_DISCRIMINATOR = re.compile(r" \(discriminator \d+\)$")
_PLACE = re.compile(r"\b([A-Za-z_][\w.]*)\+0x([0-9a-f]+)/0x([0-9a-f]+)\b(?! \()")
"""As printk writes ``%pS``: ``do_idle+0xab/0x200``."""
_BARE = re.compile(r"\bat ([0-9a-f]{16})\b(?:, ([0-9a-f]{16})\b)*")
_ADDRESS = re.compile(r"\b[0-9a-f]{16}\b")


class SourceLines:
    """The functions and source lines of one kernel: ``vmlinux`` and ``System.map`` of
    ``folder``."""

    def __init__(self, folder: Path, arch: Arch) -> None:
        self._vmlinux = folder / "vmlinux"
        self._map = folder / "System.map"
        cross = ARCHITECTURES[arch].compiler.removesuffix("gcc") + "addr2line"
        self._addr2line = next(filter(None, map(shutil.which, (cross, "addr2line"))), None)

    def annotate(self, lines: Sequence[str]) -> tuple[str, ...]:
        """Return the lines with `` (FILE:LINE)`` after each ``FUNCTION+OFFSET/SIZE``, and each bare
        address after ``at`` replaced by its function.

        For an instruction of an inlined function the line is that of its call: `` (FILE:LINE, in
        INLINED)``.
        """
        text = "\n".join(lines)
        usable = self._addr2line is not None and self._vmlinux.is_file() and self._map.is_file()
        if not (_PLACE.search(text) or _BARE.search(text)) or not usable:
            return tuple(lines)
        fields = (
            line.split()
            for line in self._map.read_text(encoding="ascii", errors="replace").splitlines()
        )
        symbols = sorted((int(parts[0], 16), parts[2]) for parts in fields if len(parts) == 3)
        addresses: dict[str, int] = {}
        for name, offset, size in set(_PLACE.findall(text)):
            start = _start(symbols, name, int(size, 16))
            if start is not None:
                addresses[f"{name}+0x{offset}/0x{size}"] = start + int(offset, 16)
        bare = {
            hexa: int(hexa, 16)
            for match in _BARE.finditer(text)
            for hexa in _ADDRESS.findall(match[0])
        }
        # All but the innermost of a stack are return addresses: the call is the instruction before.
        innermost = (line for line in lines if line.startswith(("RIP: ", "pc : ", "WARNING: ")))
        interrupted = {match[0] for line in innermost for match in _PLACE.finditer(line)}
        instructions = {place: at - (place not in interrupted) for place, at in addresses.items()}
        places = self._places({*instructions.values(), *bare.values()})

        def with_line(match: re.Match[str]) -> str:
            at = instructions.get(match[0])
            line = places[at][1] if at in places else ""
            return f"{match[0]} ({line})" if line else match[0]

        def with_function(match: re.Match[str]) -> str:
            function, line = places.get(bare[match[0]], ("", ""))
            return f"{function} ({line or match[0]})" if function else match[0]

        text = _BARE.sub(lambda match: _ADDRESS.sub(with_function, match[0]), text)
        return tuple(_PLACE.sub(with_line, text).split("\n"))

    def lines(self, addresses: Iterable[int]) -> dict[int, str]:
        """Return ``FILE:LINE``, or ``FILE:LINE, in INLINED``, of each instruction that has one."""
        if self._addr2line is None or not self._vmlinux.is_file():
            return {}
        return {address: line for address, (_, line) in self._places(addresses).items() if line}

    def _places(self, addresses: Iterable[int]) -> dict[int, tuple[str, str]]:
        wanted = sorted({*addresses})
        if not wanted:
            return {}
        argv = [str(self._addr2line), "-a", "-i", "-f", "-e", str(self._vmlinux)]
        chains = parse_addr2line(sandbox.capture([*argv, *map(hex, wanted)], [self._vmlinux]))
        return {address: _place(chain) for address, chain in chains.items() if chain}


def _place(chain: "Chain") -> tuple[str, str]:
    """Return the function that is called, which is the last one, and its line: a reader knows
    it."""
    inlined = f", in {chain[0].function}" if len(chain) > 1 else ""
    called = chain[-1]
    return called.function, f"{called.file}:{called.line}{inlined}" if called.line else ""


def _start(symbols: Sequence[tuple[int, str]], name: str, size: int) -> int | None:
    """Return the address of the function of this name; of several, of the one with this size."""
    starts = [address for address, symbol in symbols if symbol == name]
    if len(starts) <= 1:
        return starts[0] if starts else None
    ends = {start: bisect.bisect_right(symbols, (start, "\x7f")) for start in starts}
    return next(
        (s for s, end in ends.items() if end < len(symbols) and symbols[end][0] - s == size), None
    )


class Frame(NamedTuple):
    """A function, and the line of its source that an instruction belongs to; 0 if that is not
    known."""

    function: str
    file: str
    line: int


Chain = tuple[Frame, ...]
"""The innermost inlined function first, the function that is called last."""


def parse_addr2line(text: str) -> dict[int, Chain]:
    """Parse the output of ``addr2line -a -i -f``: an address, then pairs of a function and
    ``FILE:LINE``."""
    chains: dict[int, list[Frame]] = {}
    frames: list[Frame] = []
    lines = iter(text.splitlines())
    for line in lines:
        if _AT.fullmatch(line):
            frames = chains[int(line, 16)] = []
            continue
        place = _DISCRIMINATOR.sub("", next(lines, ""))
        file, _, number = place.rpartition(":")
        # Assembler that was built without debug information is named after its object file.
        if not line.startswith("?") and file.endswith((".c", ".h", ".S")):
            frames.append(
                Frame(line, _PREFIX.sub("", file), int(number) if number.isdigit() else 0)
            )
    return {address: tuple(chain) for address, chain in chains.items()}
