"""Every error has a hint."""

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
    """Yield line, class and hint of every error constructed in a source. MissingError makes its own hint."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in NAMES - {"MissingError", "Exception", "Sequence"}:
                yield node.lineno, name, next((k.value for k in node.keywords if k.arg == "hint"), None)


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
    assert [has_text(hint) for _, _, hint in raised(source)] == [ok]


def test_every_error_in_the_sources_has_a_hint() -> None:
    found = [
        (f"{path.relative_to(SOURCES)}:{line}: {name}", hint)
        for path in sorted(SOURCES.rglob("*.py"))
        for line, name, hint in raised(path.read_text())
    ]
    assert len(found) > 100
    assert [where for where, hint in found if not has_text(hint)] == []


def test_the_hint_is_a_required_argument() -> None:
    with pytest.raises(TypeError, match="hint"):
        KteardownError("wrong")  # type: ignore[call-arg]


def test_a_missing_error_names_the_packages() -> None:
    error = MissingError("no flex", ["flex", "bison"])
    assert (error.hint, error.exit_code) == ("Install them: apt install flex bison", 5)
