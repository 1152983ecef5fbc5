"""Which functions of a variant differ from those of its base, by the instructions in their objects.

A diff does not say which functions use the macro or the structure that it changes; the compiled code does.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from kteardown import sandbox
from kteardown.model.arch import ARCHITECTURES, Arch

Functions = Mapping[str, Sequence[str]]
"""By the name of an object, the names of functions."""

_FILE = re.compile(r"^(\S+):\s+file format .*$", re.MULTILINE)
_FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:\n((?:.+\n)*)", re.MULTILINE)
# What depends on where a function, a string or a static variable is: addresses, and offsets in sections.
_ADDRESS = re.compile(
    r"^ *[0-9a-f]+:\t|(?<=\t)[0-9a-f]+: (?=R_)|\b[0-9a-f]+ (?=<)| +# [^\t\n]*"
    r"|<[^>\n]*>(?=\t[0-9a-f]+: R_)",  # Whatever is there before the relocation.
    re.MULTILINE,
)
_PLACE = re.compile(r"(?<=\t)\.(?:L\w+|([\w.]+))(?:[+-]0x[0-9a-f]+)?$", re.MULTILINE)
_PADDING = re.compile(r"(?:data16 |cs )*(?:nop\w?\b.*|xchg +%ax,%ax|int3)")


def changed_functions(base: Path, variant: Path, objects: Sequence[str], arch: Arch) -> Functions | None:
    """Return the functions that differ in ``objects``, which are in the build folders of two kernels.

    A function that only one of them has differs. None if no disassembler is installed.
    """
    program = ARCHITECTURES[arch].compiler.removesuffix("gcc") + "objdump"
    if shutil.which(program) is None:
        return None
    before, after = (_functions(program, folder, objects) for folder in (base, variant))
    found = {}
    for name in objects:
        one, other = before.get(name, {}), after.get(name, {})
        differing = {each for each in one.keys() | other.keys() if one.get(each) != other.get(each)}
        if differing:
            found[name] = tuple(sorted(differing))
    return found


def _functions(program: str, folder: Path, objects: Sequence[str]) -> Mapping[str, Mapping[str, list[str]]]:
    """Return the instructions of each function of each object, without what depends on where they are."""
    there = [name for name in objects if (folder / name).is_file()]
    if not there:
        return {}
    argv = [program, "--disassemble", "--reloc", "--wide", "--no-show-raw-insn", *there]
    _, *parts = _FILE.split(sandbox.capture(argv, [folder], folder))
    return {name: _bodies(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _bodies(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for function in _FUNCTION.finditer(text):
        body = _PLACE.sub(r".\1", _ADDRESS.sub("", function[2])).splitlines()
        while body and _PADDING.fullmatch(body[-1]):
            body.pop()
        # The compiler divides functions, and makes copies of them: f.cold, f.constprop.0.
        name = function[1].split(".")[0]
        if body and name and not name.startswith("__pfx_"):
            found[name].append("".join(f"{line}\n" for line in body))
    return {name: sorted(bodies) for name, bodies in found.items()}
