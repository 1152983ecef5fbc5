"""Every error has a hint, and all are in the style that ``kteardown.errors`` describes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from kteardown import errors
from kteardown.errors import KteardownError, MissingError
from sources import named, source_files

NAMES = {name for name, value in vars(errors).items() if isinstance(value, type)} | {"UnpackError"}


@cache
def nodes() -> list[tuple[str, ast.Call | ast.Assign]]:
    """Every call and assignment of the sources, with the name of its file."""
    return [
        (named(path), node)
        for path in source_files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.Assign)
    ]


def raised(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str, ast.expr | None]]:
    """Yield line, class and hint of every error constructed in a source. MissingError makes its own
    hint."""
    for node in nodes:
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in NAMES - {"MissingError", "Exception", "Sequence"}:
                yield (
                    node.lineno,
                    name,
                    next((k.value for k in node.keywords if k.arg == "hint"), None),
                )


def has_text(hint: ast.expr | None) -> bool:
    """Return whether the hint exists and is more than one word."""
    if isinstance(hint, ast.Constant):
        return isinstance(hint.value, str) and len(hint.value.split()) > 1
    return hint is not None


@pytest.mark.parametrize(
    ("source", "ok"),
    [
        ("raise InputError('wrong')", False),
        ("raise errors.LabError('wrong', hint='')", False),
        ("raise LabError('wrong', hint='Fix it.')", True),
        ("raise BuildError('wrong', hint=error.hint)", True),
    ],
)
def test_an_error_without_a_hint_is_found(source: str, ok: bool) -> None:
    assert [has_text(hint) for _, _, hint in raised(ast.walk(ast.parse(source)))] == [ok]


def test_every_error_in_the_sources_has_a_hint() -> None:
    found = [
        (f"{file}:{line}: {name}", hint)
        for file, node in nodes()
        for line, name, hint in raised([node])
    ]
    assert len(found) > 100
    assert [where for where, hint in found if not has_text(hint)] == []


NAMES_AT_THE_BEGINNING = {"Chromium", "Debian", "Linux", "Python", "Slurm"}


def texts(value: ast.expr | None) -> Iterator[str]:
    """Yield every text that a message or hint can be as far as the source has it; ``x`` is a
    placeholder."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts
            )
        case ast.IfExp(body=one, orelse=other):
            yield from (*texts(one), *texts(other))
        case ast.BoolOp(values=[*_, last]):
            yield from texts(last)


def begins_in_style(text: str) -> bool:
    """Return whether a text begins in lower case, or with a name: `KTEARDOWN_RUNS`, `QEMU`,
    `Debian`."""
    word = text.split(maxsplit=1)[0].strip(":,'") if text.split() else ""
    return not word.istitle() or word in NAMES_AT_THE_BEGINNING


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        ("choose one.", True),
        ("Choose one.", False),
        ("QEMU is missing", True),
        ("Debian has no suite", True),
    ],
)
def test_the_case_of_the_first_letter(text: str, ok: bool) -> None:
    assert begins_in_style(text) == ok


def texts_of_errors() -> Iterator[tuple[str, str, ast.expr]]:
    """Yield place, ``message`` or ``hint``, and the expression, of all that the sources construct.

    A hint in a variable or in a constant of a module is found where it is assigned.
    """
    for file, node in nodes():
        where = f"{file}:{node.lineno}"
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in NAMES:
                yield from ((where, "message", value) for value in node.args[:1])
                yield from (
                    (where, "hint", one.value) for one in node.keywords if one.arg == "hint"
                )
            case ast.Call():
                yield from (
                    (where, "hint", one.value) for one in node.keywords if one.arg == "hint"
                )
            case ast.Assign(targets=[ast.Name(id="hint" | "_FREE_SPACE" | "_HOST_HINT")]):
                yield where, "hint", node.value


def test_messages_and_hints_begin_in_lower_case() -> None:
    wrong = [
        f"{where}: {kind}: {text}"
        for where, kind, value in texts_of_errors()
        for text in texts(value)
        if not begins_in_style(text)
    ]
    assert wrong == []


def test_a_message_has_no_full_stop_and_a_hint_has_one_or_a_command() -> None:
    wrong = []
    for where, kind, value in texts_of_errors():
        for text in texts(value):
            # A hint without a full stop ends with a command or a list, after a colon.
            ok = not text.endswith(".") if kind == "message" else re.search(r"\.$|:\s+\S.*$", text)
            wrong += [] if ok else [f"{where}: {kind}: {text}"]
    assert wrong == []


def test_the_hint_is_a_required_argument() -> None:
    with pytest.raises(TypeError, match="hint"):
        KteardownError("wrong")  # type: ignore[call-arg]


def test_a_missing_error_names_the_packages() -> None:
    error = MissingError("no flex", ["flex", "bison"])
    assert (error.hint, error.exit_code) == ("install them: apt install flex bison", 5)
