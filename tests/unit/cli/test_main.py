"""The command line's face: help, exit codes, and what is said of wrong input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def kteardown(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with its own cache and runs."""
    own = {"KTEARDOWN_RUNS": str(home / "runs"), "KTEARDOWN_CACHE": str(home / "cache"), "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, "-m", "kteardown", *arguments],
        env={**os.environ, **own, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "verb", ["run", "compare", "build", "plan", "report", "show", "list", "prune", "doctor"]
)
def test_every_verb_teaches(verb: str, tmp_path: Path) -> None:
    done = kteardown(verb, "--help", home=tmp_path)
    assert done.returncode == 0
    assert "Usage" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "frezer"], "did you mean 'freezer'"),
        (["run"], "which experiment?"),
        (["run", "freezer", "--set", "zombis=3"], "did you mean 'zombies'"),
        (["run", "freezer", "--set", "zombies"], "expected PARAM=VALUES"),
        (["run", "freezer", "--variant", "freezer-skip-exitd"], "freezer-skip-exited"),
        (["run", "freezer", "--clock", "sun"], "--clock"),
        (["run", "--resume", "never"], "there is no run 'never'"),
        (["run", "freezer", "--resume", "never"], "a run is resumed as it was planned"),
        (["run", "./nowhere.toml"], "there is no such file"),
        (["run", "freezer", "--set", "zombies=-5"], "-5 is not within 0"),
        (["run", "freezer", "--json", "/nowhere/r.json"], "there is no folder /nowhere"),
        (["report", "never"], "there is no run 'never'"),
        (["show", "never"], "there is no run 'never'"),
        (["prune"], "prune what?"),
        (["plan", "freezer", "--source", "disk:1"], "disk:1"),
    ],
)
def test_wrong_input_exits_with_2_and_says_what_to_do(
    arguments: list[str], expected: str, tmp_path: Path
) -> None:
    done = kteardown(*arguments, home=tmp_path)
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bare_call_is_help(tmp_path: Path) -> None:
    done = kteardown(home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "doctor" in done.stdout


def test_a_plan_is_printed_without_building_anything(tmp_path: Path) -> None:
    done = kteardown("plan", "freezer", "--quick", "--clock", "wall", home=tmp_path)
    assert done.returncode == 0
    assert "base-twin" in done.stdout
    assert not (tmp_path / "cache" / "kernels").exists()


def test_lists_are_json_where_asked(tmp_path: Path) -> None:
    done = kteardown("list", "experiments", "--json", home=tmp_path)
    assert '"freezer"' in done.stdout


def test_no_colour_where_none_is_wanted(tmp_path: Path) -> None:
    done = kteardown("run", "frezer", home=tmp_path, FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[3" not in done.stderr
