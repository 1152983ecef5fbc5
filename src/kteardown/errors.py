"""Errors that end a command, each with the exit code that scripts see.

Exit codes: 0 done; 1 a gate failed; 2 the input is wrong; 3 a kernel did not
build; 4 guests failed; 5 the lab or its machine failed; 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence


class KteardownError(Exception):
    """An error that the user reads: what is wrong, where, and what to do.

    ``hint`` is one imperative sentence that says what to do next; no error goes without.
    """

    exit_code = 5

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(KteardownError):
    """A file, option or argument is wrong."""

    exit_code = 2


class BuildError(KteardownError):
    """A kernel or the agent did not build, or a patch did not apply."""

    exit_code = 3


class GuestError(KteardownError):
    """Guests failed so often that there is nothing to report."""

    exit_code = 4


class LabError(KteardownError):
    """The lab's own machine failed: a missing tool, a full disk, a broken QEMU."""

    exit_code = 5


class MissingError(LabError):
    """Programs or headers that are not installed; ``packages``: those of Debian that have them."""

    def __init__(self, message: str, packages: Sequence[str]) -> None:
        super().__init__(message, hint=f"install them: apt install {' '.join(packages)}")
        self.packages = tuple(packages)


class GateError(KteardownError):
    """A verdict that was asked for as a gate (``--fail-on``) failed."""

    exit_code = 1
