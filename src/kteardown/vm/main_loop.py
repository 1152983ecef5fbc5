"""Under the instruction clock, keep QEMU's main loop from running beside the virtual CPUs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kteardown.paths import cache_dir
from kteardown.progress import Reporter, SilentReporter
from kteardown.vm.confinement import readable
from kteardown.vm.job import BootJob
from kteardown.vm.qemu_library import build_library


class Preloaded(NamedTuple):
    """How QEMU is started with the library: the ``prefix`` of its command, the descriptors it inherits."""

    prefix: tuple[str, ...] = ()
    inherit: tuple[int, ...] = ()


def library(reporter: Reporter) -> Path:
    """Return ``plugins/main_loop.c`` as a library, which says why it is needed.

    Raises MissingError, BuildError, LabError.
    """
    return build_library("main_loop", cache=cache_dir(), reporter=reporter)


@contextlib.contextmanager
def preloaded(job: BootJob) -> Iterator[Preloaded]:
    """Yield how to start QEMU for ``job``. Raises as ``library`` does."""
    if job.acceleration != "icount":
        yield Preloaded()
        return
    # By its descriptor, because a blank or a colon in a path would end it.
    with readable(library(SilentReporter())) as opened:
        number = opened.fileno()
        names = [f"/dev/fd/{number}", os.environ.get("LD_PRELOAD", "")]
        yield Preloaded(("env", f"LD_PRELOAD={':'.join(filter(None, names))}"), (number,))
