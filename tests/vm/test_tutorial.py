"""The steps of the tutorial: an mbox, a branch, and a new workload.

The base kernel is that of the freezer experiment, which other tests need as well.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kteardown.kernels.series import resolve
from kteardown.kernels.source import Sources
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from unit.kernels.test_git_branch import git
from vm.test_run import kteardown, result_of

pytestmark = [pytest.mark.vm, pytest.mark.build]

FILE = "kernel/power/process.c"
SMALL = ["--seeds", "2", "--repetitions", "1", "--set", "zombies=0,600"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, base_image: Path) -> Path:
    """A git tree with the one file that the patches change: the tag v6.12, and a branch with two
    patches.

    The same patches are in ``my.mbox`` beside it, as mails after a cover letter.
    """
    assert base_image.is_file()
    sources = Sources(cache_dir(), SilentReporter())
    path = tmp_path_factory.mktemp("git") / "linux"
    (path / FILE).parent.mkdir(parents=True)
    original = sources.tree(sources.identify("debian:6.12")) / FILE
    (path / FILE).write_bytes(original.read_bytes())
    git(path, "init", "-q", "-b", "master")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "Linux 6.12")
    git(path, "tag", "v6.12")
    git(path, "checkout", "-q", "-b", "freezer-dead")
    git(path, "am", "-q", *map(str, resolve("freezer-skip-exited").patches))
    mails = git(path, "format-patch", "--stdout", "--cover-letter", "v6.12..freezer-dead")
    assert "[PATCH 0/2]" in mails
    (path.parent / "my.mbox").write_text(mails)
    return path


@pytest.fixture
def own_runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def compared(file: Path, variant: str) -> float:
    """The change of the suspend freezer's user space phase with the most zombies."""
    (row,) = (
        row
        for row in result_of(file)["comparisons"]
        if (row["variant"], row["metric"]) == (variant, "freeze_user_ns")
        and row["point"]["zombies"] == 600
    )
    assert row["verdict"] == "better"
    return float(row["ratio"])


@pytest.mark.full
def test_an_mbox_and_a_branch_are_the_same_series(
    tree: Path, own_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    base = ["compare", "zombies", "--source", "debian:6.12", *SMALL]
    files = [tmp_path / "mail.json", tmp_path / "branch.json"]
    kteardown(*base, "--series", "../my.mbox", "--json", str(files[0]), runs=own_runs)
    done = kteardown(
        *base, "--branch", "v6.12..freezer-dead", "--json", str(files[1]), runs=own_runs
    )
    assert "freezer-dead" in done.stdout
    ratios = compared(files[0], "my"), compared(files[1], "freezer-dead")
    assert ratios[0] == ratios[1] < 1
    images = [
        result_of(file)["kernels"][name]["image_hash"]
        for file, name in zip(files, ("my", "freezer-dead"), strict=True)
    ]
    assert images[0] == images[1]
    letter = kteardown("report", "last", "--format", "markdown", runs=own_runs).stdout
    assert "freezer-dead" in letter


def test_skeletons_run_as_they_are_and_their_patch_is_not_in_the_kernel(
    base_image: Path, own_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert base_image.is_file()
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.chdir(mine)
    kteardown("new", "workload", "unmap_all", runs=own_runs)
    kteardown("new", "experiment", "unmapping", "--workload", "unmap_all", runs=own_runs)
    kteardown("new", "series", "my-change", runs=own_runs)
    result = mine / "r.json"
    asked = ["run", "unmapping", "--quick", "--set", "pages=8000,16000,30000"]
    done = kteardown(*asked, "--json", str(result), runs=own_runs)
    assert "growth of unmapping all pages with pages" in done.stdout
    assert result_of(result)["boots"]["ok"] == 2
    monkeypatch.chdir("/")
    first, *_ = done.stdout.splitlines()
    assert kteardown("report", "last", runs=own_runs).stdout.startswith(f"{first}\n")
    monkeypatch.chdir(mine)
    # Its patch adds a comment.
    done = kteardown(*asked, "--variant", "my-change", runs=own_runs, expect=7)
    assert "nothing of my-change is in the kernel" in done.stderr


@pytest.mark.full
def test_a_terminal_shows_the_boots_and_interim_results(tree: Path, own_runs: Path) -> None:
    """`script` provides a pseudo terminal."""
    command = f"{shlex.quote(sys.executable)} -P -m kteardown compare zombies --source debian:6.12"
    command += " --series ../my.mbox -v --jobs 1"
    shown = subprocess.run(
        ["script", "-qec", f"{command} {' '.join(SMALL)}", "/dev/null"],
        cwd=tree,
        env={
            **os.environ,
            "KTEARDOWN_RUNS": str(own_runs),
            "TERM": "xterm",
            "COLUMNS": "150",
            "LINES": "50",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # If the kernel with the series is not in the cache, those of base boot while it is built.
    assert "booting 4 guests" in shown or "booting 2 guests" in shown
    assert "so far, at the last point" in shown
    assert "qemu-system-x86_64" in shown
    assert "compare-zombies: What does the change do to zombies?" in shown
