"""Kernel configurations: the symbols that the fragments set, and why Kconfig refused one."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from kteardown.errors import BuildError, InputError
from kteardown.inputs.fragments import fragment_file, fragment_places, is_fragment_path
from kteardown.inputs.toml_files import read_text
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.model.experiment import SYMBOL

_SET = re.compile(r"CONFIG_(\w+)=(.+)")
_UNUSED_TOOLS = re.compile(r"RUSTC_|PAHOLE_|BINDGEN_")
_UNSET = re.compile(r"#\s*CONFIG_(\w+) is not set")
_ENTRY = re.compile(r"(?:menu)?config\s+(\w+)$")
_BLOCK = re.compile(
    r"(?:menuconfig|config|menu|endmenu|if|endif|choice|endchoice|source|comment|mainmenu)\b"
)
_DEFAULT = re.compile(r"(?:def_bool|def_tristate|default)\s+(\S+)(?:\s+if\s+(.+))?$")
_PROMPT = re.compile(r"(?:bool|tristate|int|hex|string|prompt|def_bool|def_tristate)\s+[\"']")
_SOURCE = re.compile(r"source\s+\"([^\"]+)\"")
_MOST_AROUND = 64
_DEEPEST = 50


@dataclass(frozen=True)
class WantedSymbol:
    """One symbol that a fragment sets. ``is not set`` has the value ``n``."""

    symbol: str
    value: str
    optional: bool
    """Whether Kconfig may refuse it because it does not exist in every version or on every
    architecture."""
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
    comment = False
    optional = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        match = _SET.fullmatch(line) or _UNSET.fullmatch(line)
        if match:
            value = match[2] if match.re is _SET else "n"
            if any(earlier.symbol == match[1] for earlier in wanted):
                raise InputError(
                    f"{file}:{number}: CONFIG_{match[1]} is set twice",
                    hint="remove one of the two lines.",
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
            comment = False
            optional = False
    return wanted


def wanted_symbols(folder: Path, arch: Arch, fragments: Iterable[str]) -> list[WantedSymbol]:
    """Merge the base, the architecture and the fragments of ``folder``; one entry per symbol.

    The architecture overrides the base, and the fragments override both. A fragment may be one
    symbol (CONFIG_NET=y), which overrides an equal one of a file, or the path of a file. What
    ``folder`` does not have is looked up in ``./kernels/fragments``. Raises InputError for an
    unknown fragment and for two fragments that set a symbol to different values.
    """
    merged: dict[str, WantedSymbol] = {}
    for name in ("base.config", f"{arch}.config"):
        merged.update({w.symbol: w for w in parse_fragment((folder / name).read_text(), name)})
    chosen: dict[str, WantedSymbol] = {}
    for fragment in sorted(set(fragments)):
        for want in _fragment(fragment, folder / "fragments"):
            earlier = chosen.setdefault(want.symbol, want)
            if earlier.value != want.value:
                raise InputError(
                    f"{want.file}:{want.line} sets CONFIG_{want.symbol}={want.value}, "
                    f"but {earlier.file}:{earlier.line} sets it to {earlier.value}",
                    hint="choose workloads that do not need both fragments, or change one of them.",
                )
            chosen[want.symbol] = earlier if earlier.optional < want.optional else want
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
        raise InputError(
            f"{path}: cannot be read: {why}", hint="name a text file that you may read."
        ) from error
    return parse_fragment(text, f"fragments/{path.name}" if shipped else str(path))


def wanted_digest(wanted: Iterable[WantedSymbol]) -> str:
    """Return the SHA-256 of the symbols that fragments set, in hexadecimal digits."""
    return hashlib.sha256("\n".join(sorted(want.text() for want in wanted)).encode()).hexdigest()


def parse_config(text: str) -> dict[str, str]:
    """Return the symbols of a .config with their values; symbols that are not set are absent."""
    return {match[1]: match[2] for line in text.splitlines() if (match := _SET.fullmatch(line))}


def digest(text: str) -> str:
    """Return the SHA-256 of the symbols that a .config sets, in hexadecimal digits.

    Kconfig also records the versions of tools that these kernels are not built with; these symbols
    are left out. So a host with a Rust compiler and one without, which make the same image, have
    equal digests.
    """
    config = parse_config(text)
    lines = sorted(
        f"{name}={value}" for name, value in config.items() if not _UNUSED_TOOLS.match(name)
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def refused(wanted: Iterable[WantedSymbol], config: Mapping[str, str]) -> list[WantedSymbol]:
    """Return the symbols, without the optional ones, whose value in ``config`` is not the wanted
    one."""
    return [w for w in wanted if not w.optional and config.get(w.symbol, "n") != w.value]


def check_config(
    wanted: Sequence[WantedSymbol], config: Mapping[str, str], tree: Path, arch: Arch, source: str
) -> None:
    """Raise BuildError, with the reasons, if ``olddefconfig`` dropped or changed wanted symbols."""
    lost = refused(wanted, config)
    if not lost:
        return
    lines = [f"{len(lost)} configuration symbol(s) cannot be set in {source} for {arch}:"]
    for want in lost:
        got = config.get(want.symbol, "n")
        lines.append(
            f"  {want.file}:{want.line}: CONFIG_{want.symbol}: wanted {want.value}, got {got}"
        )
        lines += [f"    {reason}" for reason in refusal_reasons(tree, arch, want.symbol, config)]
    raise BuildError(
        "\n".join(lines),
        hint="set the symbols that it depends on in the same fragment, or mark it with a comment "
        "'# optional: REASON' on the line above it.",
    )


@dataclass
class _Definition:
    """One ``config SYMBOL`` block."""

    where: str
    prompt: bool = False
    depends: list[str] = field(default_factory=list)
    inherited: list[str] = field(default_factory=list)
    """Conditions of the ``if`` and ``menu`` blocks around it, in the files that include its file,
    too."""
    defaults: list[str] = field(default_factory=list)
    """What its first default is, and the condition of that; empty if it is ``n``."""
    selects: list[str] = field(default_factory=list)
    """What it selects without a condition."""


def refusal_reasons(tree: Path, arch: Arch, symbol: str, config: Mapping[str, str]) -> list[str]:
    """Return the possible reasons as sentences.

    They name what the symbol depends on, with the values in ``config``, or state that it does not
    exist.
    """
    definitions = _symbols((tree,), arch)
    if symbol not in definitions:
        close = get_close_matches(symbol, definitions, 2)
        return ["no such symbol in this tree" + (f"; similar: {', '.join(close)}" if close else "")]
    reasons = []
    for definition in definitions[symbol]:
        conditions = definition.depends + definition.inherited
        for condition in conditions:
            symbols = dict.fromkeys(re.findall(r"\b[A-Z][A-Z0-9_]+\b", condition))
            values = ", ".join(f"{name}={config.get(name, 'n')}" for name in symbols)
            reasons.append(
                f"{definition.where}: depends on {condition}" + (f" ({values})" if values else "")
            )
        if not definition.prompt:
            reasons.append(
                f"{definition.where}: has no prompt, so only other symbols can select it"
            )
        if not conditions and definition.prompt:
            reasons.append(
                f"{definition.where}: has no dependencies; another symbol selects or excludes it"
            )
    return reasons


def conditions_of(
    trees: Sequence[Path], arch: Arch, symbol: str
) -> tuple[bool, list[str], list[str]]:
    """Return whether a symbol has a prompt, the conditions of its first definition, and its
    default's."""
    for definition in _symbols(tuple(trees), arch).get(symbol, ()):
        return definition.prompt, definition.depends + definition.inherited, definition.defaults
    return True, [], []


