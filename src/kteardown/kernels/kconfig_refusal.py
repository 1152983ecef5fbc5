"""Find out from the Kconfig files of a source tree why Kconfig refused a symbol."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from kteardown.model.arch import ARCHITECTURES, Arch

_ENTRY = re.compile(r"^(?:menu)?config\s+(\w+)\s*$")
_BLOCK = re.compile(
    r"^(?:menuconfig|config|menu|endmenu|if|endif|choice|endchoice|source|comment|mainmenu)\b"
)
_DEFAULT = re.compile(r"^(?:def_bool|def_tristate|default)\s+(\S+)(?:\s+if\s+(.+))?$")
_PROMPT = re.compile(r"^(?:bool|tristate|int|hex|string|prompt|def_bool|def_tristate)\s+\"")


@dataclass
class _Definition:
    """One ``config SYMBOL`` block."""

    where: str
    prompt: bool = False
    depends: list[str] = field(default_factory=list)
    inherited: list[str] = field(default_factory=list)
    """Conditions of the ``if`` and ``menu`` blocks around it."""
    defaults: list[str] = field(default_factory=list)
    """What its first default is, and the condition of that; empty if it is ``n``."""


def refusal_reasons(tree: Path, arch: Arch, symbol: str, config: Mapping[str, str]) -> list[str]:
    """Return the possible reasons as sentences.

    They name what the symbol depends on, with the values in ``config``, or state that it does not exist.
    """
    names: set[str] = set()
    found = []
    for path in _kconfig_files(tree, arch):
        text = path.read_text(errors="replace")
        names.update(re.findall(r"^\s*(?:menu)?config\s+(\w+)", text, re.MULTILINE))
        if re.search(rf"^\s*(?:menu)?config\s+{symbol}\s*$", text, re.MULTILINE):
            found += _definitions(text, str(path.relative_to(tree)), symbol)
    if not found:
        close = get_close_matches(symbol, names, 2)
        return ["no such symbol in this tree" + (f"; similar: {', '.join(close)}" if close else "")]
    reasons = []
    for definition in found:
        conditions = definition.depends + definition.inherited
        for condition in conditions:
            reasons.append(f"{definition.where}: depends on {condition}{_values(condition, config)}")
        if not definition.prompt:
            reasons.append(f"{definition.where}: has no prompt, so only other symbols can select it")
        if not conditions and definition.prompt:
            reasons.append(f"{definition.where}: has no dependencies; another symbol selects or excludes it")
    return reasons


def conditions_of(trees: Sequence[Path], arch: Arch, symbol: str) -> tuple[bool, list[str], list[str]]:
    """Return whether a symbol has a prompt, the conditions of its first definition, and its default's."""
    for path, text in (each for tree in trees for each in _kconfig_texts(tree, arch)):
        if re.search(rf"^\s*(?:menu)?config\s+{symbol}\s*$", text, re.MULTILINE):
            for definition in _definitions(text, path, symbol):
                return definition.prompt, definition.depends + definition.inherited, definition.defaults
    return True, [], []


def selectors_of(trees: Sequence[Path], arch: Arch, symbol: str) -> list[str]:
    """Return the symbols that select ``symbol`` without a condition, those with a prompt first."""
    found = []
    for _, text in (each for tree in trees for each in _kconfig_texts(tree, arch)):
        if not re.search(rf"^\s*select\s+{symbol}\s*$", text, re.MULTILINE):
            continue
        for block in re.split(r"^(?=(?:menu)?config\s)", text, flags=re.MULTILINE):
            entry = _ENTRY.match(block.splitlines()[0]) if block else None
            prompt = any(_PROMPT.match(line.strip()) for line in block.splitlines())
            if entry and re.search(rf"^\s*select\s+{symbol}\s*$", block, re.MULTILINE):
                found.append((not prompt, entry[1]))
    return [name for _, name in sorted(found, key=lambda one: one[0])]


@cache
def _kconfig_texts(tree: Path, arch: Arch) -> tuple[tuple[str, str], ...]:
    return tuple(
        (str(path.relative_to(tree)), path.read_text(errors="replace")) for path in _kconfig_files(tree, arch)
    )


def _kconfig_files(tree: Path, arch: Arch) -> Iterator[Path]:
    """Yield the Kconfig files of ``tree``, without those of other architectures."""
    own = ARCHITECTURES[arch].source_folder
    for path in sorted(tree.rglob("Kconfig*")):
        parts = path.relative_to(tree).parts
        foreign = parts[0] == "arch" and len(parts) > 2 and parts[1] != own
        if path.is_file() and not foreign and parts[0] not in ("Documentation", "build"):
            yield path


def _definitions(text: str, file: str, symbol: str) -> list[_Definition]:
    reader = _Reader(file, symbol)
    in_help = False
    for number, line in _logical_lines(text):
        words = line.strip()
        # Help texts are indented; the first line that is not indented ends one.
        if not words or words.startswith("#") or (in_help and line[0] in " \t"):
            continue
        in_help = words in ("help", "---help---")
        reader.line(number, words)
    return reader.found


class _Reader:
    """Tracks the nested blocks of one Kconfig file and collects the definitions of one symbol."""

    def __init__(self, file: str, symbol: str) -> None:
        self.found: list[_Definition] = []
        self._file = file
        self._symbol = symbol
        self._around: list[list[str]] = []
        self._in_menu = False
        self._current: _Definition | None = None

    def line(self, number: int, words: str) -> None:
        """Process one line, without the spaces around it and without help texts."""
        if _BLOCK.match(words):
            self._block(number, words)
        elif self._in_menu and words.startswith(("depends on ", "visible if ")):
            self._around[-1].append(words.split(None, 2)[2])
        elif self._current is not None:
            if words.startswith("depends on "):
                self._current.depends.append(words.removeprefix("depends on ").strip())
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
        elif keyword in ("endif", "endmenu", "endchoice") and self._around:
            self._around.pop()
        elif (entry := _ENTRY.match(words)) and entry[1] == self._symbol:
            outer = [condition for block in self._around for condition in block]
            self._current = _Definition(f"{self._file}:{number}", inherited=outer)
            self.found.append(self._current)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers; a line that ends in a backslash is joined with the next one."""
    kept, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        if line.endswith("\\"):
            kept += line[:-1] + " "
            continue
        yield start, kept + line
        kept, start = "", 0


def _values(condition: str, config: Mapping[str, str]) -> str:
    symbols = dict.fromkeys(re.findall(r"\b[A-Z][A-Z0-9_]+\b", condition))
    shown = ", ".join(f"{symbol}={config.get(symbol, 'n')}" for symbol in symbols)
    return f" ({shown})" if shown else ""
