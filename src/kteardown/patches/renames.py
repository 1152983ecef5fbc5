"""Whether a series changes only names and arguments in a file, as where it renames a function.

Arguments are added to a call or removed from it; those of a call with another name may differ.

A treewide series touches files that base does not compile, only because they use what it renames.
Their code does not change, so they are no reason to compile them.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kteardown.patches.changed_lines import changed_hunks

# Comments, also the lines of one that began before, and what is included are no tokens.
_TOKEN = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*+|^[ \t]*+\*(?=[\s/]|$)[^\n]*+|^[ \t]*+#[ \t]*+include\b[^\n]*+"
    r'|("(?:\\.|[^"\\\n])*+"|\'(?:\\.|[^\'\\\n])++\'|[A-Za-z_]\w*+|\d[\w.]*+|\S)',
    re.DOTALL | re.MULTILINE,
)
_NAME = re.compile(r"[A-Za-z_]\w*+")
# Another one of these is other code.
_KEYWORDS = re.compile(
    "auto|bool|break|case|char|const|continue|default|do|double|else|enum|extern|false|float|for"
    "|goto|if|inline|int|long|NULL|register|restrict|return|short|signed|sizeof|static|struct"
    "|switch|true|typedef|union|unsigned|void|volatile|while"
)
_LONGEST_ARGUMENT = 50
_LONGEST_ARGUMENTS = 200
_MOST_LEVELS = 20
_MOST_HUNKS = 2000
_MOST_CHANGED = 1 << 16
# A call may begin before the hunk and end after it.
_LINES_BEFORE = 10
_LINES_AFTER = 3
_LONGEST_AROUND = 200


class Edit(NamedTuple):
    """A name that is replaced by another; or, without ``new``, a call with other arguments."""

    name: str
    new: str = ""


class Edits(NamedTuple):
    """What differs between two texts of a file."""

    found: frozenset[Edit]
    complete: bool
    """Whether nothing else differs, except comments, blanks and what is included."""


def edits(before: str, after: str) -> Edits:
    """Return the changes of names and arguments between two texts of a C file."""
    old_lines = before.split("\n")
    new_lines = after.split("\n")
    hunks = changed_hunks(before, after)
    removed = sum(len(old_lines[number - 1]) for old, _ in hunks for number in old)
    added = sum(len(new_lines[number - 1]) for _, new in hunks for number in new)
    found: set[Edit] = set()
    if max(removed, added) > _MOST_CHANGED:
        return Edits(frozenset(), False)
    complete = len(hunks) <= _MOST_HUNKS
    for number, (old, new) in enumerate(hunks[:_MOST_HUNKS]):
        start = new.start - 1 if new else new.start
        end = start + len(new)
        is_last = number + 1 == len(hunks)
        following = len(new_lines) if is_last else hunks[number + 1][1].start - 1
        rest = _tokens_around(new_lines[end : min(end + _LINES_AFTER, following)])
        comparison = _Comparison(
            _tokens_around(new_lines[max(0, start - _LINES_BEFORE) : start]),
            [*_tokens_of(old_lines[n - 1] for n in old), *rest],
            [*_tokens_of(new_lines[n - 1] for n in new), *rest],
        )
        found |= set(comparison.edits)
        complete = complete and comparison.complete
    renamed = [edit.name for edit in found if edit.new]
    return Edits(frozenset(found), complete and len(renamed) == len(set(renamed)))


def _tokens_of(lines: Iterable[str]) -> list[str]:
    return [token for token in _TOKEN.findall("\n".join(lines)) if token]


def _tokens_around(lines: Sequence[str]) -> list[str]:
    """Return the tokens of lines around a hunk, without those of long lines."""
    return _tokens_of(line for line in lines if len(line) <= _LONGEST_AROUND)


class _Call(NamedTuple):
    """A call whose arguments are compared."""

    callee: str
    """Empty if it is not a name."""
    renamed: bool
    edits_before: int
    """How many edits were found before its arguments."""


class _Comparison:
    """Compares the tokens of a hunk, from the beginning to the first that is another change.

    ``before`` are tokens before the hunk, where a call may begin whose arguments differ.
    """

    def __init__(self, before: Sequence[str], old: Sequence[str], new: Sequence[str]) -> None:
        self.edits: list[Edit] = []
        self._old = old
        self._new = new
        self._at = 0
        self._new_at = 0
        self._calls: list[_Call] = []
        self._last = ("", "")
        for token in before:
            self._go_on(token, token)
        while self._at < len(old) and self._new_at < len(new) and self._compare():
            pass
        self.complete = self._at == len(old) and self._new_at == len(new)
        """Whether all tokens were compared."""

    def _compare(self) -> bool:
        """Go on by a token or by an argument. Return False if something else differs."""
        old = self._old[self._at]
        new = self._new[self._new_at]
        if old != new and (length := self._argument(self._new, self._new_at, old)):
            self._new_at += length
            return True
        if old != new and (length := self._argument(self._old, self._at, new)):
            self._at += length
            return True
        if old != new:
            if not (_is_name(old) and _is_name(new)):
                return self._skip_arguments()
            self.edits.append(Edit(old, new))
        self._go_on(old, new)
        self._at += 1
        self._new_at += 1
        return True

    def _go_on(self, old: str, new: str) -> None:
        """Remember in which calls the next token is."""
        if new == "(":
            last, name = self._last
            callee = name if _is_name(name) else ""
            self._calls.append(_Call(callee, last != name, len(self.edits)))
        elif new == ")" and self._calls:
            self._calls.pop()
        elif new in (";", "{", "}"):
            self._calls.clear()
        self._last = (old, new)

    def _argument(self, tokens: Sequence[str], start: int, following: str) -> int:
        """Return how many tokens at ``start`` are an argument that the other side lacks."""
        callee = self._calls[-1].callee if self._calls else ""
        length = _argument(tokens, start, following, self._last[1]) if callee else 0
        self.edits += [Edit(callee)] if length else []
        return length

    def _skip_arguments(self) -> bool:
        """Go to the end of the innermost call that has another name, and so other arguments.

        Return False if there is none.
        """
        for levels, call in enumerate(reversed(self._calls), 1):
            at = _closing(self._old, self._at, levels) if call.renamed else 0
            new_at = _closing(self._new, self._new_at, levels) if call.renamed else 0
            if at and new_at:
                self.edits[call.edits_before :] = [Edit(call.callee)]
                del self._calls[len(self._calls) - levels + 1 :]
                self._at, self._new_at = at, new_at
                return True
            if call.renamed or levels > _MOST_LEVELS:
                break
        return False


def _closing(tokens: Sequence[str], start: int, levels: int) -> int:
    """Return the place of the parenthesis that closes ``levels`` open ones; 0 if it is far away."""
    for place in range(start, min(len(tokens), start + _LONGEST_ARGUMENTS)):
        levels += (tokens[place] == "(") - (tokens[place] == ")")
        if levels == 0:
            return place
    return 0


def _argument(tokens: Sequence[str], start: int, following: str, last: str) -> int:
    """Return how many tokens at ``start`` are an argument that the other side lacks, with its
    comma; 0 if they are not.

    ``following`` is the next token of the other side, and ``last`` the one before ``start``.
    """
    leads = tokens[start] == ","
    if following not in tokens[start : start + _LONGEST_ARGUMENT + 2]:
        return 0
    if not leads and last not in ("(", ","):
        return 0
    depth = 0
    for end in range(start + leads, min(len(tokens), start + _LONGEST_ARGUMENT)):
        token = tokens[end]
        if depth == 0 and token in (",", ")"):
            # It is "argument," before another one, or the last one.
            after = end + 1 if token == "," and not leads else end
            is_next = after < len(tokens) and tokens[after] == following
            return after - start if is_next and end > start + leads else 0
        depth += (token in "([{") - (token in ")]}")
    return 0


def _is_name(token: str) -> bool:
    return bool(_NAME.fullmatch(token)) and not _KEYWORDS.fullmatch(token)
