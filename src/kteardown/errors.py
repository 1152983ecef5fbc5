"""Errors that end a command, each with its exit code.

Exit codes: 0 done; 1 a verdict matched ``--fail-on``, or a check of mails found something; 2 the
input is wrong; 3 a kernel or the agent did not build, or a patch did not apply; 4 guests failed so
often that there is nothing to report; 5 the host or a tool on it failed; 6 a variant is broken; 7
nothing of a patch is in the kernel that was built; 8 no workload executes what a patch changes; 70
an error in kteardown itself; 130 interrupted. An error that no class of this module is for never
has the code 1, which means a verdict.

Style of all errors: the message and the hint begin in lower case unless they begin with a name. The
message has no full stop at its end. The hint is in the imperative with a full stop, or ends with a
command to run.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from kteardown.packages import how_to_install

INTERNAL = 70
"""The exit code of an error in kteardown itself."""


class KteardownError(Exception):
    """An error shown to the user: ``message`` says what is wrong and where, ``hint`` what to do.

    Every error has a hint.
    """

    exit_code = 5

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(KteardownError):
    """A file, option or argument is wrong."""

    exit_code = 2

    @classmethod
    def unknown(
        cls, message: str, word: str, choices: Iterable[str], *, if_none: str = ""
    ) -> "InputError":
        """Return the error about a word that is not in ``choices``; ``if_none``: the hint if there
        are none."""
        names = list(choices)
        hint = f"choose one of: {', '.join(names) or 'none'}." if names or not if_none else if_none
        return cls(f"{message}{did_you_mean(word, names)}", hint=hint)


class BuildError(KteardownError):
    """A kernel or the agent did not build, or a patch did not apply."""

    exit_code = 3


class GuestError(KteardownError):
    """So many guests failed that there is no result to report."""

    exit_code = 4


class LabError(KteardownError):
    """The host or a tool on it failed: a missing tool, a full disk, a broken QEMU."""

    exit_code = 5


class MissingError(LabError):
    """Programs or headers are not installed; ``packages`` are the Debian packages that contain
    them."""

    def __init__(self, message: str, packages: Sequence[str]) -> None:
        super().__init__(message, hint=how_to_install(packages))
        self.packages = tuple(packages)


class BrokenError(KteardownError):
    """A variant is broken: it fails where base does not. The report says how."""

    exit_code = 6


class NotBuiltError(KteardownError):
    """Nothing of a patch is in the kernel that was built, so there is nothing to measure."""

    exit_code = 7

    @classmethod
    def of(cls, what: str, why: str = "") -> "NotBuiltError":
        """Return the error about a kernel that was built; ``what`` is a variant, or words for a
        patch."""
        return cls(
            f"nothing of {what} is in the kernel that was built: no object differs from that of "
            f"base in code or data{why}",
            hint=(
                "add the symbols that compile it (--config CONFIG_NAME=y); `kteardown try PATCH "
                "--dry-run` names them."
            ),
        )


class NotExercisedError(KteardownError):
    """No workload executes what a patch changes, so there is nothing to measure."""

    exit_code = 8


class GateError(KteardownError):
    """A result does not pass ``--fail-on`` (``judge.answer``), or mails do not pass a check."""

    exit_code = 1


@contextmanager
def damaged(what: str, *, hint: str) -> Iterator[None]:
    """Turn what a parser raises in the block, of whatever kind, into an InputError that names
    ``what``."""
    try:
        yield
    except (KteardownError, OSError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise InputError(f"{what} is damaged: {reason}", hint=hint) from error


@contextmanager
def failing(what: str, *, hint: str, kind: type[KteardownError] = InputError) -> Iterator[None]:
    """Turn an OSError of the block into an error of this kind that begins with ``what``."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror}", hint=hint) from error


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` if one of ``choices`` is similar to ``word``, else an empty
    string."""
    close = difflib.get_close_matches(word, list(choices), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
