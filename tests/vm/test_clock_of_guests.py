"""What the command line of a guest on the instruction clock leaves out, and what it leaves as it
is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine

pytestmark = pytest.mark.vm

MakeJob = Callable[..., BootJob]


def details(job: BootJob) -> list[str]:
    lines: list[bytes] = []
    end = QemuMachine().boot(job, lines.append)
    assert end.outcome == "ok", end
    return [json.loads(line).get("detail", "").strip() for line in lines]


@pytest.mark.parametrize(("cpus", "device"), [(1, "hpet"), (2, "lapic")])
def test_timers_have_high_resolution(make_job: MakeJob, cpus: int, device: str) -> None:
    said = details(make_job("timers", acceleration="icount", cpus=cpus))
    devices = [line.split(":")[1].strip() for line in said if line.startswith("Clock Event Device")]
    assert devices.count(device) == cpus
    resolutions = [line.split(":")[1].strip() for line in said if ".hres_active" in line]
    assert resolutions == ["1"] * cpus
    assert "tsc" in said


@pytest.mark.parametrize("has_own_programs", [False, True])
def test_only_a_script_sees_values_in_the_formats_of_tracepoints(
    make_job: MakeJob, has_own_programs: bool
) -> None:
    job = make_job("timers", acceleration="icount")
    said = details(replace(job, has_own_programs=has_own_programs))
    (text,) = [line for line in said if line.startswith("print fmt")]
    assert ("{ TLB_FLUSH_ON_TASK_SWITCH," in text) is not has_own_programs
    assert ("{ 0," in text) is has_own_programs
