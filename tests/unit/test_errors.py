"""Every error says what to do next."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kteardown
from kteardown import errors
from kteardown.errors import KteardownError, MissingError

SOURCES = Path(kteardown.__file__).parent
NAMES = {name for name, value in vars(errors).items() if isinstance(value, type)} | {"UnpackError"}


def raised(text: str) -> Iterator[tuple[int, str, ast.expr | None]]:
    """Line, class and hint of every error that a source makes; a MissingError makes its hint itself."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in NAMES - {"MissingError", "Exception", "Sequence"}:
                yield node.lineno, name, next((k.value for k in node.keywords if k.arg == "hint"), None)


def said(hint: ast.expr | None) -> bool:
    """Whether there is a hint, and more in it than an empty string."""
    if isinstance(hint, ast.Constant):
        return isinstance(hint.value, str) and len(hint.value.split()) > 1
    return hint is not None


@pytest.mark.parametrize(
    ("source", "ok"),
    [
        ("raise InputError('wrong')", False),
        ("raise errors.LabError('wrong', hint='')", False),
        ("raise LabError('wrong', hint='mend it.')", True),
        ("raise BuildError('wrong', hint=error.hint)", True),
    ],
)
def test_an_error_without_a_hint_is_found(source: str, ok: bool) -> None:
    assert [said(hint) for _, _, hint in raised(source)] == [ok]


def test_every_error_says_what_to_do() -> None:
    found = [
        (f"{path.relative_to(SOURCES)}:{line}: {name}", hint)
        for path in sorted(SOURCES.rglob("*.py"))
        for line, name, hint in raised(path.read_text())
    ]
    assert len(found) > 100
    assert [where for where, hint in found if not said(hint)] == []


def test_there_is_no_error_without_a_hint() -> None:
    with pytest.raises(TypeError, match="hint"):
        KteardownError("wrong")  # type: ignore[call-arg]


def test_what_is_missing_names_its_packages() -> None:
    error = MissingError("no flex", ["flex", "bison"])
    assert (error.hint, error.exit_code) == ("install them: apt install flex bison", 5)
