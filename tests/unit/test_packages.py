"""The names of packages on the hosts of different distributions."""

from pathlib import Path

import pytest

from kteardown import packages
from kteardown.errors import MissingError
from kteardown.model.arch import ARCHITECTURES


def with_manager(folder: Path, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / program).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("apt-get", "install them: apt install libc6-dev xz-utils"),
        ("dnf", "install them: dnf install glibc-devel glibc-static xz"),
        ("pacman", "install them: pacman -S glibc xz"),
        ("zypper", "install them: zypper install glibc-devel glibc-devel-static xz"),
    ],
)
def test_an_error_names_the_packages_of_the_hosts_manager(
    program: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_manager(tmp_path, program, monkeypatch)
    error = MissingError("no headers", ["libc6-dev", "xz-utils"])
    assert (error.hint, error.packages) == (hint, ("libc6-dev", "xz-utils"))


def test_what_has_no_other_name_is_named_as_in_debian(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_manager(tmp_path, "dnf", monkeypatch)
    assert packages.named(["unknown", "gcc", "gcc"]) == ["unknown", "gcc"]
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert packages.named(["unknown"]) == ["unknown"]


def test_the_table_has_a_name_for_each_manager_and_all_that_guests_need() -> None:
    text = Path(packages.__file__).with_suffix(".tsv").read_text()
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    assert {len(row) for row in rows} == {6}
    assert all(all(row) for row in rows)
    of_debian = {row[2] for row in rows}
    assert {known.qemu_package for known in ARCHITECTURES.values()} <= of_debian
    assert {"gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"} <= of_debian
