"""``kteardown bisect`` over a real git tree, with the results of simulated guests for each
commit."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock, Timeout
from typer.testing import CliRunner, Result

from kteardown.cli import app
from kteardown.errors import BuildError, InputError, NotBuiltError
from kteardown.flows.bisection.commits import MeasuredCommits
from kteardown.flows.runner import Runner
from kteardown.model.experiment import Experiment
from kteardown.model.faults import Fault
from kteardown.model.kernel_facts import PatchSet
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result as Measured
from kteardown.paths import cache_dir
from kteardown.report import saved
from kteardown.report.material import Material
from kteardown.rundir.find import RunFolder
from outputs import output_in
from unit.report.contexts import write_run
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
        (folder / f"f{number}").write_text(f"{number}\n")
        (folder / f"f{number - number % 5}").write_text(f"{number}\n")
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", f"commit {number}")
    return folder


def within(folder: Path) -> set[int]:
    """The numbers of the commits that the patch in ``folder`` has."""
    (patch,) = folder.iterdir()
    return {int(number) for number in re.findall(r"^diff --git a/f(\d+) ", patch.read_text(), re.M)}


@pytest.fixture
def measured(tree: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the commits that were measured. Commit 7 does not build; nothing of 2 and 3 is
    built."""
    seen: list[int] = []

    def booted(
        commits: MeasuredCommits, folders: Sequence[Path], **design: int
    ) -> tuple[str, Measured]:
        number = max(within(folders[0]))
        if len(folders) == 1:
            seen.append(number)
        if number == 7:
            raise BuildError("kernel/freezer.c:9: error: \x1b[2J expected ;", hint="fix it.")
        if number == 2:
            raise NotBuiltError.of("it")
        more = {folder.name: sum(EFFECTS.get(n, 0) for n in within(folder)) for folder in folders}
        found = simulated(more)
        return f"run-{number}", alike(found) if number == 3 and len(folders) == 1 else found

    monkeypatch.setattr(MeasuredCommits, "booted", booted)
    return seen


def alike(result: Measured) -> Measured:
    """A result whose variant has the kernel of base, and is not booted."""
    (name,) = result.requested
    patches = PatchSet(series=name, patches=(1,), total=1)
    facts = result.kernels[name].model_copy(update={"unchanged": True, "patch_set": patches})
    kernels = {**result.kernels, name: facts}
    return result.model_copy(update={"kernels": kernels, "comparisons": (), "laws": ()})


def simulated(more: Mapping[str, float]) -> Measured:
    experiment = freezer(variants=tuple(more), boots=3, zombies=(1000, 2000, 3000, 4000))

    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        each = 200 + (more.get(kernel, 0) if metric == "freeze_user_ns" else 0)
        return 24_000 + each * int(params["zombies"])

    return analysed(experiment, simulate(experiment, cost, Noise(boot=1e-4, sample=1e-4)))


def _git(folder: Path, *argv: str) -> str:
    named = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@localhost", *argv]
    return subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()


def bisect(tree: Path, *argv: str) -> Result:
    ends = ["--good", f"main~{COMMITS - 1}", "--bad", "main"]
    return CliRunner().invoke(app, ["bisect", "zombies", "--source", f"git:{tree}", *ends, *argv])


