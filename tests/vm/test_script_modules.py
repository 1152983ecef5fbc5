"""A script on a distribution's prebuilt kernel: modules that it asks for come from the kernel's
package."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kteardown.errors import GuestError
from kteardown.inputs.options import Scripted
from kteardown.model.script_records import OutputLine
from kteardown.progress import SilentReporter
from kteardown.run.resolve import experiment_of_script
from kteardown.run.script_modules import rehearse_on_base
from kteardown.rundir.directory import RunDir
from kteardown.script.describe import describe, write
from vm.test_run import kteardown, result_of

pytestmark = [pytest.mark.vm, pytest.mark.build]

SOURCE = "debian-image:6.12"
NEEDED = ("ip", "losetup", "mkfs.ext4")
# The kernel asks for dummy, for loop as /dev/loop-control is opened, and for ext4; the script
# itself for zram with a parameter, which a module that is loaded already must get.
SCRIPT = """\
#!/bin/sh -e
ip link add dummy0 type dummy
echo $(ls -d /sys/class/net/dummy* | wc -l) dummy
dd if=/dev/zero of=/tmp/disk bs=1M count=16 2> /dev/null
mkfs.ext4 -q /tmp/disk
mount -o loop -t ext4 /tmp/disk /mnt
echo $(grep -c ' /mnt ext4 ' /proc/mounts) ext4
modprobe zram num_devices=3
echo $(ls -d /sys/block/zram* | wc -l) zram
modprobe zram num_devices=5
echo $(ls -d /sys/block/zram* | wc -l) zram
modprobe fuse
modprobe nonesuch || echo no nonesuch
"""
PRINTED = [
    "1 dummy",
    "1 ext4",
    "3 zram",
    # As with any modprobe: a module that the script has loaded stays as it is.
    "3 zram",
    "modprobe: FATAL: Module nonesuch not found in directory /modules",
    "no nonesuch",
]


@pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason="this host lacks a program")
def test_all_guests_of_a_script_have_the_modules_that_it_asks_for(tmp_path: Path) -> None:
    script = tmp_path / "modules.sh"
    script.write_text(SCRIPT)
    result = tmp_path / "result.json"
    done = kteardown(
        *("compare", str(script), "--source", SOURCE, "--series", SOURCE, "--seeds", "1"),
        *("--json", str(result)),
        runs=tmp_path / "runs",
    )
    noted = " ".join(done.stderr.split())
    assert f"asks for modules of {SOURCE}" in noted and "dummy (rtnl-link-dummy)" in noted
    assert "CONFIG_" not in noted
    (folder,) = (tmp_path / "runs").iterdir()
    printed: dict[int, list[str]] = {}
    for record in RunDir(folder).records():
        if isinstance(record, OutputLine) and record.source == "script":
            printed.setdefault(record.boot, []).append(record.text)
    assert list(printed.values()) == [PRINTED] * 2
    kernels = result_of(result)["kernels"]
    for facts in kernels.values():
        modules = facts["script_modules"]
        assert modules["rtnl-link-dummy"] == ["dummy"]
        assert modules["char-major-10-237"] == ["loop"]
        assert modules["fs-ext4"][-1] == "ext4" and modules["zram"][-1] == "zram"
        assert "nonesuch" not in modules and "fuse" not in modules


def test_a_module_that_no_package_has_is_named(tmp_path: Path) -> None:
    script = tmp_path / "none.sh"
    script.write_text("#!/bin/sh -e\nmodprobe dummy\n/sbin/modprobe -q nonesuch\n")
    described = describe(str(script), Scripted(), {})
    write(described, tmp_path)
    experiment = experiment_of_script(described.workload.name, SOURCE, tmp_path)
    with pytest.raises(GuestError) as failed:
        rehearse_on_base(described, experiment, SilentReporter())
    assert "has no module for nonesuch" in failed.value.hint
    assert "dummy" not in failed.value.hint and "--config" not in failed.value.hint
