"""The lab of a run that counts (``--counts``): its agent, its notes, and its errors before a guest
boots."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.errors import LabError
from kteardown.inputs.load import load_experiment, load_workloads
from kteardown.inputs.options import Overrides, apply
from kteardown.model.experiment import Experiment
from kteardown.progress import SilentReporter
from kteardown.run import lab
from kteardown.run.make_plan import make_plan
from kteardown.run.places import HERE, Where, place_of
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import Snapshot, write_inputs
from kteardown.rundir.snapshot import load_workloads as kept_workloads
from kteardown.vm import acceleration, host
from unit.conftest import MISSING


class Notes(SilentReporter):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The agents that are built: which builder made each."""
    agent = tmp_path / "agent"
    agent.write_bytes(b"")
    made: list[str] = []

    def build(*_: object, also: str, **__: object) -> Path:
        made.append(also)
        return agent

    monkeypatch.setattr(lab, "build_agent", build)
    monkeypatch.setattr("kteardown.run.lab.main_loop_library", lambda reporter: None)
    return made


def counted(name: str = "freezer", **options: object) -> Experiment:
    return apply(load_experiment(name), Overrides(**{"counts": True, "clock": "wall", **options}))  # type: ignore[arg-type]


def snapshot(experiment: Experiment, folder: Path) -> Snapshot:
    workloads = load_workloads(experiment)
    plan = make_plan(experiment, workloads, [])
    return Snapshot(RunDir(folder), experiment, workloads, None, plan, {}, [])


def with_kvm(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    found = acceleration.WallAcceleration("kvm", "")
    monkeypatch.setattr(acceleration, "best_wall_acceleration", lambda arch, cache: found)
    monkeypatch.setattr(host, "why_guests_have_no_counters", lambda: reason)


def test_the_agent_is_the_one_that_counts_only_where_it_is_asked_for(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_kvm(monkeypatch, "")
    asked = snapshot(counted(), tmp_path)
    lab.make_lab(asked, SilentReporter(), Where())
    lab.make_lab(asked, SilentReporter(), Where(), counts=False)
    lab.make_lab(snapshot(counted(counts=False), tmp_path), SilentReporter(), Where())
    assert built == ["counts", "", ""]


def test_a_host_without_counters_is_an_error(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_kvm(monkeypatch, "the processor has no counters")
    with pytest.raises(
        LabError, match="no hardware counters on the wall clock: the processor has no"
    ) as error:
        lab.make_lab(snapshot(counted(), tmp_path), SilentReporter(), Where())
    assert "kteardown doctor" in error.value.hint
    with pytest.raises(LabError):
        HERE.check_experiment(counted(), kvm=False)
    if "cluster" not in MISSING:
        # What the nodes of a cluster have is not known here.
        place_of("slurm").check_experiment(counted(), kvm=False)
    HERE.check_experiment(counted(counts=False), kvm=False)
    HERE.check_experiment(counted(arch="arm64", clock="instructions"), kvm=False)


def test_a_host_that_would_emulate_is_refused_if_kvm_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = acceleration.WallAcceleration(
        "mttcg", "KVM is not used: this user may not open /dev/kvm."
    )
    monkeypatch.setattr(acceleration, "best_wall_acceleration", lambda arch, cache: found)
    wall = counted(counts=False)
    with pytest.raises(
        LabError, match=r"--require kvm: the wall clock would be emulated: .*may not open"
    ):
        HERE.check_experiment(wall, kvm=True)
    HERE.check_experiment(wall, kvm=False)
    HERE.check_experiment(counted(arch="arm64", clock="instructions"), kvm=True)
    with_kvm(monkeypatch, "")
    HERE.check_experiment(wall, kvm=True)


@pytest.mark.parametrize(
    "command",
    [
        ["run", "freezer"],
        ["compare", "zombies", "--source", "debian:6.12", "--series", "exit-linear"],
    ],
)
def test_a_host_without_kvm_is_an_error_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    found = acceleration.WallAcceleration("mttcg", "no KVM")
    monkeypatch.setattr(acceleration, "best_wall_acceleration", lambda arch, cache: found)
    monkeypatch.setattr(
        "kteardown.pipeline.start", lambda *_, **__: pytest.fail("something is built")
    )
    done = CliRunner().invoke(app, [*command, "--clock", "wall", "--counts"])
    assert isinstance(done.exception, LabError)
    assert "emulation has no counters" in done.exception.message


def test_a_workload_without_a_stretch_is_noted(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_kvm(monkeypatch, "")
    monkeypatch.setattr(
        "kteardown.inputs.counts.marks_stretch", lambda name, folder="": name == "zombies"
    )
    reporter = Notes()
    lab.make_lab(snapshot(counted(), tmp_path), reporter, Where())
    assert reporter.notes == [
        "--counts: zombies_cgroup is not counted, because it marks no stretch"
    ]


def test_the_run_directory_keeps_the_metrics(tmp_path: Path) -> None:
    experiment = counted()
    run = RunDir(tmp_path)
    workloads = load_workloads(experiment)
    write_inputs(run, workloads, None, make_plan(experiment, workloads, []))
    assert kept_workloads(run) == workloads
    assert "cycles_count" in kept_workloads(run)["zombies"].metrics
