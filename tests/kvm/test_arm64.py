"""The lab's command line for arm64 under KVM: the GIC that QEMU chooses, ``-cpu host``, the ends by
PSCI.

L1 has no Python: it runs the command itself, and the records and the console are read here.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.model.arch import ARCHITECTURES
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import build_agent
from kteardown.vm.initramfs import pack
from kteardown.vm.job import BootJob
from kteardown.vm.qemu_command import qemu_command
from kvm import arm64_programs
from kvm.conftest import listed
from kvm.l1 import L1, Setting, kernel

TURNS = 100_000

pytestmark = [pytest.mark.vm, pytest.mark.full]


@dataclass(frozen=True)
class Ended:
    """A guest that ended: QEMU's exit status, what it wrote to its records port, its console."""

    status: int
    records: str
    console: str


Boot = Callable[..., Ended]


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[L1]:
    """A host with KVM for arm64."""
    setting = Setting(
        arch="arm64",
        board="virt,virtualization=on,gic-version=3",
        # Authenticating pointers takes most of the time of an emulated processor.
        cpu="max,pauth=off,sve=off",
        modules=("overlay",),
        arguments="console=ttyAMA0",
        tree=arm64_programs.tree(),
    )
    host = listed(L1(tmp_path_factory.mktemp("arm64"), setting))
    yield host
    host.stop()


@pytest.fixture(scope="module")
def boot(arm: L1) -> Boot:
    """Boot L1's own kernel with ``guest_init.c`` in it; the arguments are how it ends, and the
    kernel's."""
    image, init = arm.jobs / "Image", arm.jobs / "init"
    shutil.copy(kernel(arm.setting)[0], image)
    source = Path(__file__).parents[1] / "vm" / "guest_init.c"
    compiler = ARCHITECTURES["arm64"].compiler
    subprocess.run([compiler, "-O2", "-static", "-o", init, source], check=True)

    def run(how: str, *arguments: str, cpus: int = 1, agent: Path = init, plan: str = "") -> Ended:
        records, console = arm.jobs / "records", arm.jobs / "console"
        job = BootJob(
            image=image,
            initramfs=pack(Entry(arm.jobs) / "initramfs", agent=agent, plan=plan),
            arch="arm64",
            acceleration="kvm",
            cpus=cpus,
            memory_mb=256,
            seed=1,
            console=Entry.of(console),
            silence_s=60.0,
            kernel_args=(f"guest={how}", *arguments),
        )
        # The lab's command without its monitor, which is a socket of the lab.
        command = shlex.join(qemu_command(job, records=3, monitor=4))
        command, count = re.subn(r"-chardev socket,id=monitor,fd=4 -mon \S+", "", command)
        assert count == 1
        done = arm.run(f"{command} 3>{shlex.quote(str(records))}")
        return Ended(done.status, records.read_text(), console.read_text(errors="replace"))

    return run


def test_the_probe_guest_runs(arm: L1) -> None:
    known = ARCHITECTURES["arm64"]
    code = arm.jobs / "probe"
    code.write_bytes(known.probe.code)
    options = [option.format(file=code) for option in known.probe.options]
    options[options.index("-cpu") + 1] = "host"
    done = arm.run(
        shlex.join([known.qemu, "-nodefaults", "-display", "none", "-accel", "kvm", *options])
    )
    assert done.status == known.probe.status, done.output


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_guest_powers_off(boot: Boot, cpus: int) -> None:
    ended = boot("bye", "loglevel=7", cpus=cpus)
    assert ended.status == 0
    assert ended.records.endswith('{"type":"bye","trials":0}\n')
    assert "GICv3: " in ended.console
    assert f"Brought up 1 node, {cpus} CPU" in ended.console
    assert "reboot: Power down" in ended.console


def test_a_guest_resets(boot: Boot) -> None:
    ended = boot("reset")
    assert ended.status == 0
    assert ended.records.endswith('{"type":"ali')
    assert "reboot: Restarting system" in ended.console


def test_a_guest_panics(boot: Boot) -> None:
    ended = boot("bye", "rdinit=/missing")
    assert (ended.status, ended.records) == (0, "")
    assert "Kernel panic - not syncing" in ended.console


def test_a_guest_counts_its_own_instructions(boot: Boot) -> None:
    """KVM passes the counters of L1's processor, which QEMU emulates, through to the guest."""
    own = [Path(__file__).parents[1] / "data" / "counted.c"]
    agent = build_agent(
        "arm64", also="counts", cache=cache_dir(), reporter=SilentReporter(), own=own
    )
    trials = [
        f"trial {n} counted 0 5 turns={turns} sleep_ms=0\n" for n, turns in enumerate((0, TURNS))
    ]
    ended = boot("bye", agent=agent, plan=f"kteardown-plan 1\nseed 1\n{''.join(trials)}")
    assert ended.status == 0
    least: dict[tuple[str, int], float] = {}
    for record in map(json.loads, ended.records.splitlines()):
        if record["type"] == "sample":
            key = record["metric"], record["trial"]
            least[key] = min(least.get(key, record["value"]), record["value"])
    grown = {metric: value - least[metric, 0] for (metric, trial), value in least.items() if trial}
    # A turn has six instructions, and L1's clock counts 2 ns for each.
    assert grown["instructions_count"] == pytest.approx(6 * TURNS, abs=100)
    assert grown["work_ns"] == pytest.approx(2 * grown["instructions_count"], rel=0.01)
