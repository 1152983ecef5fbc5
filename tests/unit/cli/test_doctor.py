"""``doctor``: its findings; the commands of ``--fix``, and that it asks before it runs them."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from kteardown.cli import doctor
from kteardown.errors import InputError, LabError, MissingError
from kteardown.vm import acceleration


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a PATH that begins with an apt-get that records its arguments."""
    program = tmp_path / "bin/apt-get"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >>{tmp_path}/asked\n'
        f'[ "$1" != install ] || [ ! -e {tmp_path}/fail ]\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def out() -> Console:
    return Console(file=io.StringIO(), width=200)


def test_each_missing_package_is_installed_once(tools: Path) -> None:
    commands = doctor.install(["flex", "bison", "flex"])
    shown = out()
    doctor.carry_out(commands, shown, yes=True)
    asked = (tools / "asked").read_text().splitlines()
    assert asked == ["update", "install -y --no-install-recommends bison flex"]
    assert "apt-get install -y --no-install-recommends bison flex" in shown.file.getvalue()  # type: ignore[attr-defined]


def test_nothing_is_run_without_a_confirmation(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(InputError, match="standard input is not a terminal"):
        doctor.carry_out(doctor.install(["flex"]), out(), yes=False)
    assert not (tools / "asked").exists()


@pytest.mark.parametrize(("answer", "runs"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_the_user_is_asked(
    tools: Path, monkeypatch: pytest.MonkeyPatch, answer: str, runs: bool
) -> None:
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    doctor.carry_out(doctor.install(["flex"]), out(), yes=False)
    assert (tools / "asked").exists() is runs


def test_a_command_that_fails_is_reported(tools: Path) -> None:
    (tools / "fail").touch()
    with pytest.raises(LabError, match="exit status 1"):
        doctor.carry_out(doctor.install(["flex"]), out(), yes=True)


def test_a_user_other_than_root_uses_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [command[0] for command in doctor.install(["flex"])] == ["sudo", "sudo"]


def test_access_to_kvm_is_added_only_if_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "kvm"
    assert doctor.allow_kvm(device) == []
    device.touch()
    assert doctor.allow_kvm(device) == []
    monkeypatch.setattr(os, "access", lambda *_: False)
    ((*command, user),) = doctor.allow_kvm(device)
    assert command[-4:] == ["usermod", "--append", "--groups", "kvm"]
    assert user


def test_a_finding_names_its_packages() -> None:
    def absent(arch: str) -> str:
        raise MissingError(f"no compiler for {arch}", ["gcc"])

    findings = list(doctor._architectures({"compiler": absent}))
    assert [(finding.ok, finding.packages) for finding in findings] == [(False, ("gcc",))] * 2


def test_findings_are_printed_before_the_agents_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []

    def build(arch: str, **_: object) -> Path:
        printed.append(capsys.readouterr().out)
        return tmp_path / arch

    monkeypatch.setattr(doctor, "build_agent", build)
    monkeypatch.setattr(
        acceleration,
        "best_wall_acceleration",
        lambda *_, **__: acceleration.WallAcceleration("kvm", ""),
    )
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path))
    doctor._print(doctor._check_all(), as_json=False)
    assert [line.split("  ")[1] for line in printed[0].splitlines()][-1] == "disk for runs"
    assert str(tmp_path / "x86_64") in printed[1]
    assert str(tmp_path / "arm64") in capsys.readouterr().out


def test_a_host_without_kvm_is_ready_and_told_what_it_cannot_time() -> None:
    kvm = doctor.Finding("wall clock on KVM", True, "works", needed=False)
    assert "without KVM" not in doctor._ready([kvm])
    assert "without KVM" in doctor._ready([replace(kvm, ok=False)])
