"""The core alone, without any optional package: its unit tests, and the demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.conftest import PACKAGES
from unit.test_packages import copy_without, interpreter, run

DEMO = (
    *("run", "freezer", "--quick", "--variant", "freezer-skip-exited", "--workload", "zombies"),
    *("--set", "zombies=0,3000,6000"),
)


@pytest.mark.full
def test_the_core_measures_and_passes_its_own_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = interpreter(copy_without(tmp_path / "copy", *PACKAGES))
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    table = run(python, "-m", "kteardown", *DEMO)
    assert "With freezer-skip-exited, freezing user space takes" in " ".join(table.split())
    words = ("-q", "-p", "no:cacheprovider", "-m", "not full", "tests/unit")
    run(python, "-m", "pytest", *words)
