"""The counters of a real guest's processor: those that QEMU emulates for arm64, and a processor
without any.

On the instruction clock an emulated counter of cycles advances as the clock does, and one of
instructions does not while the CPU is idle. So both are known to the instruction.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import build_agent
from kteardown.vm.initramfs import pack
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine
from vm import lab
from vm.test_run import kteardown

pytestmark = [pytest.mark.vm, pytest.mark.build]

TICK = 4000
"""Instructions of a timer tick, which may be within the counted stretch and outside of the measured
time."""
SLEEP_MS = 5
TURNS = 100_000
WORKLOAD = """
name = "counted"
summary = "a loop and a sleep of known length"
silence_s = 120
[parameters.turns]
help = "turns of a loop"
default = 0
[parameters.sleep_ms]
help = "milliseconds of sleep"
default = 0
[metrics.work_ns]
help = "the loop and the sleep"
headline = true
"""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[object, ...], lab.Trial]:
    """The trials of one boot of the distribution's kernel for arm64, by workload and size."""
    folder = tmp_path_factory.mktemp("counts")
    (folder / "workloads").mkdir()
    (folder / "workloads" / "counted.toml").write_text(WORKLOAD)
    (folder / "agent" / "workloads").mkdir(parents=True)
    shutil.copy(Path(__file__).parents[1] / "data" / "counted.c", folder / "agent" / "workloads")
    (boot,) = lab.run(
        folder / "experiments",
        'name = "counts"\nquestion = "Are the counts right?"\nsource = "debian-image:6.12"\n'
        f'[[workloads]]\nworkload = "counted"\nparams.turns = [0, {TURNS}]\n'
        f"params.sleep_ms = [0, {SLEEP_MS}]\n"
        '[[workloads]]\nworkload = "zombies"\nparams.zombies = [1000, 4000]\n'
        '[machine]\narch = "arm64"\ncpus = 1\n'
        f"[design]\n{lab.INSTRUCTIONS}\ncounts = true\nwarmup = 0\nrepetitions = 3\n",
    )
    assert [(trial.status, trial.wrong) for trial in boot.trials] == [("ok", [])] * 6
    return {(trial.workload, *trial.params.values()): trial for trial in boot.trials}


Trials = dict[tuple[object, ...], lab.Trial]


def least(trials: Trials, key: tuple[object, ...], metric: str) -> float:
    """The least of the samples, which has no timer tick."""
    return min(trials[key].samples[metric])


def test_cycles_are_counted_as_the_clock_counts_instructions(trials: Trials) -> None:
    for turns, sleep_ms in ((0, 0), (TURNS, 0), (0, SLEEP_MS), (TURNS, SLEEP_MS)):
        samples = trials["counted", turns, sleep_ms].samples
        added = [c - ns for c, ns in zip(samples["cycles_count"], samples["work_ns"], strict=True)]
        # What switching the counters and reading the clock adds.
        assert all(0 < one < 3 * TICK for one in added)
    grown = [
        least(trials, ("counted", TURNS, 0), metric) - least(trials, ("counted", 0, 0), metric)
        for metric in ("instructions_count", "cycles_count", "work_ns")
    ]
    assert all(one == pytest.approx(grown[2], abs=100) and one > 3 * TURNS for one in grown)


def test_instructions_are_not_counted_while_the_cpu_is_idle(trials: Trials) -> None:
    busy, asleep = ("counted", TURNS, 0), ("counted", TURNS, SLEEP_MS)
    more = [
        least(trials, asleep, m) - least(trials, busy, m)
        for m in ("instructions_count", "cycles_count")
    ]
    assert more[0] < 10 * TICK
    assert more[1] >= SLEEP_MS * 1_000_000
    assert trials[busy].samples["instructions_per_cycle"] == [1.0] * 3
    assert max(trials[asleep].samples["instructions_per_cycle"]) < 0.2


def test_a_zombie_costs_the_same_by_the_counter_and_by_the_clock(trials: Trials) -> None:
    few, many = ("zombies", 1000, "shared", "freezer"), ("zombies", 4000, "shared", "freezer")
    for one in (few, many):
        samples = trials[one].samples
        added = [
            c - ns
            for c, ns in zip(samples["cycles_count"], samples["suspend_call_ns"], strict=True)
        ]
        # The stretch also has the start of the tracepoints.
        assert max(added) - min(added) < 2 * TICK
    grown = least(trials, many, "instructions_count") - least(trials, few, "instructions_count")
    # A pass over all tasks for user space, two for kernel threads, and one to thaw.
    user = least(trials, many, "freeze_user_ns") - least(trials, few, "freeze_user_ns")
    assert 3 * user < grown < 5 * user


def test_what_this_processor_does_not_count_is_left_out(trials: Trials) -> None:
    for trial in trials.values():
        assert {"instructions_count", "cycles_count"} <= trial.samples.keys()
        assert not {"cache_misses_count", "dtlb_misses_count"} & trial.samples.keys()
        assert trial.checks["counted"] == [True] * 3


def test_a_profile_of_the_same_run_counts_nothing_and_a_resumed_run_counts_on(
    tmp_path: Path,
) -> None:
    file = tmp_path / "both.toml"
    file.write_text(
        'name = "both"\nquestion = "Does it count?"\nsource = "debian-image:6.12"\n'
        '[[workloads]]\nworkload = "zombies_cgroup"\nparams.zombies = [300]\n'
        '[machine]\narch = "arm64"\ncpus = 1\n'
        f"[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n"
    )
    kteardown("run", str(file), "--counts", "--profile", runs=tmp_path / "runs")
    (run,) = (tmp_path / "runs").iterdir()
    records = run / "records.ndjson"
    (first,) = lab.read(records)
    assert "cycles_count" in first.trials[0].samples
    sampled = (run / "profile" / "records.ndjson").read_text()
    assert '"type":"stack"' in sampled and "cycles_count" not in sampled
    records.unlink()
    kteardown("run", "--resume", str(run), runs=tmp_path / "runs")
    (again,) = lab.read(records)
    assert again == first


def test_a_guest_without_counters_says_so(make_job: Callable[..., BootJob], tmp_path: Path) -> None:
    """What no host that ``--counts`` accepts should show, but the nodes of a cluster may."""
    agent = build_agent("x86_64", also="counts", cache=cache_dir(), reporter=SilentReporter())
    plan = "kteardown-plan 1\nseed 1\ntrial 0 zombies 0 1 zombies=0 make=shared until=freezer\n"
    initramfs = pack(Entry(tmp_path) / "initramfs", agent=agent, plan=plan)
    lines: list[bytes] = []
    result = QemuMachine().boot(make_job("bye", initramfs=initramfs, memory_mb=256), lines.append)
    assert result.outcome == "ok"
    (end,) = (record for record in map(json.loads, lines) if record["type"] == "trial_end")
    assert end["status"] == "failed"
    assert end["detail"].startswith(
        "hardware counts: this guest has a counter neither of instructions nor"
    )
