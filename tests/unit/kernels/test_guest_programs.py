"""Programs for guests, from packages and from the user's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError
from kteardown.kernels.guest_programs import extract, guest_programs
from kteardown.kernels.source import Sources
from kteardown.progress import SilentReporter
from unit.kernels.packages import make_deb


def package(folder: Path, place: str) -> Path:
    """Build a package that contains one program with the path ``place``."""
    return make_deb(folder / "x.deb", {place: b"\x7fELF program"})


@pytest.mark.parametrize("place", ("bin/busybox", "usr/bin/busybox"))
def test_only_the_program_is_extracted_from_its_package(tmp_path: Path, place: str) -> None:
    into = tmp_path / "into"
    into.mkdir()
    found = extract(package(tmp_path, place), "busybox", into)
    assert found.read_bytes() == b"\x7fELF program"
    assert list(into.iterdir()) == [found] == [into / "busybox"]


def test_a_package_without_the_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="bin/busybox"):
        extract(package(tmp_path, "bin/other"), "busybox", tmp_path)


def test_a_file_that_is_not_a_package_is_an_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.deb"
    broken.write_bytes(b"nothing")
    with pytest.raises(LabError, match=r"cannot unpack .*broken\.deb"):
        extract(broken, "busybox", tmp_path)


def test_an_unknown_program_is_an_error_before_anything_is_fetched(tmp_path: Path) -> None:
    sources = Sources(tmp_path, SilentReporter())
    with pytest.raises(InputError, match="'emacs'"):
        guest_programs(["emacs"], "x86_64", sources, SilentReporter())
    assert list(tmp_path.iterdir()) == []
    assert guest_programs([], "x86_64", sources, SilentReporter()) == ()


def test_a_program_without_a_package_comes_from_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = Sources(tmp_path / "cache", SilentReporter())
    monkeypatch.delenv("KTEARDOWN_PROGRAMS", raising=False)
    with pytest.raises(InputError, match="schbench, which is not in a Debian package") as caught:
        guest_programs(["schbench"], "x86_64", sources, SilentReporter())
    assert "KTEARDOWN_PROGRAMS" in caught.value.hint
    monkeypatch.setenv("KTEARDOWN_PROGRAMS", str(tmp_path))
    with pytest.raises(InputError, match=str(tmp_path)):
        guest_programs(["schbench"], "x86_64", sources, SilentReporter())
    (tmp_path / "schbench").write_bytes(b"\x7fELF program")
    assert guest_programs(["schbench"], "x86_64", sources, SilentReporter()) == (
        tmp_path / "schbench",
    )
    assert not (tmp_path / "cache").exists()
