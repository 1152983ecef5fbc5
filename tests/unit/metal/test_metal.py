"""What does not need a machine: its line, its refusals, how boots ended. tests/metal has the
machine."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.door import Entry
from kteardown.errors import InputError, LabError
from kteardown.run.execute import Executor
from kteardown.run.setting import Lab, Setting
from kteardown.vm.kernel_log import Ending
from kteardown_metal import metal
from kteardown_metal.console_records import LoggedBoot, key_of_boot, named
from kteardown_metal.metal import MachineConfig, MetalMachine, NoAnswerError, Proof, SshError
from kteardown_metal.ssh import SshPlace
from unit.vm.test_qemu_command import JOB

DATA = Path(__file__).parents[2] / "data" / "bundle"
TOKEN = (DATA / "run" / "on").read_text().strip().removeprefix("exported:")
KEY = key_of_boot(bytes.fromhex((DATA / "run" / "bundle.key").read_text()), TOKEN, 0)
PROOF = Proof(
    proved_at="2026-11-27T00:00:00+00:00",
    success_s=20,
    panic_s=30,
    hang_s=90,
    by="watchdog",
    back_s=20,
    facts={"cpu": {"model": "x"}},
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MetalMachine:
    """A machine whose ssh is a shell script: it prints its last argument, or what the file
    `says`."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    last = 'for last; do :; done\nprintf %s "$last"'
    ssh.write_text(f"#!/bin/sh\ncat >{tmp_path}/input\n{last}\n. {tmp_path}/says\n")
    ssh.chmod(0o755)
    (tmp_path / "says").touch()
    monkeypatch.setenv("PATH", f"{ssh.parent}:/usr/bin:/bin")
    return MetalMachine("box", MachineConfig(serial="true"), Path("/init"), "o", PROOF, print, 60)


def test_every_word_is_quoted_for_the_shell_of_the_machine(
    machine: MetalMachine, tmp_path: Path
) -> None:
    command = machine._script("take", "a; touch $HOME 'x", "5")
    printed = subprocess.check_output(["sh", "-c", f"printf '%s\\n' {command}"], text=True)
    assert printed.splitlines() == ["sh", "-s", "take", "a; touch $HOME 'x", "5"]
    assert "take) # OWNER SECONDS" in (tmp_path / "input").read_text()


def test_a_refusal_is_an_error_and_a_failure_is_tried_again(
    machine: MetalMachine, tmp_path: Path
) -> None:
    (tmp_path / "says").write_text("echo it is locked >&2; exit 3\n")
    with pytest.raises(LabError, match="box is not used: it is locked"):
        machine._script("take")
    (tmp_path / "says").write_text("echo no space left >&2; exit 1\n")
    with pytest.raises(SshError, match="no space left") as failed:
        machine._script("take")
    assert not isinstance(failed.value, NoAnswerError)
    (tmp_path / "says").write_text("exit 255\n")
    with pytest.raises(NoAnswerError):
        machine._script("take")


