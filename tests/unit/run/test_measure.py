"""A build beside boots ends when the boots fail, wherever it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from kteardown.errors import BuildError, LabError
from kteardown.kernels.cache_folder import locked
from kteardown.progress import Reporter, SilentReporter
from kteardown.run.measure import build_beside


def wait_for_another_run(target: Path) -> Callable[[Reporter], None]:
    def build(reporter: Reporter) -> None:
        with locked(target, reporter, "build x"):
            raise AssertionError("two runs have the lock")

    return build


def test_a_build_that_waits_for_another_run_is_ended(tmp_path: Path) -> None:
    def fail() -> None:
        time.sleep(0.1)
        raise LabError("the disk is full", hint="free some space.")

    # The lock is held for as long as the build waits, so a build that is not ended never ends.
    target = tmp_path / "trees" / "x"
    with locked(target, SilentReporter(), "build x"), ThreadPoolExecutor(1) as pool:
        booting = pool.submit(fail)
        with pytest.raises(LabError, match="the disk is full"):
            build_beside(booting, wait_for_another_run(target), SilentReporter())


def test_the_error_of_the_build_is_not_replaced() -> None:
    booting: Future[None] = Future()

    def build(_: Reporter) -> None:
        booting.set_exception(LabError("later", hint="x."))
        raise BuildError("first", hint="x.")

    with pytest.raises(BuildError, match="first"):
        build_beside(booting, build, SilentReporter())
