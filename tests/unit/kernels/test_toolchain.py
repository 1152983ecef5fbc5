from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import InputError, LabError, MissingError
from kteardown.kernels.toolchain import (
    compiler_of,
    compiler_version,
    folder_of,
    installed,
    need_build_tools,
)


def test_every_missing_tool_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in ("gcc", "make", "perl", "tar", "git", "cp", "bc"):
        (tmp_path / tool).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError) as caught:
        need_build_tools("arm64")
    assert (
        caught.value.message == "not installed on this host: aarch64-linux-gnu-gcc, bison, flex, xz"
    )
    assert (
        caught.value.hint == "install them: apt install bison flex gcc-aarch64-linux-gnu xz-utils"
    )
    assert isinstance(caught.value, MissingError)
    assert caught.value.packages == ("bison", "flex", "gcc-aarch64-linux-gnu", "xz-utils")


def test_a_missing_compiler_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="x86_64-linux-gnu-gcc"):
        compiler_version("x86_64")


def program(folder: Path, name: str, says: str = "gcc (Lab) 12.2.0") -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\necho '{says}'\necho 'Copyright'\n")
    file.chmod(0o755)
    return file


def test_a_host_without_the_prefixed_compiler_uses_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Debian and what is made from it has one with the name of the architecture."""
    monkeypatch.setattr("kteardown.kernels.toolchain.host_arch", lambda: "x86_64")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    program(tmp_path, "gcc")
    assert compiler_of("x86_64") == "gcc"
    with pytest.raises(MissingError, match="aarch64-linux-gnu-gcc"):
        compiler_of("arm64")
    program(tmp_path, "x86_64-linux-gnu-gcc")
    assert compiler_of("x86_64") == "x86_64-linux-gnu-gcc"


def test_a_compiler_can_be_chosen_by_name_or_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("gcc", "gcc-14", "clang-19", "gcc-nm-14", "clang-format-14"):
        program(tmp_path, name)
    assert installed() == ["clang-19", "gcc-14"]
    path = str(tmp_path / "clang-19")
    assert [compiler_of("x86_64", name) for name in ("gcc-14", path)] == ["gcc-14", path]
    for wrong in ("gcc-99", "ls", "/none/gcc-14"):
        with pytest.raises(InputError, match=f"--compiler {wrong}") as caught:
            compiler_of("x86_64", wrong)
        assert "clang-19, gcc-14" in caught.value.hint


def test_a_build_does_not_see_more_than_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for place in ("home/bin", "home/gcc/bin", "bin"):
        (tmp_path / place).mkdir(parents=True)
        program(tmp_path / place, "gcc-14")
    assert folder_of(f"{tmp_path}/home/gcc/bin/gcc-14") == tmp_path / "home/gcc"
    assert folder_of("gcc-14") is None and folder_of("/usr/bin/gcc-14") is None
    for place in ("home/bin", "bin"):
        with pytest.raises(InputError, match="a build would see all of"):
            folder_of(f"{tmp_path}/{place}/gcc-14")


def test_the_version_is_the_first_line_of_the_compilers_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "x86_64-linux-gnu-gcc")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert compiler_version("x86_64") == "gcc (Lab) 12.2.0"
