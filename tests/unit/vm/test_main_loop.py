"""The library that keeps QEMU's main loop from running beside the virtual CPUs is loaded into
QEMU."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.errors import LabError, MissingError
from kteardown.progress import SilentReporter
from kteardown.vm.qemu_library import build_library, preloaded
from kteardown.vm.qemu_library import main_loop_library as library
from unit.vm.test_qemu_command import JOB

EXACT = replace(JOB, acceleration="icount")
REPLACED = {"ppoll", "pthread_cond_wait", "pthread_cond_signal", "pthread_cond_broadcast", "write"}


def test_the_library_replaces_only_what_qemu_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path))
    built = library(SilentReporter())
    listing = subprocess.check_output(["nm", "--dynamic", "--defined-only", str(built)], text=True)
    assert {line.split()[-1] for line in listing.splitlines()} == REPLACED
    assert library(SilentReporter()) == built


@pytest.mark.parametrize("others", ["", "/nowhere/other.so"])
def test_it_is_loaded_beside_others_from_a_path_with_any_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "with blanks: and colons"))
    monkeypatch.setenv("LD_PRELOAD", others)
    with preloaded(EXACT) as (prefix, inherit):
        assert prefix[1].endswith(f":{others}" if others else f"/{inherit[0]}")
        command = [*prefix, "cat", "/proc/self/maps"]
        loaded = subprocess.check_output(
            command, pass_fds=inherit, stderr=subprocess.DEVNULL, text=True
        )
    assert "main_loop-" in loaded
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(inherit[0])


def test_in_real_time_nothing_is_loaded() -> None:
    with preloaded(replace(JOB, acceleration="mttcg")) as start:
        assert start == ((), ())


def test_without_a_compiler_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match=r"cannot build main_loop\.c for QEMU: no C compiler"):
        build_library("main_loop", cache=tmp_path, reporter=SilentReporter())


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(LabError, match=r"cannot build main_loop\.c in .*cache: Not a directory"):
        build_library("main_loop", cache=tmp_path / "cache", reporter=SilentReporter())
