"""Libraries that only some verbs need, as extras of pyproject.toml."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from kteardown.errors import InputError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "query": ("duckdb",),
    "history": ("duckdb",),
    "pictures": ("resvg_py",),
    "mail": ("b4",),
    "mcp": ("mcp",),
}
"""The modules that each extra installs; module and package have the same name."""


def need(extra: str, what: str) -> None:
    """Check that the libraries of ``extra`` are installed, for the verb or option ``what``.

    Raises InputError with the command that installs the missing ones.
    """
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise InputError(
            f"{what} needs {', '.join(missing)}, which an installation without extras does not "
            "have",
            hint=f"install {'it' if len(missing) == 1 else 'them'}: {install_command(missing)}",
        )


def install_command(packages: Sequence[str]) -> str:
    """Return the command that installs ``packages`` into the environment of this kteardown."""
    words = " ".join(packages)
    if "/pipx/" in sys.prefix:
        return f"pipx inject kteardown {words}"
    if "/uv/tools/" in sys.prefix:
        return f"uv pip install --python {shlex.quote(sys.executable)} {words}"
    return f"{shlex.quote(sys.executable)} -P -m pip install {words}"
