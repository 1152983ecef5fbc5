from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import LabError, MissingError
from kteardown.kernels.toolchain import compiler_version, need_build_tools


def test_every_missing_tool_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in ("gcc", "make", "perl", "tar", "git", "cp", "bc"):
        (tmp_path / tool).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError) as caught:
        need_build_tools("arm64")
    assert caught.value.message == "not installed on this host: aarch64-linux-gnu-gcc, bison, flex, xz"
    assert caught.value.hint == "install them: apt install bison flex gcc-aarch64-linux-gnu xz-utils"
    assert isinstance(caught.value, MissingError)
    assert caught.value.packages == ("bison", "flex", "gcc-aarch64-linux-gnu", "xz-utils")


def test_a_missing_compiler_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="x86_64-linux-gnu-gcc"):
        compiler_version("x86_64")


def test_the_version_is_the_first_line_of_the_compilers_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "x86_64-linux-gnu-gcc"
    fake.write_text("#!/bin/sh\necho 'gcc (Lab) 12.2.0'\necho 'Copyright'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert compiler_version("x86_64") == "gcc (Lab) 12.2.0"