def selectors_of(trees: Sequence[Path], arch: Arch, symbol: str) -> list[str]:
    """Return the symbols that select ``symbol`` without a condition, those with a prompt first.

    Without those that depend on what this architecture does not have.
    """
    symbols = _symbols(tuple(trees), arch)

    def can_hold(condition: str) -> bool:
        names = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", condition))
        return not names or not names.isdisjoint(symbols)

    selectors = [
        (not definition.prompt, name)
        for name, definitions in symbols.items()
        for definition in definitions
        if symbol in definition.selects
        and all(map(can_hold, definition.depends + definition.inherited))
    ]
    return [name for _, name in sorted(selectors, key=lambda pair: pair[0])]


@cache
def _symbols(trees: tuple[Path, ...], arch: Arch) -> Mapping[str, list[_Definition]]:
    """Return the definitions of all symbols. A file is read from the first of ``trees`` that has
    it.

    Reading begins with the top file, as Kconfig does; then come the files that no file which was
    read names.
    """
    arch_folder = ARCHITECTURES[arch].source_folder
    files: dict[str, Path] = {}
    for tree in trees:
        for path in sorted(tree.rglob("Kconfig*")):
            parts = path.relative_to(tree).parts
            foreign = parts[0] == "arch" and len(parts) > 2 and parts[1] != arch_folder
            if path.is_file() and not foreign and parts[0] not in ("Documentation", "build"):
                files.setdefault("/".join(parts), path)
    definitions: dict[str, list[_Definition]] = {}
    texts = {
        name: path.read_text(errors="replace").replace("$(SRCARCH)", arch_folder)
        for name, path in files.items()
    }
    for name in ("Kconfig", *files):
        if name in texts:
            _Reader(name, texts, definitions).read()
    return definitions


