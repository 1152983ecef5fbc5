"""The lab under KVM: the probe says that it can be used, and each end of a guest has its outcome."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvm.conftest import Boot
from kvm.l1 import L1
from vm.ends import ENDS

pytestmark = pytest.mark.vm

MACHINES: tuple[dict[str, object], ...] = (
    {},
    {"cpus": 2},
    {"cpus": 2, "possible_cpus": 32, "memory_mb": 256},
    {"cpus": 2, "numa_nodes": 2, "memory_mb": 256},
)

PROBE = """
import json, pathlib
from kteardown.vm import acceleration
found = acceleration.best_wall_acceleration("x86_64", cache=pathlib.Path("/tmp/probe"))
print(json.dumps([found.acceleration, found.reason]))
"""


def test_the_probe_finds_kvm(l1: L1) -> None:
    done = l1.python("-c", PROBE)
    assert json.loads(done.output.splitlines()[-1]) == ["kvm", ""], done.output


@pytest.fixture(scope="module")
def ended(boot: Boot) -> list[dict[str, Any]]:
    """The results of all guests, which one process boots: its imports take as long as a boot."""
    return boot(
        [*(("bye", machine) for machine in MACHINES), *((how, changes) for how, changes, _, _ in ENDS)]
    )


@pytest.mark.parametrize("number", range(len(MACHINES)), ids=["one", "two", "possible", "numa"])
def test_a_guest_that_says_bye_and_powers_off_is_ok(ended: list[dict[str, Any]], number: int) -> None:
    result = ended[number]
    assert (result["outcome"], result["detail"]) == ("ok", "")
    assert (len(result["lines"]), result["lines"][-1]) == (102, '{"type":"bye","trials":0}')
    assert result["problems"] == []
    assert result["command"][result["command"].index("-accel") + 1] == "kvm"


@pytest.mark.parametrize("number", range(len(ENDS)), ids=[how for how, *_ in ENDS])
def test_every_other_end_has_its_outcome(ended: list[dict[str, Any]], number: int) -> None:
    result, (_, _, outcome, detail) = ended[len(MACHINES) + number], ENDS[number]
    assert result["outcome"] == outcome, result
    assert detail in result["detail"]
    assert all(line.endswith("}") for line in result["lines"])
