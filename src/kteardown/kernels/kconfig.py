"""Kernel configurations: the symbols that the fragments set, and whether Kconfig accepted them."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import BuildError, InputError
from kteardown.inputs.fragments import fragment_file, fragment_places, is_fragment_path
from kteardown.inputs.load import read_text
from kteardown.kernels.kconfig_refusal import refusal_reasons
from kteardown.model.arch import Arch
from kteardown.model.experiment import SYMBOL

_SET = re.compile(r"CONFIG_(\w+)=(.+)")
_UNUSED_TOOLS = re.compile(r"RUSTC_|PAHOLE_|BINDGEN_")
_UNSET = re.compile(r"#\s*CONFIG_(\w+) is not set")


@dataclass(frozen=True)
class WantedSymbol:
    """One symbol that a fragment sets. ``is not set`` has the value ``n``."""

    symbol: str
    value: str
    optional: bool
    """Whether Kconfig may refuse it because it does not exist in every version or on every architecture."""
    file: str
    line: int

    def text(self) -> str:
        """Return the symbol as a line of a configuration."""
        return (
            f"# CONFIG_{self.symbol} is not set"
            if self.value == "n"
            else f"CONFIG_{self.symbol}={self.value}"
        )


def parse_fragment(text: str, file: str) -> list[WantedSymbol]:
    """Parse one fragment into its symbols, in order.

    A comment that begins with ``optional`` applies to the symbols directly below it, up to the
    next blank line or comment. Raises InputError with file and line for a line that is neither
    a symbol nor a comment, and for a symbol that is set twice.
    """
    wanted: list[WantedSymbol] = []
    comment, optional = False, False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        match = _SET.fullmatch(line) or _UNSET.fullmatch(line)
        if match:
            value = match[2] if match.re is _SET else "n"
            if any(other.symbol == match[1] for other in wanted):
                raise InputError(
                    f"{file}:{number}: CONFIG_{match[1]} is set twice", hint="remove one of the two lines."
                )
            wanted.append(WantedSymbol(match[1], value, optional, file, number))
            comment = False
        elif line.startswith("#"):
            if not comment:
                optional = line.lstrip("# ").lower().startswith("optional")
            comment = True
        elif line:
            # Any file can be named as a fragment, and its lines may be secrets.
            quoted = f"{line!r} " if re.match(r"#?\s*CONFIG_\w|[A-Z0-9_]+=[ymn]$", line) else ""
            raise InputError(
                f"{file}:{number}: {quoted}is neither a symbol nor a comment",
                hint="write CONFIG_NAME=value, or a comment that begins with #.",
            )
        else:
            comment, optional = False, False
    return wanted


def wanted_symbols(folder: Path, arch: Arch, fragments: Iterable[str]) -> list[WantedSymbol]:
    """Merge the base, the architecture and the fragments of ``folder``; one entry per symbol.

    The architecture overrides the base, and the fragments override both. A fragment may be one symbol
    (CONFIG_NET=y), which overrides an equal one of a file, or the path of a file. What ``folder`` does not
    have is looked up in ``./kernels/fragments``. Raises InputError for an unknown fragment and for two
    fragments that set a symbol to different values.
    """
    merged: dict[str, WantedSymbol] = {}
    for name in ("base.config", f"{arch}.config"):
        merged.update({w.symbol: w for w in parse_fragment((folder / name).read_text(), name)})
    chosen: dict[str, WantedSymbol] = {}
    for fragment in sorted(set(fragments)):
        for want in _fragment(fragment, folder / "fragments"):
            other = chosen.setdefault(want.symbol, want)
            if other.value != want.value:
                raise InputError(
                    f"{want.file}:{want.line} sets CONFIG_{want.symbol}={want.value}, "
                    f"but {other.file}:{other.line} sets it to {other.value}",
                    hint="choose workloads that do not need both fragments, or change one of them.",
                )
            chosen[want.symbol] = other if other.optional < want.optional else want
    return list({**merged, **chosen}.values())


def _fragment(name: str, folder: Path) -> list[WantedSymbol]:
    if re.fullmatch(SYMBOL, name):
        symbol = name.removesuffix("?")
        return parse_fragment(f"# optional\n{symbol}" if symbol != name else name, "--config")
    path = fragment_file(name, fragment_places(shipped=folder))
    shipped = not is_fragment_path(name) and path.parent == folder
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: cannot be read: {why}", hint="name a file of text.") from error
    return parse_fragment(text, f"fragments/{path.name}" if shipped else str(path))


def wanted_digest(wanted: Iterable[WantedSymbol]) -> str:
    """Return the SHA-256 of the symbols that fragments set, in hexadecimal digits."""
    return hashlib.sha256("\n".join(sorted(want.text() for want in wanted)).encode()).hexdigest()


def parse_config(text: str) -> dict[str, str]:
    """Return the symbols of a .config with their values; symbols that are not set are absent."""
    return {match[1]: match[2] for line in text.splitlines() if (match := _SET.fullmatch(line))}


def digest(text: str) -> str:
    """Return the SHA-256 of the symbols that a .config sets, in hexadecimal digits.

    Kconfig also records the versions of tools that these kernels are not built with; these symbols are
    left out. So a host with a Rust compiler and one without, which make the same image, have equal digests.
    """
    config = parse_config(text)
    lines = sorted(f"{name}={value}" for name, value in config.items() if not _UNUSED_TOOLS.match(name))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def refused(wanted: Iterable[WantedSymbol], config: Mapping[str, str]) -> list[WantedSymbol]:
    """Return the symbols, without the optional ones, whose value in ``config`` is not the wanted one."""
    return [w for w in wanted if not w.optional and config.get(w.symbol, "n") != w.value]


def check(
    wanted: Sequence[WantedSymbol], config: Mapping[str, str], tree: Path, arch: Arch, source: str
) -> None:
    """Raise BuildError, with the reasons, if ``olddefconfig`` dropped or changed wanted symbols."""
    lost = refused(wanted, config)
    if not lost:
        return
    lines = [f"{len(lost)} configuration symbol(s) cannot be set in {source} for {arch}:"]
    for want in lost:
        got = config.get(want.symbol, "n")
        lines.append(f"  {want.file}:{want.line}: CONFIG_{want.symbol}: wanted {want.value}, got {got}")
        lines += [f"    {reason}" for reason in refusal_reasons(tree, arch, want.symbol, config)]
    raise BuildError(
        "\n".join(lines),
        hint="set the symbols that it depends on in the same fragment, or mark it with a comment "
        "'# optional: REASON' on the line above it.",
    )
