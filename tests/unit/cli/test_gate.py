"""``kteardown gate`` against kept runs and branches, with simulated guests."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from kteardown.cli import app
from kteardown.errors import GateError, NotBuiltError
from kteardown.flows.runner import Runner
from kteardown.inputs.load import load_experiment
from kteardown.inputs.options import Overrides, apply
from kteardown.kernels.source import file_hash
from kteardown.model.experiment import Experiment
from kteardown.model.record_fields import ParamValue
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.report.material import Measured
from kteardown.report.saved import material_of_folder
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder
from kteardown.vm.agent import build_agent
from outputs import output_in
from unit.conftest import MISSING
from unit.report.contexts import write_run
from unit.simulation import freezer_cost

ROOT = Path(__file__).parents[3]
OWN = ("-c", "user.name=A", "-c", "user.email=a@example.com")
OPTIONS = ("--workload", "zombies", "--set", "zombies=1000,3000", "--seeds", "3")


class Guests:
    """Simulated guests, whose kernel costs ``factor`` times as much as that of the first run."""

    def __init__(self, runs: Path) -> None:
        self.runs, self.factor = runs, 1.0
        self.booted: list[Experiment] = []

    def start(self, experiments: Sequence[Experiment]) -> RunFolder:
        """Boot an experiment. The variant has the factor, or base without one."""
        (experiment,) = experiments
        self.booted.append(experiment)
        names = tuple(Path(name).name for name in experiment.variants)
        changed = names[0] if names else "base"

        def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
            factor = self.factor if kernel == changed and metric == "freeze_user_ns" else 1
            return factor * freezer_cost("base", metric, params)

        simulated = experiment.model_copy(update={"variants": names})
        day = f"2026-03-{len(self.booted):02}"
        run = write_run(self.runs, simulated, cost=cost, started=day)
        return RunFolder.of(run)

    def boot_rest(self, found: RunFolder) -> Measured:
        """Return what was booted."""
        return material_of_folder(found)


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guests:
    # The agent takes seconds to build: it is that of the user's cache.
    agents = cache_dir() / "agent"
    agents.mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/agent").symlink_to(agents)
    for name in ("CACHE", "RUNS"):
        monkeypatch.setenv(f"KTEARDOWN_{name}", str(tmp_path / name.lower()))
    made = Guests(tmp_path / "runs")
    monkeypatch.setattr(Runner, "start", lambda runner, experiments: made.start(experiments))
    monkeypatch.setattr(Runner, "boot_rest", lambda runner, found: made.boot_rest(found))
    return made


@pytest.fixture
def kept(guests: Guests) -> str:
    """The name of a kept run of base alone."""
    experiment = apply(
        load_experiment("freezer"),
        Overrides(workload=["zombies"], assignments=["zombies=1000,3000"], seeds=3),
    )
    return guests.start([experiment.model_copy(update={"variants": ()})]).name


def with_agent(run: RunDir, digest: str) -> None:
    """Record the agent of a run."""
    environment = {**run.environment(), "sessions": [{"machine": {}, "agent_hash": digest}]}
    run.environment_file.path.write_text(json.dumps(environment))


def gate(*argv: str) -> Result:
    return CliRunner().invoke(app, ["gate", "freezer", *OPTIONS, *argv])


def test_a_kernel_passes_against_itself(guests: Guests, kept: str) -> None:
    done = gate("--against", kept)
    assert done.exit_code == 0, done.exception
    assert done.stdout.count("pass: ") == 2
    assert guests.booted[-1].variants == ()


def test_what_costs_more_fails_and_is_in_every_file(
    guests: Guests, kept: str, tmp_path: Path
) -> None:
    guests.factor = 1.1
    files = {form: tmp_path / form for form in ("json", "junit", "comment", "markdown")}
    named = [text for form, file in files.items() for text in (f"--{form}", str(file))]
    done = gate("--against", kept, "--variant", "freezer-skip-exited", *named)
    assert isinstance(done.exception, GateError)
    (fail,) = [line for line in done.stdout.splitlines() if line.startswith("FAIL: ")]
    assert "freezing user space: +10." in fail
    output = output_in(files["json"])
    assert [line["passes"] for line in output["details"]["lines"]] == [False, True]
    assert (output["command"], output["outcome"], output["exit_code"]) == ("gate", "fail", 1)
    assert output["error"] == done.exception.message
    (run,) = output["runs"]
    assert [one["outcome"] for one in run["variants"]] == ["fail"]
    failed = ElementTree.parse(files["junit"]).getroot().findall(".//failure")
    assert [one.get("type") for one in failed] == ["worse"] * len(failed) and failed
    assert "- FAIL: " in files["comment"].read_text()
    assert "- FAIL: " in files["markdown"].read_text()


def test_the_counts_of_another_agent_are_refused_before_anything_is_booted(
    guests: Guests, kept: str
) -> None:
    run = RunDir(guests.runs / kept)
    before = len(guests.booted)
    with_agent(run, "0" * 64)
    done = gate("--against", kept)
    assert "was measured in another way: the agent" in str(done.exception)
    assert len(guests.booted) == before
    own = build_agent("x86_64", cache=cache_dir(), reporter=SilentReporter())
    with_agent(run, file_hash(own))
    assert gate("--against", kept).exit_code == 0


@pytest.mark.parametrize(
    ("margin", "code"),
    [
        (["5%"], 1),
        (["15%"], 0),
        (["15%", "freeze_user_ns=1%"], 1),
        (["1%", "freeze_user_ns=15%"], 0),
    ],
)
def test_each_metric_has_a_margin(guests: Guests, kept: str, margin: list[str], code: int) -> None:
    guests.factor = 1.1
    named = [text for one in margin for text in ("--margin", one)]
    done = gate("--against", kept, *named)
    assert (1 if isinstance(done.exception, GateError) else done.exit_code) == code, done.stdout


@pytest.mark.skipif("history" in MISSING, reason="the package `history` adds the steps up")
def test_steps_within_the_margin_that_add_up_fail(guests: Guests, kept: str) -> None:
    outcomes = []
    last = kept
    for step in range(1, 4):
        guests.factor = 1 + 0.015 * step
        done = gate("--against", last)
        outcomes.append("none of them beyond the margin" in done.stdout)
        assert isinstance(done.exception, GateError) == outcomes[-1]
        last = max(path.name for path in guests.runs.iterdir())
    assert outcomes == [False, True, True]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A git tree with a branch `main`, and one commit more that is merged with a later commit of
    main."""
    folder = tmp_path / "linux"
    folder.mkdir()
    script = """git init -q -b main; echo a >file; git add file; git commit -qm one
git checkout -qb topic
    echo b >file; git commit -qam topic
    git checkout -q main; echo c >other; git add other; git commit -qm two
    git checkout -q topic; git merge -q --no-edit main"""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    environment |= {
        f"GIT_{role}_{part}": "a@b"
        for role in ("AUTHOR", "COMMITTER")
        for part in ("NAME", "EMAIL")
    }
    subprocess.run(["sh", "-ec", script], cwd=folder, env=environment, check=True)
    return folder


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.1, 1)])
def test_a_branch_is_compared_with_what_the_tree_has_more(
    guests: Guests, tree: Path, factor: float, code: int
) -> None:
    guests.factor = factor
    done = gate("--against", "main", "--source", f"git:{tree}")
    assert isinstance(done.exception, GateError) == bool(code), done.exception
    (booted,) = guests.booted
    main = subprocess.check_output(["git", "-C", str(tree), "rev-parse", "main"], text=True).strip()
    assert booted.source == f"git:{tree}@{main}"
    (patch,) = Path(booted.variants[0]).glob("*.patch")
    assert "-a\n+b\n" in patch.read_text()
    assert "other" not in patch.read_text()


