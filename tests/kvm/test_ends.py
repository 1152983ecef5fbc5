"""The lab under KVM: the probe says that it can be used, and each end of a guest has its
outcome."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kvm.conftest import Boot, Guest
from kvm.l1 import L1
from vm.ends import ENDS

pytestmark = pytest.mark.vm

MACHINES: dict[str, dict[str, object]] = {
    "one": {},
    "two": {"cpus": 2},
    "possible": {"cpus": 2, "possible_cpus": 32, "memory_mb": 256},
    "numa": {"cpus": 2, "numa_nodes": 2, "memory_mb": 256},
}
GUESTS: dict[str, Guest] = {
    **{name: ("bye", machine) for name, machine in MACHINES.items()},
    **{how: (how, changes) for how, changes, _, _ in ENDS},
}

PROBE = """
import json, pathlib, tempfile
from kteardown.vm import acceleration
found = acceleration.best_wall_acceleration("x86_64", cache=pathlib.Path(tempfile.mkdtemp()))
print(json.dumps([found.acceleration, found.reason]))
"""


def test_the_probe_finds_kvm(l1: L1) -> None:
    done = l1.python("-c", PROBE)
    assert json.loads(done.output.splitlines()[-1]) == ["kvm", ""], done.output


def test_the_files_of_the_host_are_there_wherever_a_checkout_is(l1: L1) -> None:
    for parent in ("/tmp", "/var/tmp", "/dev/shm", Path.home()):
        with TemporaryDirectory(dir=parent, prefix="a blank ") as folder:
            (Path(folder) / "file").write_text("of the host\n")
            done = l1.run(
                f"cd {shlex.quote(folder)} && cat file && echo changed > file && cat file"
            )
            assert (done.status, done.output) == (0, "of the host\nchanged\n")
            assert (Path(folder) / "file").read_text() == "of the host\n"


@pytest.fixture(scope="module")
def ended(boot: Boot, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """The results of the guests of the tests that run.

    One process boots them: its imports take as long as a boot.
    """
    asked = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == request.path
        and hasattr(item, "callspec")
    ]
    return dict(zip(asked, boot([GUESTS[name] for name in asked]), strict=True))


@pytest.mark.parametrize("name", MACHINES)
def test_a_guest_that_says_bye_and_powers_off_is_ok(
    ended: dict[str, dict[str, Any]], name: str
) -> None:
    result = ended[name]
    assert (result["outcome"], result["detail"]) == ("ok", "")
    assert (len(result["lines"]), result["lines"][-1]) == (102, '{"type":"bye","trials":0}')
    assert result["problems"] == []
    assert result["command"][result["command"].index("-accel") + 1] == "kvm"


@pytest.mark.parametrize("name", [how for how, *_ in ENDS])
def test_every_other_end_has_its_outcome(ended: dict[str, dict[str, Any]], name: str) -> None:
    result = ended[name]
    ((outcome, detail),) = [(outcome, detail) for how, _, outcome, detail in ENDS if how == name]
    assert result["outcome"] == outcome, result
    assert detail in result["detail"]
    assert all(line.endswith("}") for line in result["lines"])
