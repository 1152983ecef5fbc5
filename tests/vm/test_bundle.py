"""Exported boots on a machine without virtio: QEMU as a user starts it by hand, with a serial
line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.model.record import BootEnd, Sample, TrialEnd
from kteardown.rundir.find import find_runs
from vm.lab import TWO_BOOTS

pytestmark = pytest.mark.vm


def boot(bundle: Path, number: str, *arguments: str) -> bytes:
    """Boot one boot of the bundle, and return what the serial line had."""
    folder = bundle / "boots" / number
    line = " ".join([(folder / "cmdline").read_text().strip(), "no_timer_check", *arguments])
    image = bundle / (folder / "kernel").read_text().strip()
    log = bundle / f"{number}.log"
    machine = [
        "-M",
        "pc,i8042=off",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-m",
        "1024",
        "-nodefaults",
    ]
    ends = ["-display", "none", "-no-reboot", "-serial", f"file:{log}"]
    started = ["-kernel", str(image), "-initrd", f"{folder}/initramfs.cpio", "-append", line]
    subprocess.run(["qemu-system-x86_64", *machine, *ends, *started], check=True)
    return log.read_bytes()


def test_a_machine_boots_the_bundle_and_the_log_of_its_line_is_the_run(
    base_image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert base_image.is_file()
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    (tmp_path / "exported.toml").write_text(TWO_BOOTS)
    bundle, log = tmp_path / "bundle", tmp_path / "serial.log"
    asked = ["export-boot", str(tmp_path / "exported.toml"), "--to", str(bundle)]
    assert CliRunner().invoke(app, asked, catch_exceptions=False).exit_code == 0
    assert sorted(re.findall(r"\| \d{4} \| (\S+)", (bundle / "README.md").read_text())) == [
        "base",
        "base-twin",
    ]
    # The second one panics before its first process.
    log.write_bytes(
        boot(bundle, "0000") + boot(bundle, "0001", "rdinit=/plan", "init=/plan", "loglevel=7")
    )
    assert "which has 2 of 2" in CliRunner().invoke(app, ["import", str(log)]).output
    (run,) = find_runs("last").runs
    ends = {record.boot: record.outcome for record in run.records() if isinstance(record, BootEnd)}
    assert ends == {0: "ok", 1: "panic"}
    trials = [record for record in run.records() if isinstance(record, TrialEnd)]
    # This machine is in real time: where the host takes a CPU from it, an invariant of the trial
    # fails.
    assert len(trials) == 2 and {trial.status for trial in trials} <= {"ok", "void"}
    assert {record.trial for record in run.records() if isinstance(record, Sample)} == {0, 1}
