"""Labs with real guests are killed at random moments; bench/kill_resume.py does it a hundred
times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]


@pytest.mark.parametrize(("kills", "zombies"), [(2, "0,300"), (6, "1000,2000")])
def test_killed_labs_lose_no_trial_and_leave_nothing_behind(kills: int, zombies: str) -> None:
    bench = Path(__file__).parents[2] / "bench" / "kill_resume.py"
    done = subprocess.run(
        [
            sys.executable,
            bench,
            "--kills",
            str(kills),
            "--seeds",
            "1",
            "--set",
            f"zombies={zombies}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{kills} kills over ")
