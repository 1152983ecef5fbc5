"""Boots of a machine by ssh: QEMU as the machine, everything else as on hardware. Its ends, and locks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kteardown.model.record import BootEnd, BootStart, TrialEnd
from kteardown.paths import cache_dir
from kteardown.rundir.directory import RunDir
from metal.machine import Machine
from metal.power import execute

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]
EXPERIMENT = """
name = "metal"
question = "Does a machine answer?"
source = "debian:6.12"
[[workloads]]
workload = "zombies"
params.zombies = [0, 300]
[design]
clock = "wall"
boots = 1
warmup = 0
repetitions = 1
"""


class Lab:
    """A lab with one machine in its configuration."""

    def __init__(self, machine: Machine, place: Path) -> None:
        self.machine, self._place, self.runs = machine, place, place / "runs"
        config = machine.config(power_command=machine.power_command, boot_s=300, back_s=600.0)
        self.runs.mkdir()
        (place / "kteardown").mkdir()
        (place / "kteardown" / "config.toml").write_text(config)
        (place / "metal.toml").write_text(EXPERIMENT)
        (place / "panic.toml").write_text(EXPERIMENT + '[machine]\nkernel_args = ["kteardown.fault=panic"]\n')

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "XDG_CONFIG_HOME": str(self._place), "KTEARDOWN_RUNS": str(self.runs)}
        argv = [sys.executable, "-m", "kteardown", *words]
        out, err = subprocess.PIPE, subprocess.STDOUT
        return subprocess.Popen(argv, cwd=self._place, env=environment, text=True, stdout=out, stderr=err)

    def call(self, *words: str, status: int = 0) -> str:
        process = self.start(*words)
        said, _ = process.communicate(timeout=3000)
        assert process.returncode == status, said
        return said

    @property
    def run(self) -> RunDir:
        return RunDir(max(self.runs.iterdir()))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    try:
        machine.wait()
        lab = Lab(machine, tmp_path_factory.mktemp("lab"))
        lab.call("doctor", "--machine", "ssh:kteardown-test-machine")
        yield lab
    finally:
        machine.stop()


def outcomes(run: RunDir) -> list[str]:
    return [record.outcome for record in run.records() if isinstance(record, BootEnd)]


def test_doctor_saw_the_watchdog_fire(lab: Lab) -> None:
    proof = json.loads((cache_dir() / "machines" / lab.machine.host / "proof.json").read_text())
    print(proof)
    assert proof["by"] == "watchdog"
    assert proof["hang_s"] > 30
    assert proof["facts"]["hypervisor"] == "TCGTCGTCGTCG"
    assert "lock" not in lab.machine.ssh("ls /var/lib/kteardown").split()


def test_a_run_on_the_machine_is_a_run_like_any_other(lab: Lab) -> None:
    lab.call("run", "./metal.toml", "--machine", "ssh:kteardown-test-machine")
    assert outcomes(lab.run) == ["ok", "ok"]
    starts = [record for record in lab.run.records() if isinstance(record, BootStart)]
    assert {start.acceleration for start in starts} == {"metal"}
    assert [r.status for r in lab.run.records() if isinstance(r, TrialEnd)] == ["ok"] * 4
    timing = json.loads(lab.run.result_file.read_text())["timing"]
    assert timing["made"] == ["metal guest"]


def test_a_panic_is_the_outcome_of_its_boot(lab: Lab) -> None:
    said = lab.call("run", "./panic.toml", "--machine", "ssh:kteardown-test-machine", status=4)
    assert "Kernel panic" in said
    assert "ok" not in outcomes(lab.run)


def test_a_driver_that_is_killed_leaves_a_machine_that_comes_back_and_a_run_to_resume(lab: Lab) -> None:
    before = set(lab.runs.iterdir())
    process = lab.start("run", "./metal.toml", "--machine", "ssh:kteardown-test-machine")
    while not any(log.stat().st_size for log in consoles(lab, before)):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert outcomes(lab.run) == []
    lab.call("run", "--resume", "last")
    assert outcomes(lab.run) == ["ok", "ok"]
    assert len([r for r in lab.run.records() if isinstance(r, TrialEnd)]) == 4


def consoles(lab: Lab, before: set[Path]) -> list[Path]:
    return [log for run in set(lab.runs.iterdir()) - before for log in run.glob("console/*.log")]


def test_a_machine_that_another_lab_has_locked_is_refused(lab: Lab) -> None:
    lab.machine.ssh("echo $(($(date +%s) + 1000)) another-lab:/run >/var/lib/kteardown/lock")
    said = lab.call("run", "./metal.toml", "--machine", "ssh:kteardown-test-machine", status=5)
    assert "it is locked by another-lab:/run for another" in said
    lab.machine.ssh("echo 1 another-lab:/run >/var/lib/kteardown/lock; echo >/etc/kteardown-test-machine")
    said = lab.call("run", "--resume", "last", status=5)
    assert "does not hold this machine's /etc/machine-id" in said
    lab.machine.ssh("cp /etc/machine-id /etc/kteardown-test-machine")


def test_a_machine_that_does_not_come_back_stops_the_run(lab: Lab) -> None:
    before = set(lab.runs.iterdir())
    process = lab.start("run", "./metal.toml", "--machine", "ssh:kteardown-test-machine")
    while not any(log.stat().st_size for log in consoles(lab, before)):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.2)
    execute(f"{lab.machine.place}/qmp", "set_link", name="n", up=False)
    said, _ = process.communicate(timeout=3000)
    assert process.returncode == 5
    assert "trying the power command once" in said
    assert "nothing is booted on it any more" in said
    assert outcomes(lab.run) == []
    execute(f"{lab.machine.place}/qmp", "set_link", name="n", up=True)
    lab.call("run", "--resume", "last")
    assert outcomes(lab.run) == ["ok", "ok"]
