"""What cannot be exported for a machine is refused before a build."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.errors import InputError, KteardownError
from kteardown.paths import data_dir
from kteardown.rundir.directory import RunDir
from unit.metal.logs import DATA, recorded_run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    return recorded_run(tmp_path, monkeypatch)


def test_an_exported_run_is_not_resumed_here(run: RunDir) -> None:
    with pytest.raises(InputError, match="are exported"):
        CliRunner().invoke(app, ["run", "--resume", "last"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--clock", "instructions"], "only the wall clock"),
        (["--clock", "both"], "only the wall clock"),
        (["--until", "verdict"], "all boots from the start"),
        (["--profile"], "only sampled in guests"),
        (["--clock", "wall", "--set", "numa_nodes=1,2"], "numa_nodes"),
        (["--clock", "wall", "--set", "until=platform"], "may not wake up"),
        (["--clock", "wall", "--serial", "ttyS0; reboot"], "not a serial line"),
        (["--clock", "wall", "--to", str(DATA)], "cannot be created: File exists"),
        (["--clock", "wall", "--to", f"{__file__}/x"], "cannot be created: Not a directory"),
    ],
)
def test_what_a_machine_cannot_measure_is_refused_before_a_build(
    options: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    to = ["--to", str(tmp_path / "bundle")] if "--to" not in options else []
    with pytest.raises(KteardownError, match=why):
        CliRunner().invoke(app, ["export-boot", "freezer", *options, *to], catch_exceptions=False)
    assert not (tmp_path / "bundle").exists()


def test_an_argument_that_a_boot_loader_would_execute_is_refused(tmp_path: Path) -> None:
    text = (data_dir("experiments") / "freezer.toml").read_text()
    own = tmp_path / "own.toml"
    own.write_text(
        text.replace("[design]", "[machine]\nkernel_args = ['quiet', 'x; reboot']\n[design]", 1)
    )
    with pytest.raises(InputError, match="'x; reboot' is not plain text for a boot loader"):
        CliRunner().invoke(
            app, ["export-boot", str(own), "--to", str(tmp_path / "b")], catch_exceptions=False
        )
    assert not (tmp_path / "b").exists()
