"""Boots of base while a variant is built, on the instruction clock: either can end both."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown import pipeline
from kteardown.errors import BuildError
from kteardown.kernels.kbuild import compile_tree
from kteardown.kernels.request import Built
from kteardown.model.record import BASE
from kteardown.progress import Reporter
from kteardown.report.sections.growth import growth_lines
from kteardown.run.places import Where
from kteardown.run.places.local import LocalPlace
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.vm.job import BootJob
from unit.fake_machine import FakeBoot, FakeMachine
from unit.kernels.test_kbuild import fake_tree
from unit.pipelines import (
    VARIANT,
    Notes,
    booted,
    built_variant,
    comparisons,
    complete,
    guest,
    lacking_its_variant,
    run_maker,
)


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDir]:
    return run_maker(tmp_path, monkeypatch)


def test_on_the_wall_clock_nothing_boots_while_a_variant_is_built(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(_: Reporter) -> Built:
        assert not booted(run)
        return built_variant(run)

    run = make_run(clock="wall", boots=4)
    lacking_its_variant(run, monkeypatch, built, after_base=False)
    result, _ = complete(run, guest(0.5, 0.01), monkeypatch)
    assert booted(run) == {BASE: 4, VARIANT: 4, "base-twin": 4}
    assert result.boots["ok"] == 12


def test_base_boots_while_its_variant_is_built(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_run(seeds=4)
    complete(whole, guest(0.5, 0.01), monkeypatch)
    run = make_run(seeds=4)
    lacking_its_variant(run, monkeypatch, lambda _: built_variant(run))
    complete(run, guest(0.5, 0.01), monkeypatch)
    assert comparisons(run) == comparisons(whole)
    assert booted(run) == {BASE: 4, VARIANT: 4}


def test_what_one_more_costs_base_is_shown_before_its_variant_is_built(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = threading.Event()

    class Watching(Notes):
        def note(self, text: str) -> None:
            super().note(text)
            if "freezing the remaining tasks" in text:
                shown.set()

    def built_once_shown(_: Reporter) -> Built:
        assert shown.wait(60)
        return built_variant(run)

    run, notes = make_run(seeds=4, points=(0, 300, 600)), Watching()
    lacking_its_variant(run, monkeypatch, built_once_shown)
    monkeypatch.setattr(LocalPlace, "machine", lambda *_, **__: FakeMachine(guest(0.5, 0.0)))
    result = pipeline.finish(load(run), notes, Where(jobs=1)).result
    # What the report says of base, when there is a variant to compare.
    last = growth_lines(result, load(run).workloads, BASE)
    assert [line.strip() for line in notes.lines if "(zombies)" in line] == last
    assert last[0] == "freezing user space: 100.0 instructions for one more (zombies), linear"


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), BuildError("it does not compile", hint="fix it.")]
)
def test_what_ends_the_build_ends_the_boots_of_base(
    error: BaseException, make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Reporter) -> Built:
        raise error

    run = make_run(seeds=400)
    lacking_its_variant(run, monkeypatch, fail)
    with pytest.raises(type(error)):
        complete(run, guest(0.5, 0.01), monkeypatch)
    assert 0 < booted(run)[BASE] < 400
    assert booted(run)[VARIANT] == 0


def test_a_variant_that_does_not_build_says_what_can_be_done_with_the_run(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Reporter) -> Built:
        raise BuildError(
            "x: the kernel did not build\n  whole log: x/build.log", hint="Fix the first error."
        )

    run = make_run(seeds=4)
    lacking_its_variant(run, monkeypatch, fail)
    with pytest.raises(BuildError, match=r"whole log: x/build\.log") as caught:
        complete(run, guest(0.5, 0.01), monkeypatch)
    for part in (
        "Fix the first error.",
        "start the experiment anew",
        f"kteardown run --resume {run.name}",
    ):
        assert part in caught.value.hint


def test_an_error_in_the_boots_of_base_ends_the_build(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tree = fake_tree(tmp_path, 'for n in $$(seq 600); do echo "  CC      $$n.o"; sleep 0.1; done')

    ended: list[str] = []

    def compile_for_a_minute(reporter: Reporter) -> Built:
        compile_tree(tree, "building", 600, 600, reporter)
        ended.append("by itself")
        raise AssertionError

    def fail(job: BootJob) -> FakeBoot:
        return FakeBoot(raises=RuntimeError("our own error"))

    run = make_run(seeds=4)
    lacking_its_variant(run, monkeypatch, compile_for_a_minute)
    with pytest.raises(RuntimeError, match="our own error"):
        complete(run, fail, monkeypatch)
    assert not ended
    lacking_its_variant(run, monkeypatch, lambda _: built_variant(run))
    result, _ = complete(run, guest(0.5, 0.01), monkeypatch)
    assert result.boots["ok"] == 8


def test_an_interrupt_after_the_last_build_ends_the_boots_of_base(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_run(seeds=10)
    complete(whole, guest(0.5, 0.01), monkeypatch)
    run = make_run(seeds=10)
    normal, interrupted = guest(0.5, 0.01), threading.Event()

    def interrupt_once_built(job: BootJob) -> FakeBoot:
        if VARIANT in json.loads(run.kernels_file.path.read_bytes()) and not interrupted.is_set():
            interrupted.set()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)  # The guest is still running when the main thread receives the signal.
        return normal(job)

    lacking_its_variant(run, monkeypatch, lambda _: built_variant(run))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            complete(run, interrupt_once_built, monkeypatch)
    finally:
        signal.signal(signal.SIGINT, before)
    assert interrupted.is_set()
    assert 0 < booted(run)[BASE] < 10 and not booted(run)[VARIANT]
    complete(run, normal, monkeypatch)
    assert comparisons(run) == comparisons(whole)
