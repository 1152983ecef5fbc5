"""Boots on the instruction clock that are repeated from the cache, and those that are run again."""

from __future__ import annotations

import shutil
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without boots."""
    monkeypatch.setenv("KTEARDOWN_CACHE", str(folder))
    shutil.rmtree(folder / "boots", ignore_errors=True)
    return folder


@pytest.fixture(scope="module")
def first() -> dict[str, tuple[bytes, list[bytes]]]:
    """What the cache has of the first boot, by the name of its file: that file and the records."""
    return {}


@pytest.fixture
def booted(
    make_job: MakeJob, boot: Boot, cache: Path, first: dict[str, tuple[bytes, list[bytes]]]
) -> tuple[BootJob, Path, list[bytes]]:
    """A job that the cache has, its file there, and its records. It is booted for the first test
    only."""
    job, boots = make_job("bye", acceleration="icount"), cache / "boots"
    if not first:
        lines = boot(job)[1]
        first |= {file.name: (file.read_bytes(), lines) for file in boots.iterdir()}
    ((name, (content, lines)),) = first.items()
    boots.mkdir(exist_ok=True)
    (boots / name).write_bytes(content)
    assert boot(job)[1:] == (lines, 0)
    return job, boots / name, lines


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
    "other",
    [{"seed": 2}, {"memory_mb": 144}, {"kernel_args": ("guest=bye", "quiet")}, {"image": "other"}],
)
def test_another_boot_is_run(
    booted: tuple[BootJob, Path, list[bytes]], boot: Boot, tmp_path: Path, other: dict[str, object]
) -> None:
    job = booted[0]
    if "image" in other:
        # The same instructions, but not the same file.
        other = {"image": tmp_path / "other"}
        (tmp_path / "other").write_bytes(job.image.read_bytes() + b"\0")
    assert boot(replace(job, **other))[2] == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("damage", ["cut", "byte", "other"])
def test_a_damaged_boot_of_the_cache_is_run_again(
    booted: tuple[BootJob, Path, list[bytes]], boot: Boot, damage: str
) -> None:
    job, kept, lines = booted
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
    [
        ("exit", {"acceleration": "icount"}),
        ("bye", {"acceleration": "icount", "cpus": 2}),
        ("bye", {}),
    ],
)
def test_a_boot_that_may_end_otherwise_is_not_kept(
    make_job: MakeJob, boot: Boot, cache: Path, how: str, fields: dict[str, object]
) -> None:
    """Of a guest that failed, of two CPUs that take turns, and of real time."""
    boot(make_job(how, **fields))
    assert not (cache / "boots").exists()
