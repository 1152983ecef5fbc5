"""The files of a bundle for boot loaders: PXELINUX boots one boot from a network, GRUB the other
one once."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.model.record import BootEnd
from kteardown.rundir.find import find_runs
from metal.loaders import boot_by, grub_disk, pxe_server
from metal.machine import timers
from vm.lab import TWO_BOOTS

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]


def test_pxelinux_and_grub_boot_what_the_files_of_a_bundle_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    (tmp_path / "loaded.toml").write_text(f"{TWO_BOOTS}[machine]\nkernel_args = {timers()}\n")
    bundle, logs = tmp_path / "bundle", [tmp_path / "pxe.log", tmp_path / "grub.log"]
    asked = ["export-boot", str(tmp_path / "loaded.toml"), "--to", str(bundle)]
    assert CliRunner().invoke(app, asked, catch_exceptions=False).exit_code == 0
    boot_by(logs[0], pxe_server(bundle, tmp_path / "tftp", "0000"), resets=False)
    boot_by(logs[1], grub_disk(bundle, tmp_path / "grub", "0001"), resets=True)
    # The entry was booted once: the reset started the machine's own.
    assert b"the own system of this machine" in logs[1].read_bytes().partition(b'"type":"sent"')[2]
    assert "which has 2 of 2" in CliRunner().invoke(app, ["import", *map(str, logs)]).output
    (run,) = find_runs("last").runs
    ends = {record.boot: record.outcome for record in run.records() if isinstance(record, BootEnd)}
    assert ends == {0: "ok", 1: "ok"}
