"""Differences between environments become sentences, except those that cannot change a figure."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kteardown.model.record import (
    BootEnd,
    BootStart,
    Hello,
    Outcome,
    Record,
    Sample,
    Settled,
    TrialEnd,
    TrialStart,
)
from kteardown.rundir.directory import RunDir
from kteardown.rundir.environment import differences, environment_notes, guest_differences
from kteardown.rundir.writer import open_writer

HOST: dict[str, Any] = {
    "cpu": {"model": "A", "online": 8, "governor": "performance", "topology": {"cores": 4}},
    "hypervisor": None,
    "mitigations": {"meltdown": "Mitigation: PTI"},
    "memory_kb": 1_000_000,
    "kernel": "6.1",
    "os": "Debian 12",
    "qemu": {"x86_64": "7.2.22", "arm64": None},
}
HELLO = Hello(
    protocol=1,
    release="6.12",
    version="#1",
    machine="x86_64",
    cpus_online=1,
    cpus_possible=1,
    memory_kb=500_000,
    cmdline="console=ttyS0 kteardown.seed=5",
    banner="Linux version 6.12",
    cpu_model="QEMU",
    mitigations={"meltdown": "Mitigation: PTI"},
)


def changed(**facts: Any) -> dict[str, Any]:
    host = copy.deepcopy(HOST)
    for name, value in facts.items():
        if isinstance(value, dict):
            host[name] |= value
        else:
            host[name] = value
    return host


def notes(run: RunDir) -> list[str]:
    return environment_notes(run, run.records())


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"cpu": {"model": "B"}}, "CPU model: A / B"),
        ({"cpu": {"governor": None}}, "frequency governor: performance / not recorded"),
        ({"cpu": {"topology": {"cores": 2}}}, "CPU cores: 4 / 2"),
        ({"hypervisor": "KVM"}, "hypervisor under the host: not recorded / KVM"),
        ({"mitigations": {"mds": "Vulnerable"}}, "mitigation mds: not recorded / Vulnerable"),
        ({"memory_kb": 900_000}, "memory in kB: 1000000 / 900000"),
        ({"kernel": "6.2"}, "host kernel: 6.1 / 6.2"),
        ({"qemu": {"x86_64": "9.0"}}, "QEMU x86_64: 7.2.22 / 9.0"),
    ],
)
def test_a_difference_that_can_change_a_figure_is_a_sentence(
    facts: dict[str, Any], sentence: str
) -> None:
    assert differences(HOST, changed(**facts), arch="x86_64") == [sentence]


@pytest.mark.parametrize(
    "facts",
    [{}, {"os": "Debian 13"}, {"memory_kb": 999_000}, {"qemu": {"arm64": "9.0"}}, {"new_fact": 1}],
)
def test_a_difference_that_cannot_change_a_figure_is_left_out(facts: dict[str, Any]) -> None:
    assert differences(HOST, changed(**facts), arch="x86_64") == []


def test_without_an_architecture_every_qemu_is_compared() -> None:
    assert differences(HOST, changed(qemu={"arm64": "9.0"})) == ["QEMU arm64: not recorded / 9.0"]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return make(tmp_path)


def make(root: Path) -> RunDir:
    run = RunDir.create(root, "freezer")
    run.save(run.environment_file, json.dumps({"command": "", "machine": HOST}))
    return run


def boot(
    run: RunDir,
    number: int,
    *records: Record,
    kernel: str = "base",
    acceleration: str = "icount",
    host: dict[str, Any] = HOST,
    load: float = 0.5,
    attempt: int = 0,
    ended: bool = True,
    outcome: Outcome = "ok",
    possible_cpus: int | None = None,
    agent: str = "a" * 64,
) -> None:
    first = BootStart(
        kernel=kernel,
        block=0,
        seed=7,
        acceleration=acceleration,
        host_load=load,
        started_at="2026-03-01",
        machine={} if possible_cpus is None else {"possible_cpus": possible_cpus},
    )
    last = BootEnd(
        outcome=outcome, duration_s=2.5, first_record_s=1.0, command=[], host_load=load + 1
    )
    with open_writer(run, host) as log:
        log.agent_hash = agent
        for record in (first, *(records or (HELLO,)), *([last] if ended else [])):
            log.append(record, boot=number, attempt=attempt)


def hello(**fields: Any) -> Hello:
    return HELLO.model_copy(update=fields)


def test_every_session_is_kept_and_the_machine_is_that_of_the_first(run: RunDir) -> None:
    boot(run, 0)
    boot(run, 1, host=changed(kernel="6.2"))
    with open_writer(run, HOST):
        pass
    environment = run.environment()
    assert environment["machine"] == HOST
    assert [session["machine"]["kernel"] for session in environment["sessions"]] == ["6.1", "6.2"]
    assert [b.start.session for b in run.boots()] == [0, 1]


def test_equal_sessions_and_guests_have_no_notes(run: RunDir) -> None:
    boot(run, 0)
    boot(run, 1, hello(cmdline="console=ttyS0 kteardown.seed=9", memory_kb=500_004))
    boot(run, 2, hello(release="7.2", banner="Linux version 7.2"), kernel="debian:7.2")
    assert notes(run) == []


def test_a_run_resumed_with_another_qemu_has_a_note(run: RunDir) -> None:
    boot(run, 0)
    boot(run, 1, host=changed(qemu={"x86_64": "9.0"}, kernel="6.2"))
    assert notes(run) == [
        "measured on different machines from boot 1 on: QEMU x86_64: 7.2.22 / 9.0"
    ]


def test_on_the_instruction_clock_another_host_has_no_note(run: RunDir) -> None:
    boot(run, 0)
    boot(run, 1, host=changed(cpu={"model": "B"}), load=9)
    assert notes(run) == []


def test_on_the_wall_clock_another_host_is_a_note(run: RunDir) -> None:
    boot(run, 0, acceleration="kvm")
    boot(run, 1, acceleration="kvm", host=changed(cpu={"model": "B"}), load=4)
    assert notes(run) == ["measured on different machines from boot 1 on: CPU model: A / B"]


@pytest.mark.parametrize("cut", [False, True])
def test_an_attempt_of_which_nothing_counts_has_no_note(run: RunDir, cut: bool) -> None:
    first = hello(cpu_model="other")
    boot(run, 0, first, acceleration="kvm", ended=not cut, outcome="infrastructure-error")
    boot(run, 0, acceleration="kvm", attempt=1, host=changed(cpu={"model": "B"}), agent="b" * 64)
    assert notes(run) == []
    assert guest_differences(run, run) == []


def test_a_cut_attempt_of_which_a_trial_counts_has_a_note(run: RunDir) -> None:
    whole = TrialStart(trial=0, workload="zombies", params={}), TrialEnd(trial=0, status="ok")
    boot(run, 0, HELLO, *whole, acceleration="kvm", ended=False)
    boot(run, 0, acceleration="kvm", attempt=1, host=changed(cpu={"model": "B"}))
    assert notes(run) == ["measured on different machines from boot 0 on: CPU model: A / B"]


def test_guests_on_the_machines_of_a_sweep_have_no_note(run: RunDir) -> None:
    boot(run, 0, hello(cpus_possible=2), possible_cpus=2)
    boot(run, 1, hello(cpus_possible=32), possible_cpus=32)
    assert notes(run) == []
    boot(run, 2, hello(cpus_possible=16), possible_cpus=32)
    (note,) = notes(run)
    assert note.endswith("32 / 16")


def test_boots_with_different_guests_are_noted(run: RunDir) -> None:
    boot(run, 0, HELLO, Settled(clocksource="tsc-early", resolution_ns=1))
    boot(run, 1, HELLO, Settled(clocksource="tsc", resolution_ns=1))
    assert notes(run) == []
    boot(run, 2, HELLO, Settled(clocksource="hpet", resolution_ns=1))
    assert notes(run) == ["boots of base were not the same guest: clock source: tsc / hpet"]


def test_kernels_with_different_mitigations_are_noted(run: RunDir) -> None:
    boot(run, 0)
    boot(run, 1, hello(mitigations={}, release="7.2"), kernel="debian:7.2")
    assert notes(run) == [
        "the guests of base and debian:7.2 differ in: mitigation meltdown: Mitigation: PTI / not "
        "recorded"
    ]


def test_debugging_is_noted_also_if_all_kernels_have_it(run: RunDir) -> None:
    boot(run, 0, hello(debug=("lockdep",)))
    boot(run, 1, hello(debug=("lockdep",)), kernel="mine")
    assert notes(run) == ["lockdep, which costs time everywhere, is on in base, mine"]


def test_records_of_an_older_agent_have_no_notes(run: RunDir) -> None:
    boot(run, 0, hello(banner="", cpu_model=""))
    boot(run, 1)
    assert notes(run) == []


def test_a_repeated_boot_that_differs_is_noted(run: RunDir) -> None:
    def records(value: int) -> list[Record]:
        begun = TrialStart(trial=3, workload="zombies", params={})
        return [HELLO, begun, Sample(trial=3, repetition=0, metric="freeze_user_ns", value=value)]

    boot(run, 0, *records(1), ended=False)
    boot(run, 0, *records(1), attempt=1)
    assert notes(run) == []
    boot(run, 1, *records(1), ended=False)
    boot(run, 1, *records(2), attempt=1)
    assert notes(run) == [
        "boot 1 of base was run again after an interruption and differed in trial 3: "
        "this guest is not deterministic"
    ]


def test_guests_of_two_runs_are_compared(tmp_path: Path) -> None:
    ours, theirs = make(tmp_path / "ours"), make(tmp_path / "theirs")
    boot(ours, 0)
    boot(theirs, 0, hello(cpu_model="other"))
    boot(theirs, 1, kernel="mine")
    assert guest_differences(ours, theirs) == ["guest of base: CPU model: QEMU / other"]
    assert guest_differences(ours, ours) == []


def test_a_boot_that_another_agent_repeated_differently_says_so(run: RunDir) -> None:
    def records(value: int) -> list[Record]:
        trial = TrialStart(trial=0, workload="zombies", params={})
        sample = Sample(trial=0, repetition=0, metric="freeze_user_ns", value=value)
        return [HELLO, trial, sample, TrialEnd(trial=0, status="ok")]

    boot(run, 0, *records(5), ended=False)
    boot(run, 0, *records(6), attempt=1, agent="b" * 64)
    boot(run, 1, *records(6), agent="c" * 64)
    different, repeated = notes(run)
    assert different == (
        "measured with different agents: bbbbbbbbbb from boot 0 on, cccccccccc from boot 1 on"
    )
    assert repeated.endswith("differed in trial 0: the agent changed")


def test_the_files_of_the_guests_of_two_runs_are_compared(tmp_path: Path) -> None:
    ours, theirs = make(tmp_path / "ours"), make(tmp_path / "theirs")

    def write(run: RunDir, files: object) -> None:
        run.guest_file.path.write_text(json.dumps({"archive": "a", "files": files, "notes": []}))

    write(ours, {"/files/x.sh": "1", "/bin/sh": "2"})
    assert guest_differences(ours, theirs) == []
    write(theirs, {"/files/x.sh": "1", "/bin/sh": "3", "/bin/bash": "4"})
    assert guest_differences(ours, theirs) == ["files of the guests differ: /bin/bash, /bin/sh"]
    write(theirs, {f"/{name}": "" for name in "abcdefg"})
    assert guest_differences(ours, theirs)[0].endswith("/a, /b, /bin/sh, /c, /d and 4 more")


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"files": [["a", 1], [2, 3]]}', "[" * 100_000, "\x80"]
)
def test_damaged_hashes_of_files_are_not_compared(tmp_path: Path, text: str) -> None:
    ours, theirs = make(tmp_path / "ours"), make(tmp_path / "theirs")
    ours.guest_file.path.write_text('{"files": {"/a": "1"}}')
    theirs.guest_file.path.write_bytes(text.encode("latin-1"))
    assert guest_differences(ours, theirs) == []
