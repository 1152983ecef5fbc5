"""Run the command line in processes that start within milliseconds.

Starting Python and importing what a verb needs takes most of a second of CPU time, which is more
than most tests need for the rest. So one process imports everything, and forks the others. Each of
them has its own memory, environment, folder, standard streams and exit code. Tests of what a verb
imports use ``subprocess``.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

import kteardown
from kteardown.cli import main

_STREAMS = ("in", "out", "err")


@dataclass(frozen=True)
class CommandLine:
    """A process of the command line; ``folder`` has its standard streams."""

    process: BaseProcess
    arguments: tuple[str, ...]
    folder: Path

    @property
    def pid(self) -> int:
        """The process number."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def out(self) -> str:
        """What it has printed so far."""
        return (self.folder / "out").read_text()

    def end(self) -> subprocess.CompletedProcess[str]:
        """Wait until it ends; return its exit code and what it printed."""
        self.process.join()
        code, errors = self.process.exitcode, (self.folder / "err").read_text()
        assert code is not None
        return subprocess.CompletedProcess(self.arguments, code, self.out, errors)


@cache
def forked() -> ForkServerContext:
    """Return what starts processes, after it has started the one from which they are forked."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["unit.imported"])
    with pytest.MonkeyPatch.context() as patch:
        # The fork server does not have the import path of this process.
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        patch.setenv("PYTHONSAFEPATH", "1")
        first = context.Process(target=os.getpid)
        first.start()
        first.join()
    return context


@contextmanager
def running(
    arguments: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None
) -> Iterator[CommandLine]:
    """Run the command line in a process of its own, which is killed at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder, at = Path(name), cwd or Path.cwd()
        for stream in _STREAMS:
            (folder / stream).touch()
        process = forked().Process(target=_run, args=(arguments, dict(environment), at, folder))
        process.start()
        try:
            yield CommandLine(process, tuple(arguments), folder)
        finally:
            process.kill()
            process.join()


def _run(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, folder: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for number, stream in enumerate(_STREAMS):
        with (folder / stream).open("ab" if number else "rb") as file:
            os.dup2(file.fileno(), number)
    sys.argv = [str(Path(kteardown.__file__).with_name("__main__.py")), *arguments]
    main()
