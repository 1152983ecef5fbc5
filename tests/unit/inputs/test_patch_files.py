"""Which files are patches, and what the verbs say that take none as their argument."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.inputs.load import load_experiment
from kteardown.inputs.patch_files import is_patch, try_command
from kteardown.run.resolve import base_and_variants

DIFF = "--- a/kernel/exit.c\n+++ b/kernel/exit.c\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture(autouse=True)
def patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my fix.diff").write_text(f"Subject: fix\n\n{DIFF}")
    return "my fix.diff"


def test_a_file_is_a_patch_by_its_diff(patch: str, tmp_path: Path) -> None:
    (tmp_path / "notes.diff").write_text("--- first\nand more\n")
    os.mkfifo(tmp_path / "pipe")
    assert is_patch(patch)
    assert not any(map(is_patch, ("notes.diff", "nothing", "pipe", ".", "a\0b")))
    assert try_command(patch) == "kteardown try 'my fix.diff'"


def test_a_patch_is_no_experiment(patch: str) -> None:
    for name in (patch, f"./{patch}"):
        with pytest.raises(InputError, match="is a patch, not an experiment") as error:
            load_experiment(name)
        assert try_command(name) in error.value.hint


def test_compare_names_try_for_a_patch(patch: str) -> None:
    with pytest.raises(InputError) as error:
        base_and_variants("", [], [], workload=patch, alone="kteardown measure")
    assert try_command(patch) in error.value.hint and "measure ./" not in error.value.hint
    with pytest.raises(InputError) as error:
        base_and_variants("", [patch], [])
    assert "--source" in error.value.hint and try_command(patch) in error.value.hint
    with pytest.raises(InputError) as error:
        base_and_variants("", ["exit-linear"], [])
    assert "kteardown try" not in error.value.hint