@pytest.mark.parametrize("error", (LabError("no space", hint=""), KeyboardInterrupt()))
def test_a_run_that_ends_early_unlocks_the_machine_and_says_so(
    machine: MetalMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    (tmp_path / "says").write_text(f'echo "$last" >{tmp_path}/asked\n')
    on_it = cast("Lab", SimpleNamespace(jobs=1, machine=machine))
    with pytest.raises(type(error)), Executor(on_it).open(cast("Setting", None)):
        raise error
    assert (tmp_path / "asked").read_text() == "sh -s release o\n"
    assert "box: removing the lock of this run" in capsys.readouterr().out


def line_of(text: bytes, folder: Path) -> metal._SerialLine:
    """Return a line on which ``text`` has come."""
    (folder / "line").write_bytes(text)
    with metal._serial_line(f"cat {folder}/line; sleep 60", Entry(folder) / "console") as line:
        while (folder / "console").stat().st_size < len(text):
            time.sleep(0.01)
        line.read()
        line.key = KEY
        return line


def test_a_boot_is_what_came_between_kexec_and_the_machines_own_kernel(tmp_path: Path) -> None:
    first = re.findall(
        rb"(?s).+?reboot: Restarting system\r?\n", (DATA / "serial.log").read_bytes()
    )[0]
    before = b"BUG: the machine's own kernel\n[  9.0] kexec_core: Starting new kernel\n"
    line = line_of(before + first, tmp_path)
    assert line.sent(TOKEN)
    boot = line.boot(TOKEN)
    assert boot.sent is not None
    assert not any("own kernel" in text for text in boot.console)
    assert not line.boot("0" * 16).lines
    assert not line.boot(TOKEN, until=0).console


def test_a_boot_is_whole_if_its_records_are_whatever_the_clock_of_the_machine_says(
    machine: MetalMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metal, "_ASK_S", 0.0)
    monkeypatch.setattr(machine, "_up", lambda old: ("another", 100000.5, b""))
    first = re.findall(
        rb"(?s).+?reboot: Restarting system\r?\n", (DATA / "serial.log").read_bytes()
    )[0]
    (tmp_path / "line").write_bytes(first)
    with metal._serial_line(f"cat {tmp_path}/line; sleep 60", Entry(tmp_path) / "console") as line:
        line.key = KEY
        returned = machine._until_back(line, TOKEN, "old")
    assert returned.boot.sent is not None
    assert returned.ending.how == "powered-off"


def test_what_comes_while_the_machine_does_not_answer_is_of_the_boot(
    machine: MetalMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A boot that was reset in the middle of its records is repeated; it is no panic of the
    kernel."""
    whole = re.findall(
        rb"(?s).+?reboot: Restarting system\r?\n", (DATA / "serial.log").read_bytes()
    )[0]
    (tmp_path / "line").write_bytes(whole.partition(b'"sent"')[0].rpartition(b"\n")[0] + b"\n")
    command = f"until [ -e {tmp_path}/asked ]; do sleep 0.05; done; cat {tmp_path}/line; sleep 60"
    with metal._serial_line(command, Entry(tmp_path) / "console") as line:
        line.key = KEY

        def up(old: str) -> tuple[str, float, bytes]:
            (tmp_path / "asked").touch()
            until = time.monotonic() + 300
            while not line._lines and time.monotonic() < until:
                time.sleep(0.01)
            return "another", 0.0, b""

        monkeypatch.setattr(metal, "_ASK_S", 0.0)
        monkeypatch.setattr(metal, "_QUIET_S", 0.0)
        monkeypatch.setattr(machine, "_up", up)
        returned = machine._until_back(line, TOKEN, "old")
    assert returned.ending.how == "broken"
    assert "of its lines arrived" in returned.ending.detail


def test_a_machine_with_fewer_possible_cpus_than_the_plan_is_an_error(
    machine: MetalMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = re.findall(
        rb"(?s).+?reboot: Restarting system\r?\n", (DATA / "serial.log").read_bytes()
    )[0]
    boot = line_of(first, tmp_path).boot(TOKEN)
    back = metal.Returned(boot, Ending("powered-off"), 20, 10, powered=False)
    monkeypatch.setattr(MetalMachine, "_until_back", lambda *_: back)
    job = replace(
        JOB,
        image=DATA / "serial.log",
        initramfs=DATA / "serial.log",
        console=Entry(tmp_path) / "log",
    )
    wrong = replace(machine, proof=None, first=DATA / "serial.log")
    with pytest.raises(LabError, match="possible CPUs: the machine has 1, and the plan needs 32"):
        wrong.boot(replace(job, possible_cpus=32), print)
    lines: list[bytes] = []
    assert wrong.boot(replace(job, cpus=1), lines.append).outcome == "ok"
    assert lines


def test_lines_that_came_after_the_start_of_the_own_kernel_are_not_of_the_boot(
    tmp_path: Path,
) -> None:
    line = line_of(b"Kernel panic - not syncing: x\n", tmp_path)
    line._lines.append((time.monotonic() + 5, b"BUG: later"))
    boot = line.boot(TOKEN, until=time.monotonic() + 1)
    assert list(boot.console) == ["Kernel panic - not syncing: x"]


def test_a_command_of_the_line_that_ends_is_an_error(tmp_path: Path) -> None:
    with metal._serial_line("exit 7", Entry(tmp_path) / "console") as line:
        line._process.wait()
        with pytest.raises(LabError, match="status 7"):
            line.read()


@pytest.mark.parametrize(
    ("console", "total_s", "powered", "outcome", "detail"),
    [
        ("Kernel panic - not syncing: y", 30, False, "panic", "y"),
        ("kteardown: trial 0", 61, False, "hang", "the watchdog reset the machine after 60 s"),
        ("kteardown: trial 0", 30, False, "panic", "without a panic message"),
        ("kteardown: trial 0", 300, True, "hang", "until the power command"),
        ("", 61, False, "infrastructure-error", "nothing of the boot arrived"),
    ],
)
def test_how_a_boot_ended(
    machine: MetalMachine, console: str, total_s: float, powered: bool, outcome: str, detail: str
) -> None:
    boot = LoggedBoot(TOKEN, 0, "")
    boot.console.extend([console] if console else [])
    end = boot.end(machine._ending(boot, total_s, powered))
    assert end.outcome == outcome
    assert detail in end.detail


def test_a_boot_of_which_records_are_lost_is_repeated(machine: MetalMachine) -> None:
    sent = b'{"type":"sent","records":2,"status":0,"uptime_ms":1}'
    boot = LoggedBoot(TOKEN, 0, "0", {0: b"{}", 1: b"{}", 3: sent})
    assert boot.end(machine._ending(boot, 20, powered=False)).outcome == "infrastructure-error"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--clock", "instructions"], "only the wall clock"),
        (["--clock", "wall", "--set", "numa_nodes=1,2"], "numa_nodes"),
        (["--clock", "wall", "--set", "until=platform"], "may not wake up"),
        (["--clock", "wall", "--profile"], "only sampled in guests"),
        (["--clock", "wall", "--require", "kvm"], "has no KVM"),
    ],
)
def test_what_a_machine_cannot_measure_is_refused_before_a_build(
    options: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RUNS", "CACHE"):
        monkeypatch.setenv(f"KTEARDOWN_{name}", str(tmp_path / name))
    file = SshPlace("ssh:box").proof_file.path
    file.parent.mkdir(parents=True)
    file.write_text(PROOF.model_dump_json())
    with pytest.raises(InputError, match=why):
        CliRunner().invoke(
            app, ["run", "freezer", "--machine", "ssh:box", *options], catch_exceptions=False
        )
    assert not (tmp_path / "RUNS").exists()


RAMOOPS = {
    **{
        "mem_address": 0x18000000,
        "mem_size": 4 << 20,
        "mem_type": 0,
        "record_size": 65536,
        "ecc": 0,
    },
    **{"console_size": 1 << 20, "ftrace_size": 0, "pmsg_size": 2 << 20, "max_reason": -1},
}


def ramoops_of(
    place: Path, sizes: dict[str, int], cmdline: str, systemd: str = "disabled"
) -> subprocess.CompletedProcess[str]:
    """Return what the script says of a machine with this ramoops."""
    for folder in (
        "sys/module",
        "sys/fs/pstore",
        "proc",
        "bin",
        *["sys/module/ramoops/parameters"] * bool(sizes),
    ):
        (place / folder).mkdir(parents=True, exist_ok=True)
    for name, size in sizes.items():
        (place / f"sys/module/ramoops/parameters/{name}").write_text(f"{size}\n")
    (place / "sys/fs/pstore/pmsg-ramoops-0").write_text("old")
    (place / "proc/mounts").write_text(f"pstore {place}/sys/fs/pstore pstore rw 0 0\n")
    (place / "proc/cmdline").write_text(f"console=tty0 {cmdline} quiet\n")
    for name, does in {"modprobe": "exit 1", "systemctl": f"echo {systemd}"}.items():
        (place / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (place / "bin" / name).chmod(0o755)
    text = files("kteardown_metal").joinpath("metal_files/machine.sh").read_text()
    for folder in ("/sys/module/", "/sys/fs/", "/proc/"):
        text = text.replace(folder, f"{place}{folder}")
    argv, path = ["sh", "-s", "ramoops"], f"{place}/bin:/usr/bin:/bin"
    return subprocess.run(
        argv,
        input=text,
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": path, "LC_ALL": "C"},
    )


def test_a_kernel_gets_the_place_of_ramoops_of_the_machine_and_what_it_has_is_removed(
    tmp_path: Path,
) -> None:
    said = ramoops_of(tmp_path, RAMOOPS, "memmap=16M@0x30000000 memmap=4M$0x18000000")
    assert said.returncode == 0
    words = {f"ramoops.{name}={size}" for name, size in RAMOOPS.items() if name != "max_reason"}
    assert set(said.stdout.split()) == {"memmap=4M$0x18000000", *words}
    assert not list((tmp_path / "sys/fs/pstore").iterdir())


@pytest.mark.parametrize(
    ("sizes", "cmdline", "systemd", "why"),
    [
        (
            {},
            "memmap=4M$0x18000000",
            "disabled",
            "no serial line and no ramoops: its own kernel needs",
        ),
        (
            RAMOOPS,
            "memmap=4M@0x18000000",
            "disabled",
            "no memory is reserved for ramoops: its own kernel",
        ),
        (RAMOOPS, "memmap=4M$0x18000000", "enabled", "systemctl disable systemd-pstore.service"),
        (
            {**RAMOOPS, "pmsg_size": 0},
            "memmap=4M$1",
            "disabled",
            "ramoops.pmsg_size is 0: its own kernel",
        ),
        ({**RAMOOPS, "mem_address": 0}, "memmap=4M$1", "disabled", "ramoops.mem_address is 0"),
        (
            {**RAMOOPS, "ftrace_size": 4096},
            "memmap=4M$1",
            "disabled",
            "ramoops.ftrace_size is not 0",
        ),
    ],
)
def test_a_machine_with_neither_is_refused_with_the_words_that_it_needs(
    tmp_path: Path, sizes: dict[str, int], cmdline: str, systemd: str, why: str
) -> None:
    said = ramoops_of(tmp_path, sizes, cmdline, systemd)
    assert said.returncode == 3
    assert why in said.stderr
    if "own kernel" in why:
        assert "arguments memmap=4M$ADDRESS ramoops.mem_address=ADDRESS " in said.stderr


def kept(
    machine: MetalMachine, left: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> metal.Returned:
    """Return what the lab makes of what a machine has in memory after the reset."""
    monkeypatch.setattr(metal, "_ASK_S", 0.0)
    monkeypatch.setattr(metal, "_QUIET_S", 0.0)
    monkeypatch.setattr(machine, "_up", lambda old: ("another", 100000.5, left))
    with metal._serial_line("", Entry(folder) / "console") as line:
        line.key = KEY
        return machine._until_back(line, TOKEN, "old")


def test_records_and_text_in_memory_are_read_as_those_of_a_line(
    machine: MetalMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.config = MachineConfig()
    first = re.findall(
        rb"(?s).+?reboot: Restarting system\r?\n", (DATA / "serial.log").read_bytes()
    )[0]
    other = first.replace(TOKEN.encode(), b"0" * 16)
    noise = bytes(range(256)) * 20
    found = kept(
        machine, b"WARNING: text\n" + noise + other + noise + b"\n" + first, tmp_path, monkeypatch
    )
    assert found.boot.sent is not None
    assert found.ending.how == "powered-off"
    assert (tmp_path / "console").read_bytes().startswith(b"WARNING: text\n")
    damaged = kept(machine, first.replace(b'"sent"', b'"sEnt"'), tmp_path, monkeypatch)
    assert damaged.ending.detail.endswith("of its lines arrived")
    # A panic prints the log again, with the command line; the line of the machine is in another
    # zone.
    described = re.findall(rb"@kteardown [^\n]*machine[^\n]*\n", first)[0]
    again = (
        b"\nKernel panic - not syncing: y\n[ 0.0] kteardown.boot=%s\n[ 2.0] z\n\n"
        % named(TOKEN, 0, KEY).encode()
    )
    for more in (b"", described):
        panicked = kept(machine, noise + again + more, tmp_path, monkeypatch)
        end = panicked.boot.end(panicked.ending)
        assert (end.outcome, end.detail) == ("panic", "Kernel panic - not syncing: y")
    nothing = kept(machine, b"\n", tmp_path, monkeypatch)
    assert nothing.ending.detail == "nothing of the boot arrived"


def test_records_that_do_not_fit_in_memory_are_said_with_both_sizes() -> None:
    sent = b'{"type":"sent","records":200,"status":0,"uptime_ms":1,"bytes":70000,"zone":65536}'
    boot = LoggedBoot(TOKEN, 0, "0", {150: b"{}", 201: sent})
    assert boot.sent is None
    assert boot.lacks(1) == (
        "too little space for records: they take 68 kB, and the pmsg zone of ramoops has 64 kB"
    )
    assert not LoggedBoot(TOKEN, 0, "0", {201: sent.replace(b"70000", b"60000")}).lacks(1)
    assert not LoggedBoot(TOKEN, 0, "0", {201: sent.replace(b"65536", b"0")}).lacks(1)
