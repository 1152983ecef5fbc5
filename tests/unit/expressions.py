"""Every regular expression of the package, and texts that make a slow one go back again and
again."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any

from sources import modules, named

METHODS = frozenset(["search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"])
_ANYWHERE = METHODS - {"match", "fullmatch"}
_LETTERS = "a0 A-\t\n1_./:@<>[](){}\"'#+=\\*,;|&$`\r\0é"
_ENDINGS = ("\0", "\n!", " ")
_MOST_PUMPS = 5
_UNBOUNDED = 50


@dataclass(frozen=True)
class Expression:
    """A regular expression, where it is, and the methods that are called of it."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]

    def run(self, text: str) -> None:
        subject = text.encode("latin-1") if isinstance(self.pattern.pattern, bytes) else text
        if self.methods & _ANYWHERE:
            for _ in self.pattern.finditer(subject):
                pass
        if "match" in self.methods:
            self.pattern.match(subject)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(subject)


def expressions() -> tuple[list[Expression], list[str]]:
    """Return all expressions of the package, and the places of those that only a run knows."""
    found: dict[tuple[str, Any, int], Expression] = {}
    unknown: list[str] = []
    for module in modules():
        file = Path(str(module.__file__))
        name = named(file)
        tree = ast.parse(file.read_text())
        uses = _uses(tree)
        for called, arguments, kept in _calls(tree):
            pattern = _evaluated(arguments, vars(module))
            if pattern is None:
                unknown.append(f"{name}: {ast.unparse(arguments[0])}")
                continue
            methods = uses.get(kept, METHODS) if called == "compile" else {called}
            found[name, pattern.pattern, pattern.flags] = Expression(
                name, pattern, frozenset(methods)
            )
        for pattern in _kept(vars(module).values()):
            found.setdefault(
                (name, pattern.pattern, pattern.flags), Expression(name, pattern, METHODS)
            )
    return list(found.values()), unknown


def _kept(values: Iterable[Any]) -> Iterator[re.Pattern[Any]]:
    for value in values:
        if isinstance(value, re.Pattern):
            yield value
        elif isinstance(value, dict):
            yield from _kept([*value.values()])
        elif isinstance(value, list | tuple | set | frozenset):
            yield from _kept(list(value))


def _uses(tree: ast.Module) -> dict[str, set[str]]:
    """Return the methods that are called of each name; those of a name that is passed on are
    all."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in METHODS
        ):
            found.setdefault(node.value.id, set()).add(node.attr)
    for node in ast.walk(tree):
        for argument in node.args if isinstance(node, ast.Call) else ():
            if isinstance(argument, ast.Name):
                found.pop(argument.id, None)
    return found


def _calls(tree: ast.Module) -> Iterator[tuple[str, list[ast.expr], str]]:
    """Yield the function of ``re``, its pattern and its flags, and the name that keeps the
    result."""
    names = {
        id(node.value): target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=called)) if (
                called in METHODS | {"compile"}
            ):
                flags = [word.value for word in node.keywords if word.arg == "flags"]
                place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(called, 2)
                yield (
                    called,
                    [node.args[0], *(flags or node.args[place:][:1])],
                    names.get(id(node), ""),
                )


def _evaluated(arguments: list[ast.expr], names: dict[str, Any]) -> re.Pattern[Any] | None:
    """Return the compiled expression. In an f-string, what only a run knows is one letter."""
    first = arguments[0]
    if isinstance(first, ast.JoinedStr):
        first.values = [
            part
            if not isinstance(part, ast.FormattedValue) or _value(part.value, names) is not None
            else ast.Constant("x")
            for part in first.values
        ]
    pattern = _value(first, names)
    return (
        None
        if pattern is None
        else re.compile(pattern, *(_value(one, names) for one in arguments[1:]))
    )


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    whole = ast.fix_missing_locations(ast.Expression(node))
    try:
        return eval(compile(whole, "", "eval"), dict(names))
    except (NameError, AttributeError, KeyError, TypeError):
        return None


def attacks(expression: Expression, length: int) -> Iterator[Callable[[], str]]:
    """Yield what makes texts of about ``length`` letters, in which a repeat takes much, and then
    fails."""
    pattern = expression.pattern
    flags = pattern.flags & ~re.UNICODE if pattern.flags & re.ASCII else pattern.flags
    tree = _parser.parse(pattern.pattern, flags)
    # In their order, each once.
    for before, repeated in dict.fromkeys(pair for pair in _repeats(tree, "") if pair[1]):
        for ending in _ENDINGS:
            yield partial(_text, before, repeated, ending, length)
        yield partial(_text, "", before + repeated, "", length)
        yield partial(_text, "", f"{before}{repeated}\n", "", length)


def _text(before: str, repeated: str, ending: str, length: int) -> str:
    return before + repeated * (length // len(repeated)) + ending


def _repeats(items: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield a text that comes before each long repeat, and one that the repeat takes again and
    again."""
    for place, (name, value) in enumerate(items):
        kind = str(name)
        if "REPEAT" in kind:
            _, most, body = value
            if most > _UNBOUNDED:
                rest = [*items][place + 1 :]
                for text in islice(_texts_of(body, rest), _MOST_PUMPS):
                    yield before, text
            yield from _repeats(body, before)
        for inner in _inner(kind, value):
            yield from _repeats(inner, before)
        before += next(_samples([(name, value)]), "")


def _inner(kind: str, value: Any) -> list[Any]:
    """Return the parts of an item that are expressions themselves."""
    if kind in ("SUBPATTERN", "BRANCH", "ASSERT", "ASSERT_NOT"):
        last = value[-1]
        return list(last) if kind == "BRANCH" else [last]
    return [value] if kind == "ATOMIC_GROUP" else []


def _texts_of(body: Any, rest: list[Any]) -> Iterator[str]:
    """Yield texts that ``body`` takes; first those that what follows it could take as well."""
    texts = list(islice(_samples(body), 40))
    follows = [_letters(item) for item in rest[:3]]
    texts.sort(key=lambda text: not any(text[:1] in letters for letters in follows))
    yield from texts


def _samples(items: Any) -> Iterator[str]:
    """Yield texts that match, each differing from the first in one item."""
    options = [list(islice(_of_item(name, value), 30)) or [""] for name, value in items]
    first = [choices[0] for choices in options]
    yield "".join(first)
    for place, choices in enumerate(options):
        for other in choices[1:]:
            yield "".join([*first[:place], other, *first[place + 1 :]])


def _of_item(name: Any, value: Any) -> Iterator[str]:
    kind = str(name)
    if kind == "BRANCH":
        for branch in value[1]:
            yield next(_samples(branch))
    elif kind in ("SUBPATTERN", "ATOMIC_GROUP"):
        yield from _samples(value[-1] if kind == "SUBPATTERN" else value)
    elif "REPEAT" in kind:
        least, _, body = value
        for text in _samples(body):
            yield text * max(least, 1)
        if not least:
            yield ""
    else:
        yield from _letters((name, value))


def _letters(item: Any) -> str:
    """Return letters that an item takes, of those that expressions distinguish."""
    kind = str(item[0])
    if kind not in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
        return ""
    if kind == "LITERAL":
        return chr(item[1])
    return "".join(letter for letter in _LETTERS if _takes(item)(letter))


_CACHE: dict[str, Callable[[str], Any]] = {}


def _takes(item: Any) -> Callable[[str], Any]:
    key = repr(item)
    if key not in _CACHE:
        state = _parser.State()
        state.flags = state.str = 0
        _CACHE[key] = _compiler.compile(_parser.SubPattern(state, [item]), 0).fullmatch
    return _CACHE[key]