def test_the_commits_are_found_each_with_its_part(
    tree: Path, measured: list[int], tmp_path: Path
) -> None:
    file = tmp_path / "answer.json"
    done = bisect(tree, "--json", str(file))
    assert done.exit_code == 0, done.exception
    output = output_in(file)
    facts = output["details"]
    assert facts["compared"]["metric"] == "freeze_user_ns"
    assert facts["compared"]["param"] == "zombies"
    ids = _git(tree, "rev-list", "--reverse", "main").split()
    found = {ids.index(one["commits"][0]): one["by"] for one in facts["changes"]}
    assert found == {number: pytest.approx(by, abs=1) for number, by in EFFECTS.items()}
    assert abs(facts["unexplained_share"]) < 0.05
    assert f'Fixes: {ids[10][:12]} ("commit 10")' in done.stdout
    assert re.search(r"\"commit 4\"\): [\d.]+ -> [\d.]+, 40% of the difference", done.stdout)
    confirmed = re.findall(r"  (confirmed, 3 boots each: .*)\n", done.stdout)
    assert len(confirmed) == len(EFFECTS)
    # Later commits change what 10 and 13 have changed.
    reverted = ["the bad commit with it reverted" in one for one in confirmed]
    assert reverted == [True, False, False]
    assert "without it 230" in confirmed[0]
    assert re.search(r"^    o-+[o#?-]+#  o good", done.stdout, re.M)
    assert "<svg" in Path(facts["picture"]).read_text()
    assert "one change takes about 6 kernels" in done.stderr
    rows = re.findall(r'#+ +\w{12} \("commit (\d+)"\)$', done.stdout, re.M)
    assert rows == sorted(rows, key=int)
    assert "not explained: 0%" in done.stdout
    assert "\x1b" not in done.stdout
    assert len(measured) == len(set(measured))
    assert 3 in measured
    assert all(
        one["value"] for number, one in enumerate(facts["measured"].values()) if not one["why"]
    )


def test_the_same_command_goes_on_and_measures_nothing_twice(
    tree: Path, measured: list[int]
) -> None:
    first = bisect(tree)
    before = list(measured)
    assert bisect(tree).stdout == first.stdout
    assert measured == before


def test_a_commit_is_judged_for_git_bisect_run(tree: Path, measured: list[int]) -> None:
    codes = {
        number: bisect(tree, "--judge", f"main~{COMMITS - 1 - number}").exit_code
        for number in (2, 5, 7, 11)
    }
    assert codes == {2: 0, 5: 0, 7: 125, 11: 1}


def test_a_commit_that_is_not_between_the_ends_is_judged(tree: Path, measured: list[int]) -> None:
    ends = ["--good", f"main~{COMMITS - 2}", "--bad", "main~2"]
    argv = ["bisect", "zombies", "--source", f"git:{tree}", *ends, "--judge"]
    codes = [CliRunner().invoke(app, [*argv, name]).exit_code for name in ("main", "main~8")]
    assert codes == [1, 125]


def test_kernels_that_panic_are_found(
    tree: Path, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Callable[..., tuple[str, Measured]] = MeasuredCommits.booted
    ids = _git(tree, "rev-list", "--reverse", "main").split()

    def booted(
        commits: MeasuredCommits, folders: Sequence[Path], **design: int
    ) -> tuple[str, Measured]:
        run, found = whole(commits, folders, **design)
        faults = tuple(
            Fault(
                kernel=folder.name,
                kind="panic",
                status="broken",
                message="Kernel panic",
                points=(),
                boots=(1,),
                of=3,
                base_boots=0,
                base_of=3,
            )
            for folder in folders
            if 9 in within(folder)
        )
        return run, found.model_copy(update={"faults": faults})

    monkeypatch.setattr(MeasuredCommits, "booted", booted)
    done = bisect(tree, "--outcome", "panic")
    assert done.exit_code == 0, done.exception
    assert f'Fixes: {ids[9][:12]} ("commit 9")' in done.stdout
    assert "panic" in done.stdout.splitlines()[0]
    assert "confirmed, 3 boots each: with the change 1.000, without it 0" in done.stdout


def test_a_comparison_that_was_killed_goes_on(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, ...]] = []
    booted: list[str] = []

    def start(_: Runner, experiments: Sequence[Experiment]) -> RunFolder:
        (experiment,) = experiments
        begun.append(experiment.variants)
        more = {
            Path(one).name: sum(EFFECTS.get(n, 0) for n in within(Path(one))) for one in begun[-1]
        }
        simulated = experiment.model_copy(update={"variants": tuple(more)})

        def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
            each = 200 + (more.get(kernel, 0) if metric == "freeze_user_ns" else 0)
            return 24_000 + each * int(params["zombies"])

        return RunFolder.of(write_run(tree.parent / "runs", simulated, cost=cost))

    def boot_rest(_: Runner, found: RunFolder, *, repeat: bool) -> Material:
        booted.append(found.name)
        if len(booted) in (1, 3, 12):
            raise KeyboardInterrupt
        return Material(found.name, saved.result_of(found.runs[0]), {})

    monkeypatch.setattr(Runner, "start", start)
    monkeypatch.setattr(Runner, "boot_rest", boot_rest)
    points = ("--set", "zombies=1000:3000:1000")
    done = [bisect(tree, *points) for _ in range(4)]
    assert [one.exit_code for one in done] == [130, 130, 130, 0]
    assert len(begun) == len(set(begun))
    assert len(booted) == len(begun) + 3
    assert "kernels and" in done[-1].stderr and " a boot, as so far on this host" in done[-1].stderr
    assert len(re.findall("  confirmed, ", done[-1].stdout)) == len(EFFECTS)


