"""A machine without a serial line: its memory has the records and the log of a kernel, over the
reset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kteardown.model.record import BootEnd, TrialEnd
from kteardown.paths import cache_dir
from metal.machine import Machine
from metal.test_machine import Lab, outcomes
from vm.lab import TWO_BOOTS

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

MEMORY = ("memmap=4M$0x18000000", "ramoops.mem_address=0x18000000", "ramoops.mem_size=0x400000")
ZONES = ("ramoops.record_size=0x10000", "ramoops.console_size=0x100000", "ramoops.ftrace_size=0")
WITHOUT_A_LINE = {"serial": "", "boot_s": 150}


def test_success_a_panic_a_hang_and_a_run_without_a_serial_line(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    words = [*MEMORY, *ZONES, "ramoops.pmsg_size=0x200000"]
    machine = Machine(tmp_path_factory.mktemp("machine"), "kteardown-test-pstore", arguments=words)
    try:
        machine.wait()
        place = tmp_path_factory.mktemp("lab")
        lab = Lab(machine, place, **WITHOUT_A_LINE)
        (place / "hang.toml").write_text(
            TWO_BOOTS + '[machine]\nkernel_args = ["kteardown.fault=hang"]\n'
        )
        doctor_proves(lab)
        said = lab.call("run", "./metal.toml", "--machine", lab.place, status=2)
        assert "add --config pstore" in said
        run_on = ("--machine", lab.place, "--config", "pstore")
        lab.call("run", "./metal.toml", *run_on)
        assert outcomes(lab.run) == ["ok", "ok"]
        assert [r.status for r in lab.run.records() if isinstance(r, TrialEnd)] == ["ok"] * 4
        assert json.loads(lab.run.result_file.path.read_text())["timing"]["made"] == ["metal guest"]
        said = lab.call("run", "./panic.toml", *run_on, status=4)
        assert "Kernel panic" in said
        assert set(outcomes(lab.run)) == {"agent-error"}
        lab.call("run", "./hang.toml", *run_on, status=4)
        ends = [record for record in lab.run.records() if isinstance(record, BootEnd)]
        assert {end.outcome for end in ends} == {"hang"}
        assert "the watchdog reset the machine after 150 s" in ends[0].detail
    finally:
        machine.stop()


def doctor_proves(lab: Lab) -> None:
    lab.call("doctor", "--machine", lab.place)
    folder = cache_dir() / "machines" / lab.machine.host
    proof = json.loads((folder / "proof.json").read_text())
    print(proof)
    assert proof["by"] == "watchdog"
    assert proof["facts"]["hypervisor"] == "TCGTCGTCGTCG"
    assert (
        "Kernel panic - not syncing: Attempted to kill init"
        in (folder / "panic.console").read_text()
    )
    hang = (folder / "hang.console").read_bytes()
    assert b'{"type":"machine"' in hang
    assert b'{"type":"sent"' not in hang


def test_a_zone_that_is_too_small_is_named_with_its_size(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    words = [*MEMORY, *ZONES, "ramoops.pmsg_size=0x800"]
    machine = Machine(
        tmp_path_factory.mktemp("machine"), "kteardown-test-pstore-small", arguments=words
    )
    try:
        machine.wait()
        lab = Lab(machine, tmp_path, **WITHOUT_A_LINE)
        said = " ".join(lab.call("doctor", "--machine", lab.place, status=5).split())
        assert "space for records: they take" in said
        assert "pmsg zone of ramoops has 2 kB" in said
        assert "ramoops.pmsg_size" in said
    finally:
        machine.stop()
