"""Labs with real guests, killed at random moments; bench/kill_resume.py does it a hundred times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.vm, pytest.mark.build]


def test_killed_labs_lose_nothing_and_leave_nothing_behind() -> None:
    bench = Path(__file__).parents[2] / "bench" / "kill_resume.py"
    done = subprocess.run(
        [sys.executable, bench, "--kills", "6", "--seeds", "1", "--set", "zombies=1000,2000"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("6 kills over ")