def test_a_tree_without_a_difference_passes_and_boots_nothing(
    guests: Guests, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gate.xml"
    done = gate("--against", "topic", "--source", f"git:{tree}", "--junit", str(file))
    assert (done.exit_code, guests.booted) == (0, [])
    assert ElementTree.parse(file).getroot().get("tests") == "1"

    def nothing(*_: object) -> RunFolder:
        raise NotBuiltError.of("it")

    monkeypatch.setattr(Runner, "start", nothing)
    assert gate("--against", "main", "--source", f"git:{tree}").exit_code == 0


def test_a_tree_without_a_common_commit_or_an_object_is_refused(guests: Guests, tree: Path) -> None:
    def ask(*words: str) -> str:
        return subprocess.check_output(["git", "-C", str(tree), *words], text=True).strip()

    lost = ask("rev-parse", "topic^{tree}")
    orphan = ask(*OWN, "commit-tree", "-m", "another history", lost)
    done = gate("--against", orphan, "--source", f"git:{tree}")
    assert "have no commit in common" in str(done.exception)
    blob = ask("ls-tree", "topic").split()[2]
    (tree / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    done = gate("--against", "main", "--source", f"git:{tree}")
    assert "git cannot compare" in str(done.exception)
    assert guests.booted == []


def test_what_is_worse_fails_whatever_else_may_fail(guests: Guests, tree: Path) -> None:
    guests.factor = 1.1
    done = gate("--against", "main", "--source", f"git:{tree}", "--fail-on", "inconclusive")
    assert isinstance(done.exception, GateError)


def test_real_time_is_compared_side_by_side_until_the_margin_is_decided(
    guests: Guests, kept: str
) -> None:
    wall = [word for word in OPTIONS if word not in ("--seeds", "3")]
    clock = [*wall, "--clock", "wall"]
    experiment = apply(
        load_experiment("freezer"),
        Overrides(workload=["zombies"], assignments=["zombies=1000,3000"], clock="wall"),
    )
    name = guests.start([experiment.model_copy(update={"variants": ()})]).name
    guests.factor = 1.2
    argv = ["gate", "freezer", *clock, "--against", name, "--variant", "freezer-skip-exited"]
    CliRunner().invoke(app, [*argv, "--margin", "3%"])
    assert guests.booted[-1].design.until == "margin=3%"
    assert guests.booted[-1].source == "debian:6.12"
    refused = CliRunner().invoke(app, ["gate", "freezer", *clock, "--against", kept])
    assert "was measured on another clock" in str(refused.exception)


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.1, 1)])
def test_the_workflow_of_the_page_is_executed(
    guests: Guests, tree: Path, monkeypatch: pytest.MonkeyPatch, factor: float, code: int
) -> None:
    workflow = (ROOT / "docs/ci/gate.yml").read_text()
    assert workflow.strip() in (ROOT / "docs/ci.md").read_text()
    steps = re.findall(r"run: >-\n((?: {10}.*\n)+)", workflow)
    subprocess.run(["git", "update-ref", "refs/remotes/origin/main", "main"], cwd=tree, check=True)
    monkeypatch.chdir(tree)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tree / "summary"))
    guests.factor = factor
    for step in steps:
        program, *argv = [os.path.expandvars(word) for word in shlex.split(step)]
        assert program == "kteardown"
        done = CliRunner().invoke(app, argv)
        assert isinstance(done.exception, GateError) == bool(code), done.exception
    assert (ElementTree.parse(tree / "gate.xml").getroot().get("failures") != "0") is bool(code)
    assert bool(output_in(tree / "gate.json")["exit_code"]) is bool(code)
    assert ("FAIL" if code else "pass") in (tree / "summary").read_text()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--clock", "both"), "a gate has one clock"),
        (("--variant", "a", "--variant", "b"), "a gate judges one kernel"),
        (("--margin", "5"), "is not a margin"),
        (("--against", "nothing", "--source", "debian:6.12"), "no such run"),
        (
            ("--against", "nothing", "--source", "git:TREE"),
            "--against nothing: no such run, and no branch",
        ),
        (("--against", "./nothing", "--source", "git:TREE"), "'./nothing' is not a commit of"),
        (("--repetitions", "2"), "was measured in another way: repetitions is 9 / 2"),
        (("--margin", "nothing_ns=5%"), "no headline metric of this name"),
    ],
)
def test_wrong_input_is_an_error(
    guests: Guests, kept: str, tree: Path, argv: tuple[str, ...], message: str
) -> None:
    given = [word.replace("TREE", str(tree)) for word in argv]
    done = gate(*([] if "--against" in given else ["--against", kept]), *given)
    assert message in str(done.exception), (done.exception, done.stdout)
    assert len(guests.booted) == 1
