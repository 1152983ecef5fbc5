"""What else must be set so that Kconfig accepts a symbol, as far as its Kconfig files say so plainly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kteardown.kernels.kconfig_refusal import conditions_of, selectors_of
from kteardown.model.arch import Arch

_PLAIN = re.compile(r"([A-Z][A-Z0-9_]*)(?:\s*!=\s*n|\s*=\s*y)?")
_MOST = 40


def with_dependencies(
    trees: Sequence[Path], arch: Arch, symbols: Sequence[str], config: Mapping[str, str]
) -> list[str]:
    """Return ``symbols`` with those that they depend on and that ``config`` does not set.

    Of alternatives the first is taken. What this does not find, the build reports: Kconfig has the last word.
    """
    wanted: dict[str, None] = {}
    todo = list(symbols)
    while todo and len(wanted) < _MOST:
        symbol = todo.pop()
        if symbol in wanted or config.get(symbol, "n") == "y":
            continue
        wanted[symbol] = None
        has_prompt, conditions, defaults = conditions_of(trees, arch, symbol)
        if not has_prompt:
            # Only its default or another symbol can set it.
            conditions = [*conditions, *defaults]
            todo += [] if defaults else selectors_of(trees, arch, symbol)[:1]
        for condition in conditions:
            todo += _needed(condition, config)
    return list(wanted)


def _needed(condition: str, config: Mapping[str, str]) -> list[str]:
    """Return symbols that make ``condition`` true: A && (B || C != n) gives A, and B unless C is set."""
    needed: list[str] = []
    for part in _split(condition, "&&"):
        choices = _split(part.strip().removeprefix("(").removesuffix(")"), "||")
        plain = [found[1] for choice in choices if (found := _PLAIN.fullmatch(choice.strip()))]
        if plain and not any(config.get(choice, "n") == "y" for choice in plain):
            needed.append(plain[0])
    return needed


def _split(text: str, operator: str) -> list[str]:
    """Split a condition at an operator that is not inside of parentheses."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith(operator, place):
            parts.append(text[start:place])
            start = place + len(operator)
    return [part.strip() for part in (*parts, text[start:])]
