"""``kteardown bisect`` over a real git tree, with the results of simulated guests for each commit."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kteardown.cli import app
from kteardown.cli.bisect import Judge
from kteardown.errors import BuildError, NotBuiltError
from kteardown.model.record import ParamValue
from kteardown.model.result import Fault, PatchSet
from kteardown.model.result import Result as Measured
from unit.simulation import Noise, analysed, freezer, simulate

COMMITS = 16
EFFECTS = {4: 20.0, 10: 60.0, 13: -30.0}
"""Instructions for one more zombie that a commit adds to the 200 of the first."""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git tree with 16 commits."""
    for name in ("CACHE", "RUNS"):
        monkeypatch.setenv(f"KTEARDOWN_{name}", str(tmp_path / name.lower()))
    folder = tmp_path / "linux"
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    for number in range(COMMITS):
        (folder / "file").write_text(f"{number}\n")
        _git(folder, "add", "file")
        _git(folder, "commit", "-q", "-m", f"commit {number}")
    return folder


@pytest.fixture
def measured(tree: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the commits that were measured. Commit 7 does not build; nothing of 2 and 3 is built."""
    ids = _git(tree, "rev-list", "--reverse", "main").split()
    seen: list[int] = []

    def result(judge: Judge, commit: str) -> tuple[str, Measured]:
        number = ids.index(commit)
        seen.append(number)
        if number == 7:
            raise BuildError("kernel/freezer.c:9: error: \x1b[2J expected ;", hint="fix it.")
        if number == 2:
            raise NotBuiltError.of("it")
        found = simulated(commit, sum(EFFECTS[n] for n in EFFECTS if n <= number))
        return f"run-{number}", alike(found) if number == 3 else found

    monkeypatch.setattr(Judge, "result", result)
    return seen


def alike(result: Measured) -> Measured:
    """A result whose variant has the kernel of base, and is not booted."""
    (name,) = result.requested
    patches = PatchSet(series=name, patches=(1,), total=1)
    facts = result.kernels[name].model_copy(update={"unchanged": True, "patch_set": patches})
    kernels = {**result.kernels, name: facts}
    return result.model_copy(update={"kernels": kernels, "comparisons": (), "laws": ()})


def simulated(commit: str, more: float) -> Measured:
    name = f"c-{commit[:12]}"
    experiment = freezer(variants=(name,), boots=3, zombies=(1000, 2000, 3000, 4000))

    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        each = 200 + (more if kernel == name and metric == "freeze_user_ns" else 0)
        return 24_000 + each * int(params["zombies"])

    return analysed(experiment, simulate(experiment, cost, Noise(boot=1e-4, sample=1e-4)))


def _git(folder: Path, *argv: str) -> str:
    named = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@localhost", *argv]
    return subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()


def bisect(tree: Path, *argv: str) -> Result:
    ends = ["--good", f"main~{COMMITS - 1}", "--bad", "main"]
    return CliRunner().invoke(app, ["bisect", "zombies", "--source", f"git:{tree}", *ends, *argv])


def test_the_commits_are_found_each_with_its_part(tree: Path, measured: list[int], tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    done = bisect(tree, "--json", str(file))
    assert done.exit_code == 0, done.exception
    facts = json.loads(file.read_text())
    assert facts["compared"]["metric"] == "freeze_user_ns"
    assert facts["compared"]["param"] == "zombies"
    ids = _git(tree, "rev-list", "--reverse", "main").split()
    found = {ids.index(one["commits"][0]): one["by"] for one in facts["changes"]}
    assert found == {number: pytest.approx(by, abs=1) for number, by in EFFECTS.items()}
    assert abs(facts["unexplained_share"]) < 0.05
    assert f'Fixes: {ids[10][:12]} ("commit 10")' in done.stdout
    assert re.search(r"\"commit 4\"\): [\d.]+ -> [\d.]+, 40% of the difference", done.stdout)
    rows = re.findall(r'#+ +\w{12} \("commit (\d+)"\)$', done.stdout, re.M)
    assert rows == sorted(rows, key=int)
    assert "not explained: 0%" in done.stdout
    assert "\x1b" not in done.stdout
    assert len(measured) == len(set(measured))
    assert 3 in measured
    assert all(one["value"] for number, one in enumerate(facts["measured"].values()) if not one["why"])


def test_the_same_command_goes_on_and_measures_nothing_twice(tree: Path, measured: list[int]) -> None:
    first = bisect(tree)
    before = list(measured)
    assert bisect(tree).stdout == first.stdout
    assert measured == before


def test_a_commit_is_judged_for_git_bisect_run(tree: Path, measured: list[int]) -> None:
    codes = {
        number: bisect(tree, "--judge", f"main~{COMMITS - 1 - number}").exit_code for number in (2, 5, 7, 11)
    }
    assert codes == {2: 0, 5: 0, 7: 125, 11: 1}


def test_kernels_that_panic_are_found(
    tree: Path, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Callable[[Judge, str], tuple[str, Measured]] = Judge.result
    ids = _git(tree, "rev-list", "--reverse", "main").split()

    def result(judge: Judge, commit: str) -> tuple[str, Measured]:
        run, found = whole(judge, commit)
        if ids.index(commit) < 9:
            return run, found
        fault = Fault(
            kernel=found.requested[0],
            kind="panic",
            status="broken",
            message="Kernel panic",
            points=(),
            boots=(1,),
            of=3,
            base_boots=0,
            base_of=3,
        )
        return run, found.model_copy(update={"faults": (fault,)})

    monkeypatch.setattr(Judge, "result", result)
    done = bisect(tree, "--outcome", "panic")
    assert done.exit_code == 0, done.exception
    assert f'Fixes: {ids[9][:12]} ("commit 9")' in done.stdout
    assert "panic" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--clock", "wall"], "commits are bisected on the instruction clock"),
        (["--outcome", "slow"], "no kernel fails so"),
        (["--good", "nothing"], "'nothing' is not a commit of"),
        (["--source", "debian:6.12"], "the commits between which to bisect are not given"),
        (["--series", "x.mbox"], "--series has its own ends"),
        (["--metric", "thaw_ns"], "no difference between the good and the bad commit is measured"),
        (["--metric", "nothing"], "there is no metric nothing"),
        (["--outcome", "hang"], "the bad commit shows no hang"),
    ],
)
def test_wrong_input_is_an_error(tree: Path, measured: list[int], argv: list[str], message: str) -> None:
    done = bisect(tree, *argv)
    assert message in str(done.exception)
    assert set(measured) <= {COMMITS - 1}