def test_two_of_the_same_command_take_turns(
    tree: Path, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Callable[..., tuple[str, Measured]] = MeasuredCommits.booted
    taken: list[bool] = []

    def booted(
        commits: MeasuredCommits, folders: Sequence[Path], **design: int
    ) -> tuple[str, Measured]:
        (lock,) = (cache_dir() / "bisections" / ".locks").glob("*.lock")
        with suppress(Timeout), FileLock(lock).acquire(timeout=0):
            taken.append(True)
        return whole(commits, folders, **design)

    monkeypatch.setattr(MeasuredCommits, "booted", booted)
    assert bisect(tree).exit_code == 0
    assert measured
    assert not taken


def in_real_time(
    tree: Path, monkeypatch: pytest.MonkeyPatch, more: float, noise: float = 0.02, vague: int = -1
) -> list[tuple[int, str]]:
    """Let commit 9 cost ``more``, and 7 not build. Return what is measured, each with its stopping
    rule."""
    seen: list[tuple[int, str]] = []

    def booted(
        commits: MeasuredCommits, folders: Sequence[Path], **design: int
    ) -> tuple[str, Measured]:
        number = max(within(folders[0]))
        assert "seeds" not in design
        if len(folders) == 1:
            seen.append((number, commits.compared.until if commits.compared.size else "verdict"))
        if number == 7:
            raise BuildError("kernel/freezer.c:9: error", hint="fix it.")
        with_it = {folder.name for folder in folders if 9 in within(folder)}
        names = tuple(folder.name for folder in folders)
        experiment = freezer("wall", variants=names, boots=12, zombies=(1000,))

        def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
            bad = kernel in with_it and metric == "freeze_user_ns"
            return 1e6 * (1 + more * bad)

        boot = 1.0 if number == vague else noise
        return f"run-{number}", analysed(
            experiment, simulate(experiment, cost, Noise(boot=boot), seed=number)
        )

    monkeypatch.setattr(MeasuredCommits, "booted", booted)
    return seen


def test_real_time_finds_the_commit_and_how_probable_it_is(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = in_real_time(tree, monkeypatch, 0.3)
    file = tmp_path / "answer.json"
    done = bisect(tree, "--clock", "wall", "--json", str(file))
    assert done.exit_code == 0, done.exception
    output = output_in(file)
    facts = output["details"]
    ids = _git(tree, "rev-list", "--reverse", "main").split()
    assert [one["commits"] for one in facts["changes"]] == [[ids[9]]]
    assert sum(facts["posterior"].values()) == pytest.approx(1)
    assert facts["posterior"][ids[9]] > 0.99
    assert f'Fixes: {ids[9][:12]} ("commit 9")' in done.stdout
    assert re.search(
        r"  confirmed, 12 boots each: with the change 1.[23]\d+, without it (0.99|1.00)",
        done.stdout,
    )
    assert "most probable: " in done.stderr
    rules = {rule for number, rule in seen if number != COMMITS - 1}
    assert len(rules) == 1
    assert re.fullmatch(r"step=99%,freeze_user_ns=(29|30|31)\.\d+%", rules.pop())
    assert bisect(tree, "--clock", "wall").stdout == done.stdout
    assert len(seen) == len(set(seen))


def test_a_commit_that_is_uncertain_is_skipped(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_real_time(tree, monkeypatch, 0.3, vague=8)
    done = bisect(tree, "--clock", "wall")
    assert re.search(r'^uncertain, and skipped: .*"commit 8"', done.stderr, re.M)
    assert "one of these, since some have no value or are uncertain" in done.stdout
    assert bisect(tree, "--clock", "wall", "--judge", f"main~{COMMITS - 9}").exit_code == 125


@pytest.mark.parametrize(("more", "noise"), [(0.0, 0.02), (-0.3, 0.02), (0.02, 0.05)])
def test_what_the_clock_cannot_see_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch, more: float, noise: float
) -> None:
    seen = in_real_time(tree, monkeypatch, more, noise)
    done = bisect(tree, "--clock", "wall")
    assert "this clock cannot see the difference" in str(done.exception)
    assert len(seen) == 1


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--clock", "both"], "takes neither --clock both"),
        (["--clock", "wall", "--outcome", "panic"], "nor --clock wall together with --outcome"),
        (["--outcome", "slow"], "no kernel fails in this way"),
        (["--seeds", "1"], "no difference can be measured with one seed"),
        (["--good", "nothing"], "'nothing' is not a commit of"),
        (["--source", "debian:6.12"], "--source debian:6.12: a bisection needs a git tree and two"),
        (["--good", "debian:7.2", "--bad", "debian:7.3"], "no source has the commits between"),
        (["--series", "x.mbox"], "--series: the ends are the source"),
        (["--metric", "thaw_ns"], "no difference between the good and the bad commit is measured"),
        (["--outcome", "hang"], "the bad commit does not fail with hang"),
    ],
)
def test_wrong_input_is_an_error(
    tree: Path, measured: list[int], argv: list[str], message: str
) -> None:
    done = bisect(tree, *argv)
    assert message in str(done.exception)
    assert set(measured) <= {COMMITS - 1}


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--good", "main"], "main..main has no commit"),
        (["--good", "main", "--bad", "main~3"], "main..main~3 has no commit"),
        (
            ["--path", "nothing", "--path", "/etc"],
            f"main~{COMMITS - 1}..main has no commit that touches nothing",
        ),
        (["--metric", "freeze_user"], "zombies has no such metric; did you mean 'freeze_user_ns'?"),
        (["--judge", "nothing"], "'nothing' is not a commit of"),
        (["--fail-on", "worse"], "a bisection has no --fail-on"),
        (
            ["--junit", "bisect.xml"],
            "--junit: a bisection has no verdicts, which this format shows",
        ),
    ],
)
def test_what_cannot_be_bisected_is_refused_before_anything_is_measured(
    tree: Path, measured: list[int], argv: list[str], message: str
) -> None:
    done = bisect(tree, *argv)
    assert isinstance(done.exception, InputError)
    assert message in done.exception.message
    assert not measured


def test_nothing_of_a_foreign_folder_is_executed(tree: Path, measured: list[int]) -> None:
    assert bisect(tree).exit_code == 0
    (folder,) = (tree.parent / "runs").glob("bisect-*")
    hook = folder / "git/hooks/post-index-change"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ntouch {tree.parent}/executed\n")
    hook.chmod(0o755)
    (folder / "git/config").write_text(f"[core]\nfsmonitor = touch {tree.parent}/executed\n")
    assert bisect(tree).exit_code == 0
    assert not (tree.parent / "executed").exists()
    assert hook.exists(), "git has its folder elsewhere"
