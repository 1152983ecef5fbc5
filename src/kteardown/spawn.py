"""Start programs of this host, of which none takes code or configuration from the folder of the
caller.

A stranger may have written what is in that folder, as in a source tree, and many programs read
files of the folder in which they run: Python modules, git its configuration, make a makefile, QEMU
the firmware of guests. So a program runs in the root folder, unless its work is in a folder of the
lab. Paths that the user gave are made absolute where they are read, and paths in arguments of a
program are absolute.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

FOLDER = Path("/")
"""The folder in which programs run. Only root can write to it."""
_LISTS = (
    "PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PERL5LIB",
    "CPATH",
    "C_INCLUDE_PATH",
    "LIBRARY_PATH",
)
"""Variables with lists of folders, in which an empty one is the current folder."""

_Start = TypeVar("_Start", bound=Callable[..., Any])


def _elsewhere(start: _Start) -> _Start:
    @functools.wraps(start, updated=())
    def started(argv: Sequence[Any], **options: Any) -> Any:
        return start(argv, **{**options, "cwd": options.get("cwd") or FOLDER})

    return cast(_Start, started)


run = _elsewhere(subprocess.run)
"""``subprocess.run``, in ``FOLDER`` unless ``cwd`` is given."""
start = _elsewhere(subprocess.Popen)
"""``subprocess.Popen``, in ``FOLDER`` unless ``cwd`` is given."""


def python(*words: str, program: str = "") -> list[str]:
    """Return the command that starts Python, this one or ``program``, without modules of the
    current folder.

    What the user's own environment names (PYTHONPATH, the user's packages) remains.
    """
    return [program or sys.executable, "-P", *words]


def kteardown(*words: str) -> list[str]:
    """Return the command that starts kteardown anew."""
    return python("-m", "kteardown", *words)


def use_absolute_paths_only() -> list[str]:
    """Remove what means the current folder from the lists of folders in the environment.

    Return a text for each list that had such an entry: an empty or a relative one.
    """
    notes = []
    for name in _LISTS:
        entries = os.environ.get(name, "").split(os.pathsep)
        relative = [entry for entry in entries if not os.path.isabs(entry)]
        if not os.environ.get(name) or not relative:
            continue
        os.environ[name] = os.pathsep.join(entry for entry in entries if os.path.isabs(entry))
        words = ", ".join(repr(entry) for entry in dict.fromkeys(relative))
        notes.append(f"{name}: {words} is not used, because it depends on the current folder")
    return notes
