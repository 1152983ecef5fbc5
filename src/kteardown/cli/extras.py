"""Libraries that only some verbs need: the extras of pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec

from kteardown.errors import InputError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "query": ("duckdb",),
    "history": ("duckdb", "ruptures"),
    "serve": ("duckdb", "ruptures", "starlette", "uvicorn"),
    "pictures": ("kaleido",),
}
"""By extra: the modules that it installs, each named as its package is."""


def need(extra: str, what: str) -> None:
    """Raise InputError with the command that installs ``extra`` if one of its libraries is missing."""
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise InputError(
            f"{what} needs {', '.join(missing)}, which a plain install does not have",
            hint=f"install it: {install_command(missing)}",
        )


def install_command(packages: list[str]) -> str:
    """The command that adds ``packages`` to the environment of this kteardown."""
    words = " ".join(packages)
    if "/pipx/" in sys.prefix:
        return f"pipx inject kteardown {words}"
    if "/uv/tools/" in sys.prefix:
        return f"uv pip install --python {sys.executable} {words}"
    return f"{sys.executable} -m pip install {words}"
