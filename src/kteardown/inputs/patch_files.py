"""Words for a user who gives a patch to a verb that takes something else."""

import re
import shlex
from contextlib import suppress
from pathlib import Path

_DIFF = re.compile(rb"^(?:diff --git |--- \S[^\n]*+\n\+\+\+ \S)", re.MULTILINE)
_MOST_BYTES = 1 << 16
"""Of a mail, its diff begins in so many."""


def is_patch(word: str) -> bool:
    """Return whether ``word`` is a file with a diff."""
    path = Path(word)
    with suppress(OSError, ValueError):
        if path.is_file():
            with path.open("rb") as stream:
                return bool(_DIFF.search(stream.read(_MOST_BYTES)))
    return False


def try_command(word: str) -> str:
    """Return the command that measures the patch ``word`` and finds a base and a workload for
    it."""
    return f"kteardown try {shlex.quote(word)}"
