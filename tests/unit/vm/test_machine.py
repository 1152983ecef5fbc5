from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.vm.job import BootJob
from unit.fake_machine import HELLO, FakeBoot, FakeMachine


def job(folder: Path, seed: int) -> BootJob:
    nothing = folder / "none"
    return BootJob(
        nothing, nothing, "x86_64", "icount", 1, 64, seed, Entry(folder) / f"console-{seed}", 1.0
    )


def test_the_fake_machine_follows_its_script(tmp_path: Path) -> None:
    fake = FakeMachine(lambda j: FakeBoot((b"%d" % j.seed, b"x"), "panic", "why", console=b"Oops"))
    received: list[bytes] = []
    result = fake.boot(job(tmp_path, 5), received.append)
    assert (result.outcome, result.detail) == ("panic", "why")
    assert received == [HELLO, b"5", b"x"]
    assert (tmp_path / "console-5").read_bytes() == b"Oops"
    assert fake.jobs == [job(tmp_path, 5)]


def test_the_fake_machine_raises_after_its_lines(tmp_path: Path) -> None:
    machine = FakeMachine(lambda _: FakeBoot((b"one",), raises=OSError("disk full")))
    received: list[bytes] = []
    with pytest.raises(OSError, match="disk full"):
        machine.boot(job(tmp_path, 1), received.append)
    assert received == [HELLO, b"one"]


def test_nothing_boots_after_stop(tmp_path: Path) -> None:
    machine = FakeMachine(lambda _: FakeBoot())
    machine.stop()
    with pytest.raises(KeyboardInterrupt):
        machine.boot(replace(job(tmp_path, 1), seed=2), lambda _: None)
    assert machine.jobs == []
