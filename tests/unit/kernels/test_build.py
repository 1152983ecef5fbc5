"""A build that fails says which kernel it was, and where its log is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.errors import BuildError
from kteardown.kernels.build import ensure
from kteardown.kernels.request import KernelRequest
from kteardown.progress import SilentReporter


def test_an_error_of_kconfig_names_the_kernel_and_its_log(tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    tree.mkdir()
    for name in ("Kconfig", "Kbuild"):
        (tree / name).touch()
    (tree / "Makefile").write_text("%config:\n\t@echo 'Kconfig:3: a syntax error'; false\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "base"]):
        subprocess.run(["git", "-C", tree, *command], check=True)
    with pytest.raises(BuildError) as caught:
        ensure(
            [KernelRequest("base", f"git:{tree}")],
            cache_dir=tmp_path / "cache",
            reporter=SilentReporter(),
        )
    assert caught.value.message.startswith("git:linux@")
    assert "Kconfig:3: a syntax error" in caught.value.message
    log = Path(caught.value.message.rpartition("whole log: ")[2])
    assert log.parent.name == "config" and "Kconfig:3: a syntax error" in log.read_text()
