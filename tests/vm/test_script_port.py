"""A script is root in its guest, and does not get the agent's port; what it forges otherwise is
found."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import GuestError
from kteardown.inputs.options import Scripted
from kteardown.model.record import Record
from kteardown.model.script_records import OutputLine
from kteardown.progress import SilentReporter
from kteardown.run.boot_once import boot_counted
from kteardown.run.setting import Bootable
from kteardown.script.describe import describe, write

pytestmark = [pytest.mark.vm, pytest.mark.build]

SCRIPT = Path(__file__).with_name("guest_forger.c")
WAYS = ("pidfd_getfd", "descriptors", "memory", "ptrace", "device")


def boot(image: Path, folder: Path, forge: str) -> tuple[Record, ...]:
    described = describe(str(SCRIPT), Scripted(), {"FORGE": (forge,)})
    write(described, folder)
    booted = boot_counted(
        Bootable(image),
        described.workload,
        [{"FORGE": forge}],
        SilentReporter(),
        folder=str(folder),
        counted=False,
    )
    return booted.records


def test_a_script_does_not_get_the_port_of_the_agent(base_image: Path, tmp_path: Path) -> None:
    records = boot(base_image, tmp_path, "easy")
    lines = [
        record.text
        for record in records
        if isinstance(record, OutputLine)
        if record.source == "script"
    ]
    assert [line for line in lines if line.startswith("root: ")] == [
        f"root: {way}: refused" for way in WAYS
    ]
    # Debuggers and tracers work on what is the script's.
    own = [f"own process: {way}: {'refused' if way == 'device' else 'TAKEN'}" for way in WAYS]
    assert [line for line in lines if "TAKEN" in line or line.startswith("own")] == own


def test_a_record_that_a_script_forges_voids_its_boot(base_image: Path, tmp_path: Path) -> None:
    with pytest.raises(GuestError, match="forged a record: it belongs to no running trial"):
        boot(base_image, tmp_path, "driver")
