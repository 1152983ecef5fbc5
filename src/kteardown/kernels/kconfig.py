"""Configurations: what the fragments want, and whether Kconfig granted it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from kteardown.errors import BuildError, InputError
from kteardown.kernels.kconfig_refusal import why
from kteardown.model.arch import Arch

_SET = re.compile(r"CONFIG_(\w+)=(.+)")
_BYSTANDER = re.compile(r"RUSTC_|PAHOLE_|BINDGEN_")
_UNSET = re.compile(r"#\s*CONFIG_(\w+) is not set")


@dataclass(frozen=True)
class Wanted:
    """One symbol that a fragment sets. ``n`` and "is not set" are the same."""

    symbol: str
    value: str
    optional: bool
    """May be refused: it does not exist in every version or on every architecture."""
    file: str
    line: int

    def text(self) -> str:
        """As a line of a configuration."""
        return (
            f"# CONFIG_{self.symbol} is not set"
            if self.value == "n"
            else f"CONFIG_{self.symbol}={self.value}"
        )


def parse_fragment(text: str, file: str) -> list[Wanted]:
    """The symbols of one fragment, in order.

    A comment that begins with ``optional`` covers the symbols right below it, up to the
    next blank line or comment. Raises InputError with file and line for anything that is
    neither a symbol nor a comment, and for a symbol set twice.
    """
    wanted: list[Wanted] = []
    comment, optional = False, False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        match = _SET.fullmatch(line) or _UNSET.fullmatch(line)
        if match:
            value = match[2] if match.re is _SET else "n"
            if any(other.symbol == match[1] for other in wanted):
                raise InputError(
                    f"{file}:{number}: CONFIG_{match[1]} is set twice", hint="Keep one of the two."
                )
            wanted.append(Wanted(match[1], value, optional, file, number))
            comment = False
        elif line.startswith("#"):
            if not comment:
                optional = line.lstrip("# ").lower().startswith("optional")
            comment = True
        elif line:
            raise InputError(
                f"{file}:{number}: {line!r} is no configuration line",
                hint="Write CONFIG_NAME=value, or a comment that begins with #.",
            )
        else:
            comment, optional = False, False
    return wanted


def wanted_of(folder: Path, arch: Arch, fragments: Iterable[str]) -> list[Wanted]:
    """What base, architecture and fragments want together, one entry a symbol.

    The architecture has its way over the base, and the fragments, which cannot
    contradict each other, over both. Raises InputError for an unknown fragment.
    """
    merged: dict[str, Wanted] = {}
    for name in ("base.config", f"{arch}.config"):
        merged.update({w.symbol: w for w in parse_fragment((folder / name).read_text(), name)})
    chosen: dict[str, Wanted] = {}
    for fragment in sorted(set(fragments)):
        path = folder / "fragments" / f"{fragment}.config"
        if not path.is_file():
            raise _unknown_fragment(fragment, path.parent)
        for want in parse_fragment(path.read_text(), f"fragments/{path.name}"):
            other = chosen.setdefault(want.symbol, want)
            if other.value != want.value:
                raise InputError(
                    f"{want.file}:{want.line} wants CONFIG_{want.symbol}={want.value}, "
                    f"and {other.file}:{other.line} wants {other.value}",
                    hint="These two cannot be in one kernel: choose other workloads, or change one.",
                )
            chosen[want.symbol] = other if other.optional < want.optional else want
    return list({**merged, **chosen}.values())


def parse_config(text: str) -> dict[str, str]:
    """Symbol -> value of a .config; what is not set is absent."""
    return {match[1]: match[2] for line in text.splitlines() if (match := _SET.fullmatch(line))}


def digest(text: str) -> str:
    """SHA-256 of what a .config sets, hexadecimal.

    What Kconfig writes down of tools that build no part of such a kernel is left out: two
    machines, one with a Rust compiler in its path, make the same image.
    """
    config = parse_config(text)
    lines = sorted(f"{name}={value}" for name, value in config.items() if not _BYSTANDER.match(name))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def refused(wanted: Iterable[Wanted], config: Mapping[str, str]) -> list[Wanted]:
    """The symbols, optional ones aside, that ``config`` does not have as they were wanted."""
    return [w for w in wanted if not w.optional and config.get(w.symbol, "n") != w.value]


def check(wanted: Sequence[Wanted], config: Mapping[str, str], tree: Path, arch: Arch, source: str) -> None:
    """Raise BuildError naming every symbol that did not survive ``olddefconfig``, and why."""
    lost = refused(wanted, config)
    if not lost:
        return
    lines = [f"{len(lost)} configuration symbol(s) cannot be had from {source} for {arch}:"]
    for want in lost:
        got = config.get(want.symbol, "n")
        lines.append(f"  {want.file}:{want.line}: CONFIG_{want.symbol}: wanted {want.value}, got {got}")
        lines += [f"    {reason}" for reason in why(tree, arch, want.symbol, config)]
    raise BuildError(
        "\n".join(lines),
        hint="Set what it depends on in the same fragment, or put '# optional: why' above it.",
    )


def _unknown_fragment(name: str, folder: Path) -> InputError:
    known = sorted(path.stem for path in folder.glob("*.config"))
    close = get_close_matches(name, known, 1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return InputError(
        f"there is no configuration fragment {name!r}", hint=f"{hint}Known: {', '.join(known)}."
    )
