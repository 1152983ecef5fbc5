from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.vm.job import BootJob, Machine
from unit.fake_machine import FakeBoot, FakeMachine


def job(folder: Path, seed: int) -> BootJob:
    nothing = folder / "none"
    return BootJob(nothing, nothing, "x86_64", "icount", 1, 64, seed, folder / f"console-{seed}", 1.0)


def test_it_plays_what_the_script_says(tmp_path: Path) -> None:
    fake = FakeMachine(lambda j: FakeBoot((b"%d" % j.seed, b"x"), "panic", "why", console=b"Oops"))
    machine: Machine = fake
    heard: list[bytes] = []
    result = machine.boot(job(tmp_path, 5), heard.append)
    assert (result.outcome, result.detail) == ("panic", "why")
    assert heard == [b"5", b"x"]
    assert (tmp_path / "console-5").read_bytes() == b"Oops"
    assert fake.jobs == [job(tmp_path, 5)]


def test_it_fails_after_its_lines_where_told_to(tmp_path: Path) -> None:
    machine = FakeMachine(lambda _: FakeBoot((b"one",), raises=OSError("disk full")))
    heard: list[bytes] = []
    with pytest.raises(OSError, match="disk full"):
        machine.boot(job(tmp_path, 1), heard.append)
    assert heard == [b"one"]


def test_nothing_boots_after_stop(tmp_path: Path) -> None:
    machine = FakeMachine(lambda _: FakeBoot())
    machine.stop()
    with pytest.raises(KeyboardInterrupt):
        machine.boot(replace(job(tmp_path, 1), seed=2), lambda _: None)
    assert machine.jobs == []
