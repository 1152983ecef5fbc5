"""The mass kill: every way to make, kill and reap a chain of processes, and one that is too
large."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

PROCESSES = 100
MAKES = ("shared", "fork", "exec", "nested")
SIGNALS = ("kill", "int")
PARENTS = ("holder", "init")
REAPS = ("newest", "oldest", "any", "ignore")
CONTROLS = {
    "forkexit": "children = [50]",
    "shortlived": "jobs = [8]",
    "threadexit": "threads = [50]",
}


def run(folder: Path, workloads: str, memory_mb: int = 256, cpus: int = 2) -> list[lab.Trial]:
    """The trials of one boot of base on the instruction clock."""
    (boot,) = lab.run(
        folder,
        'name = "masskill"\nquestion = "Does it work?"\nsource = "debian:6.12"\n'
        f"{workloads}\n"
        '[design]\nclock = "instructions"\nseeds = 1\nwarmup = 0\nrepetitions = 1\n'
        f"[machine]\nmemory_mb = {memory_mb}\ncpus = {cpus}\n",
    )
    return boot.trials


def chains(makes: tuple[str, ...], signals: tuple[str, ...], reaps: tuple[str, ...]) -> str:
    return (
        f'[[workloads]]\nworkload = "pipechain"\nparams.processes = [{PROCESSES}]\n'
        f"params.make = {list(makes)!r}\nparams.signal = {list(signals)!r}\nparams.reap = "
        f"{list(reaps)!r}\n"
        f"params.parent = {list(PARENTS)!r}\n"
    )


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Trial]:
    """The trials of one boot: every way to kill a chain, and the controls."""
    controls = "".join(
        f'[[workloads]]\nworkload = "{name}"\nparams.{few}\n' for name, few in CONTROLS.items()
    )
    ways = chains(MAKES, SIGNALS, ("newest", "ignore"))
    return run(tmp_path_factory.mktemp("ways"), ways + controls)


@pytest.fixture(scope="module")
def every_way(booted: list[lab.Trial]) -> list[lab.Trial]:
    return [trial for trial in booted if trial.workload == "pipechain"]


def test_every_way_to_make_and_kill_a_chain_leaves_no_process(every_way: list[lab.Trial]) -> None:
    pipechain = load_workload("pipechain")
    assert len(every_way) == len(MAKES) * len(SIGNALS) * len(PARENTS) * 2
    for trial in every_way:
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.checks == {name: [True] for name in pipechain.invariants}
        assert set(trial.samples) == set(pipechain.metrics)


def test_processes_that_share_their_memory_have_no_page_table_of_their_own(
    every_way: list[lab.Trial],
) -> None:
    table_kb = {str(trial.params["make"]): trial.samples["page_table_kb"][0] for trial in every_way}
    assert table_kb["shared"] < PROCESSES
    assert all(table_kb[make] > PROCESSES for make in ("fork", "exec", "nested"))


def test_too_little_memory_is_reported_and_without_latency_probes_their_metrics_have_no_samples(
    tmp_path: Path,
) -> None:
    too_many, fitting = run(
        tmp_path,
        '[[workloads]]\nworkload = "pipechain"\nparams.make = ["fork"]\nparams.probes = ["none"]\n'
        f"params.processes = [100000, {PROCESSES}]\n",
    )
    assert too_many.status == "failed"
    assert "100000 processes need about" in too_many.detail
    assert "give the guest more memory" in too_many.detail
    assert not too_many.samples
    metrics = load_workload("pipechain").metrics
    assert fitting.status == "ok", fitting.detail
    assert set(fitting.samples) == {name for name, metric in metrics.items() if not metric.optional}


def test_controls_measure_processes_that_are_not_killed(booted: list[lab.Trial]) -> None:
    for name in CONTROLS:
        (trial,) = (trial for trial in booted if trial.workload == name)
        assert trial.status == "ok", trial.detail
        assert set(trial.samples) == set(load_workload(name).metrics)


@pytest.mark.full
@pytest.mark.parametrize("cpus", [1, 2])
def test_the_instruction_clock_gives_the_same_figures_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpus: int
) -> None:
    """One boot runs as it is; ``late_halt.c`` delays QEMU's threads in the other, as a busy host
    does.

    Without ``plugins/main_loop.c`` the figures differ, with one CPU and with two.
    """
    late = tmp_path / "late_halt.so"
    source = Path(__file__).with_name("late_halt.c")
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", late, source], check=True
    )
    workloads = chains(("shared", "fork"), ("kill",), REAPS)
    one = run(tmp_path / "one", workloads, cpus=cpus)
    monkeypatch.setenv("LD_PRELOAD", str(late))
    two = run(tmp_path / "two", workloads, cpus=cpus)
    assert [trial.samples for trial in one] == [trial.samples for trial in two]