class _Reader:
    """Reads one Kconfig file and those that it includes, which are taken from ``texts``."""

    def __init__(
        self,
        file: str,
        texts: dict[str, str],
        definitions: dict[str, list[_Definition]],
        outer: Sequence[str] = (),
    ) -> None:
        self._file, self._texts, self._definitions = file, texts, definitions
        self._around: list[list[str]] = [list(outer)]
        self._in_menu = False
        self._current: _Definition | None = None

    def read(self, depth: int = 0) -> None:
        """Add what the file defines to the definitions."""
        in_help = False
        for number, line in _logical_lines(self._texts.pop(self._file)):
            words = line.strip()
            # Help texts are indented; the first line that is not indented ends one.
            if not words or words.startswith("#") or (in_help and line[0] in " \t"):
                continue
            in_help = words in ("help", "---help---")
            named = _SOURCE.match(words)
            if named and named[1] in self._texts and depth < _DEEPEST:
                _Reader(named[1], self._texts, self._definitions, self._conditions()).read(
                    depth + 1
                )
            self._line(number, words.partition(" #")[0].rstrip())

    def _conditions(self) -> list[str]:
        return [condition for block in self._around for condition in block][:_MOST_AROUND]

    def _line(self, number: int, words: str) -> None:
        if _BLOCK.match(words):
            self._block(number, words)
        elif self._in_menu and words.startswith(("depends on ", "visible if ")):
            self._around[-1].append(words.split(None, 2)[2])
        elif self._current is not None:
            if words.startswith("depends on "):
                self._current.depends.append(words.removeprefix("depends on ").strip())
            elif words.startswith("select ") and len(words.split()) == 2:
                self._current.selects.append(words.split()[1])
            default = _DEFAULT.match(words)
            if default and default[1] != "n" and not self._current.defaults:
                self._current.defaults += [part for part in default.groups() if part]
            self._current.prompt = self._current.prompt or bool(_PROMPT.match(words))

    def _block(self, number: int, words: str) -> None:
        keyword = words.split(maxsplit=1)[0]
        self._current = None
        self._in_menu = keyword in ("menu", "choice")
        if keyword == "if":
            self._around.append([words.removeprefix("if").strip()])
        elif self._in_menu:
            self._around.append([])
        elif keyword in ("endif", "endmenu", "endchoice") and len(self._around) > 1:
            self._around.pop()
        elif entry := _ENTRY.match(words):
            self._current = _Definition(f"{self._file}:{number}", inherited=self._conditions())
            self._definitions.setdefault(entry[1], []).append(self._current)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers; a line that ends in a backslash is joined with the next
    one."""
    joined = ""
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        yield start, joined + line
        joined = ""
        start = 0
