"""Machines that ``--machine ssh:HOST`` names: which are refused, and which kernels they need."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.errors import InputError
from kteardown.inputs.load import load_experiment
from kteardown_metal.ssh import SshPlace
from unit.metal.test_metal import PROOF


def test_a_machine_that_is_not_proved_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    with pytest.raises(InputError) as refused:
        SshPlace("ssh:root@box").proof()
    assert refused.value.hint.endswith("kteardown doctor --machine ssh:root@box")
    file = SshPlace("ssh:root@box").proof_file.path
    file.parent.mkdir(parents=True)
    file.write_text(PROOF.model_dump_json())
    assert SshPlace("ssh:root@box").proof() == PROOF


def test_a_machine_that_is_not_in_the_configuration_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(InputError, match="no section for this machine"):
        CliRunner().invoke(app, ["doctor", "--machine", "ssh:box"], catch_exceptions=False)


def test_kernels_for_a_machine_without_a_line_need_their_fragment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "kteardown").mkdir()
    (tmp_path / "kteardown" / "config.toml").write_text("[machines.box]\n")
    wall = load_experiment("freezer")
    wall = wall.model_copy(update={"design": wall.design.model_copy(update={"clock": "wall"})})
    with pytest.raises(InputError) as refused:
        SshPlace("ssh:box").check_experiment(wall, kvm=False)
    assert refused.value.hint == "add --config pstore."
    SshPlace("ssh:box").check_experiment(wall.model_copy(update={"config": ("pstore",)}), kvm=False)
