"""What comes from outside: from a mail, a script, a guest, a console or a run directory.

The program that reads an answer may be a language model, to which any text can look like an
instruction. So what comes from outside stands in an object with ``"from_outside": true``, with no
character that acts and is not seen, and with a limit of its length. It never stands in the
description of a tool.
"""

import json
from collections.abc import Iterator
from typing import Any

from kteardown.visible import on_one_line, visible

MOST_VALUE = 20_000
"""Characters of the JSON of one value."""
MOST_PAGE = 12_000
MOST_QUOTE = 120
_LEFT_OUT = "left_out"
# So many items of a list, characters of a text, and levels: tried until the value fits.
_LIMITS = (
    (500, 4000, 40),
    (60, 1000, 14),
    (20, 400, 10),
    (12, 200, 8),
    (8, 160, 6),
    (5, 120, 5),
    (4, 100, 4),
    (3, 80, 3),
    (2, 60, 2),
)
_MOST_KEYS = 200


class NoSuchPlaceError(LookupError):
    """There is nothing at this place of a value. Its text says where the way ends."""


def quoted(text: str) -> str:
    """Return ``text`` for an error message: on one line, visible, bounded, in quotes."""
    line = on_one_line(text)
    return repr(line if len(line) <= MOST_QUOTE else f"{line[:MOST_QUOTE]}...")


def page(text: str, most: int = MOST_PAGE, start: int = 0) -> dict[str, Any]:
    """Return ``most`` characters of a text, marked, from ``start`` on, which is counted from the
    end if it is negative."""
    return {"from_outside": True, **_part("text", text, most, start)}


def end_of(text: str, most: int = MOST_PAGE) -> dict[str, Any]:
    """Return the end of a text, marked."""
    return page(text, most, -most)


def _part(name: str, text: str, most: int, start: int) -> dict[str, Any]:
    shown = visible(text)
    begin = _begin(start, len(shown))
    part = shown[begin : begin + most]
    where = {} if part == shown else {"start": begin, "characters": len(shown)}
    return {name: part, **where}


def _begin(start: int, length: int) -> int:
    return start if start >= 0 else max(0, length + start)


def value(whole: Any, at: str = "", most: int = MOST_VALUE, start: int = 0) -> dict[str, Any]:
    """Return what is at the place ``at`` of a JSON value, marked.

    ``at`` has the names of fields and the numbers of items, with slashes: ``runs/0/results``; a
    slash in a name is written as ``~1``, as in a JSON pointer. If the value is long, lists, texts
    and what is deep inside are cut, and ``left_out`` stands in their place. A text or a list at
    ``at`` itself begins with its character or item ``start``. Raises NoSuchPlaceError.
    """
    marked = {"from_outside": True, "at": at}
    chosen = _at(whole, at)
    if isinstance(chosen, str):
        return marked | _part("value", chosen, min(most, MOST_PAGE), start)
    for items, letters, depth in _LIMITS:
        cut = _Cut(items, letters)
        shown = cut.of(chosen, depth, start)
        # As the SDK writes it into the text of an answer.
        if len(json.dumps(shown, indent=2)) <= most:
            break
    else:
        cut.is_cut = True
        shown = _kind_of(chosen)
    return marked | {"value": shown, **({"is_cut": True} if cut.is_cut else {})}


def _at(whole: Any, at: str) -> Any:
    chosen = whole
    for step in filter(None, at.split("/")):
        name = step.replace("~1", "/").replace("~0", "~")
        inside = isinstance(chosen, dict) and name in chosen
        numbered = isinstance(chosen, list) and name.isdecimal() and int(name) < len(chosen)
        if not inside and not numbered:
            raise NoSuchPlaceError(f"there is no {quoted(name)} in {_kind_of(chosen)}")
        chosen = chosen[name] if inside else chosen[int(name)]
    return chosen


def _kind_of(some: Any) -> str:
    """Return words for a value, without what it says: its keys may be from outside, too."""
    if isinstance(some, dict):
        keys = ", ".join(quoted(str(key)) for key in list(some)[:20])
        return f"an object with {len(some)} fields ({keys})"
    return f"a list with {len(some)} items" if isinstance(some, list) else "a plain value"


class _Cut:
    """Makes a copy of a JSON value within limits, and takes note of whether that left anything
    out."""

    def __init__(self, items: int, letters: int) -> None:
        self.is_cut = False
        self._items = items
        self._letters = letters

    def of(self, some: Any, depth: int, start: int = 0) -> Any:
        if isinstance(some, str):
            return self._text(some)
        if isinstance(some, (dict, list)) and some and depth == 0:
            self.is_cut = True
            return {_LEFT_OUT: _count(some)}
        if isinstance(some, dict):
            return dict(self._fields(some, depth))
        return list(self._list(some, depth, start)) if isinstance(some, list) else some

    def _text(self, text: str) -> str:
        if len(text) <= self._letters:
            return visible(text)
        self.is_cut = True
        return f"{visible(text[: self._letters])}... ({len(text) - self._letters} left out)"

    def _fields(self, some: dict[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
        for number, (name, inner) in enumerate(some.items()):
            if number == _MOST_KEYS:
                self.is_cut = True
                yield _LEFT_OUT, f"{len(some) - number} fields"
                return
            yield self._text(name), self.of(inner, depth - 1)

    def _list(self, some: list[Any], depth: int, start: int) -> Iterator[Any]:
        first = _begin(start, len(some))
        for number, inner in enumerate(some[first:], first):
            if number == first + self._items:
                self.is_cut = True
                yield {_LEFT_OUT: f"items {number} to {len(some) - 1}"}
                return
            yield self.of(inner, depth - 1)


def _count(some: dict[str, Any] | list[Any]) -> str:
    return f"{len(some)} {'fields' if isinstance(some, dict) else 'items'}"
