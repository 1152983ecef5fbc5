"""The configuration symbols that the symbols of a series depend on."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kteardown.kernels.kconfig import conditions_of, selectors_of
from kteardown.model.arch import Arch

_PLAIN = re.compile(r"([A-Z][A-Z0-9_]*)(?:\s*!=\s*n|\s*=\s*y)?")
_MOST_NEEDED = 40


def with_dependencies(
    trees: Sequence[Path], arch: Arch, symbols: Sequence[str], config: Mapping[str, str]
) -> list[str]:
    """Return ``symbols`` with those that they depend on and that ``config`` does not set.

    Of alternatives the first is taken. What this does not find, the build reports: Kconfig has the
    last word.
    """
    needed: dict[str, None] = {}
    todo = list(symbols)
    while todo and len(needed) < _MOST_NEEDED:
        symbol = todo.pop()
        if symbol in needed or config.get(symbol, "n") == "y":
            continue
        needed[symbol] = None
        has_prompt, conditions, defaults = conditions_of(trees, arch, symbol)
        if not has_prompt:
            # Only its default or another symbol can set it.
            conditions = [*conditions, *defaults]
            todo += [] if defaults else selectors_of(trees, arch, symbol)[:1]
        # A && (B || C != n) needs A, and B unless C is set.
        for part in (part for condition in conditions for part in _split(condition, "&&")):
            choices = _split(_bare(part), "||")
            plain = [match[1] for choice in choices if (match := _PLAIN.fullmatch(choice.strip()))]
            if plain and not any(_holds(choice, config) for choice in choices):
                todo.append(plain[0])
    return list(needed)


def _holds(condition: str, config: Mapping[str, str]) -> bool:
    """Return whether ``A && !B`` is true in ``config``; False for other terms, whatever they
    are."""
    terms = _split(_bare(condition), "&&")
    parsed = [(_PLAIN.fullmatch(term.removeprefix("!").strip()), term[:1] == "!") for term in terms]
    return all(name and (config.get(name[1], "n") == "y") != negated for name, negated in parsed)


def _bare(text: str) -> str:
    """Return a condition without the parentheses around all of it."""
    text = text.strip()
    is_wrapped = text.startswith("(") and len(_split(text, "&&")) == len(_split(text, "||")) == 1
    return text[1:-1].strip() if is_wrapped else text


def _split(text: str, operator: str) -> list[str]:
    """Split a condition at an operator that is not inside of parentheses."""
    parts = []
    depth = 0
    start = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith(operator, place):
            parts.append(text[start:place])
            start = place + len(operator)
    return [part.strip() for part in (*parts, text[start:])]
