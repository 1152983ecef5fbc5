"""Shell completion, requested as bash requests it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kteardown.cli.things import THINGS
from unit.cli.test_main import kteardown
from unit.run import killable


def offered(home: Path, line: str, cwd: Path | None = None) -> list[str]:
    """Return the completions of the last word of ``line``."""
    environment = {
        "_KTEARDOWN_COMPLETE": "complete_bash",
        "COMP_WORDS": f"kteardown {line}",
        "COMP_CWORD": str(len(line.split(" "))),
    }
    return kteardown(home=home, cwd=cwd, **environment).stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("doc", ["doctor"]),
        ("run susp", ["suspend"]),
        ("plan dying", ["dyingcg", "dyingfault"]),
        ("compare zombies_", ["zombies_cgroup"]),
        ("compare zombies --series freezer-skip-e", ["freezer-skip-exited"]),
        ("compare zombies --source deb", ["debian:6.12", "debian-image:6.12"]),
        ("run freezer --variant exit-l", ["exit-linear"]),
        ("run freezer --set zo", ["zombies="]),
        ("run freezer --set poss", ["possible_cpus="]),
        ("run freezer --clock w", ["wall"]),
        ("new exp", ["experiment"]),
        ("report 2", []),
    ],
)
def test_names_are_completed(tmp_path: Path, line: str, expected: list[str]) -> None:
    assert offered(tmp_path, line) == expected


def test_runs_are_completed_newest_first(tmp_path: Path) -> None:
    names = [killable.make_run(tmp_path / "runs", "instructions").path.name for _ in range(2)]
    newest_first = ["last", *sorted(names, reverse=True)]
    for line in ("report ", "run --resume ", "diff last "):
        assert offered(tmp_path, line) == newest_first
    assert offered(tmp_path, "show ") == [*newest_first, *THINGS]
    assert "zombies" in offered(tmp_path, "show workload ")


def test_a_series_of_the_current_folder_is_completed(tmp_path: Path) -> None:
    (tmp_path / "series/mine-too").mkdir(parents=True)
    assert offered(tmp_path, "compare zombies --series mine", tmp_path) == ["mine-too"]


def test_a_fragment_of_the_current_folder_is_completed(tmp_path: Path) -> None:
    (tmp_path / "kernels/fragments").mkdir(parents=True)
    (tmp_path / "kernels/fragments/kmine.config").write_text("")
    assert offered(tmp_path, "run freezer --config km", tmp_path) == ["kmemleak", "kmine"]


def test_a_damaged_file_gives_no_completions_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/broken.toml").write_text("name = ")
    done = kteardown(
        home=tmp_path,
        cwd=tmp_path,
        _KTEARDOWN_COMPLETE="complete_bash",
        COMP_WORDS="kteardown run bro",
        COMP_CWORD="2",
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_the_completion_script_is_printed() -> None:
    # From a shell, whose name the option finds among the processes above it.
    command = f"{shlex.quote(sys.executable)} -P -m kteardown --show-completion; exit $?"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "_KTEARDOWN_COMPLETE" in done.stdout
