"""Boots on the instruction clock that are repeated from the cache, and those that are run again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.model.record import BootEnd
from kteardown.run.repeat import RepeatingMachine
from kteardown.vm.job import BootJob

pytestmark = pytest.mark.vm

MakeJob = Callable[..., BootJob]
Boot = Callable[[BootJob], tuple[BootEnd, list[bytes], int]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def boot(cache: Path) -> Boot:
    """Boot a job; return its end, its records, and how many guests were started."""

    def run(job: BootJob) -> tuple[BootEnd, list[bytes], int]:
        lines: list[bytes] = []
        commands: list[list[str]] = []
        return RepeatingMachine(commands.append).boot(job, lines.append), lines, len(commands)

    return run


def test_an_equal_boot_is_repeated_to_the_byte(make_job: MakeJob, boot: Boot) -> None:
    job = make_job("bye", acceleration="icount")
    first, lines, started = boot(job)
    assert (first.outcome, first.kept_from, started) == ("ok", "", 1)
    again = replace(job, console=job.console.with_suffix(".again"))
    second, repeated, started = boot(again)
    assert (second.outcome, started, repeated) == ("ok", 0, lines)
    assert again.console.path.read_bytes() == job.console.path.read_bytes()
    assert second.kept_from
    # It says nothing of how long a boot takes.
    assert (second.duration_s, second.first_record_s) == (0, None)


@pytest.mark.parametrize(
    "other", [{"seed": 2}, {"memory_mb": 144}, {"kernel_args": ("guest=bye", "quiet")}, {"image": "other"}]
)
def test_another_boot_is_run(make_job: MakeJob, boot: Boot, tmp_path: Path, other: dict[str, object]) -> None:
    job = make_job("bye", acceleration="icount")
    boot(job)
    if "image" in other:
        # The same instructions, but not the same file.
        other = {"image": tmp_path / "other"}
        (tmp_path / "other").write_bytes(job.image.read_bytes() + b"\0")
    assert boot(replace(job, **other))[2] == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", ["cut", "byte", "other"])
def test_a_damaged_boot_of_the_cache_is_run_again(
    make_job: MakeJob, boot: Boot, cache: Path, damage: str
) -> None:
    job = make_job("bye", acceleration="icount")
    _, lines, _ = boot(job)
    (kept,) = (cache / "boots").iterdir()
    content = kept.read_bytes()
    damaged = {
        "cut": content[:-20],
        "byte": content[:50] + bytes([content[50] ^ 255]) + content[51:],
        "other": zlib.compress(b"[1]"),
    }
    kept.write_bytes(damaged[damage])
    assert boot(job)[1:] == (lines, 1)
    assert boot(job)[1:] == (lines, 0)


@pytest.mark.parametrize(
    ("how", "fields"),
    [("exit", {"acceleration": "icount"}), ("bye", {"acceleration": "icount", "cpus": 2}), ("bye", {})],
)
def test_a_boot_that_may_end_otherwise_is_not_kept(
    make_job: MakeJob, boot: Boot, cache: Path, how: str, fields: dict[str, object]
) -> None:
    """Of a guest that failed, of two CPUs that take turns, and of real time."""
    boot(make_job(how, **fields))
    assert not (cache / "boots").exists()
