"""Boots of a machine by ssh: QEMU as the machine, everything else as on hardware. Its ends, and
locks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from kteardown.model.record import BootEnd, BootStart, Hello, TrialEnd
from kteardown.paths import cache_dir
from kteardown.rundir.directory import RunDir
from kteardown_metal.bundle import exported_name
from kteardown_metal.console_records import key_of_boot, mac_of
from metal.machine import Machine, packages
from metal.power import execute
from vm.lab import TWO_BOOTS

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]


class Lab:
    """A lab with one machine in its configuration."""

    def __init__(self, machine: Machine, place: Path, **settings: object) -> None:
        self.machine, self._place, self.runs = machine, place, place / "runs"
        self.place = f"ssh:{machine.host}"
        known = {"power_command": machine.power_command, "boot_s": 300, "back_s": 600.0}
        config = machine.config(**{**known, **settings})
        self.runs.mkdir()
        (place / "kteardown").mkdir()
        (place / "kteardown" / "config.toml").write_text(config)
        (place / "metal.toml").write_text(TWO_BOOTS)
        (place / "long.toml").write_text(TWO_BOOTS.replace("repetitions = 1", "repetitions = 200"))
        (place / "panic.toml").write_text(
            TWO_BOOTS + '[machine]\nkernel_args = ["kteardown.fault=panic"]\n'
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "XDG_CONFIG_HOME": str(self._place),
            "KTEARDOWN_RUNS": str(self.runs),
        }
        argv = [sys.executable, "-P", "-m", "kteardown", *words]
        out, err = subprocess.PIPE, subprocess.STDOUT
        return subprocess.Popen(
            argv, cwd=self._place, env=environment, text=True, stdout=out, stderr=err
        )

    def call(self, *words: str, status: int = 0) -> str:
        process = self.start(*words)
        said, _ = process.communicate(timeout=3000)
        assert process.returncode == status, said
        return said

    @property
    def run(self) -> RunDir:
        return RunDir(max(self.runs.iterdir()))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    try:
        machine.wait()
        lab = Lab(machine, tmp_path_factory.mktemp("lab"))
        lab.call("doctor", "--machine", lab.place)
        yield lab
    finally:
        machine.stop()


def in_its_test_kernel(lab: Lab, process: subprocess.Popen[str], before: set[Path]) -> None:
    """Wait until something has come over the serial line of the first boot of a new run."""
    while not any(log.stat().st_size for log in consoles(lab, before)):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.2)


def consoles(lab: Lab, before: set[Path]) -> list[Path]:
    return [log for run in set(lab.runs.iterdir()) - before for log in run.glob("console/*.log")]


def outcomes(run: RunDir) -> list[str]:
    return [record.outcome for record in run.records() if isinstance(record, BootEnd)]


def test_doctor_saw_the_watchdog_fire(lab: Lab) -> None:
    proof = json.loads((cache_dir() / "machines" / lab.machine.host / "proof.json").read_text())
    print(proof)
    assert proof["by"] == "watchdog"
    assert proof["hang_s"] > 30
    assert proof["facts"]["hypervisor"] == "TCGTCGTCGTCG"
    assert "lock" not in lab.machine.ssh("ls /var/lib/kteardown").split()


def test_a_run_on_the_machine_is_a_run_like_any_other(lab: Lab) -> None:
    lab.call("run", "./metal.toml", "--machine", lab.place)
    assert outcomes(lab.run) == ["ok", "ok"]
    starts = [record for record in lab.run.records() if isinstance(record, BootStart)]
    assert {start.acceleration for start in starts} == {"metal"}
    assert [r.status for r in lab.run.records() if isinstance(r, TrialEnd)] == ["ok"] * 4
    timing = json.loads(lab.run.result_file.path.read_text())["timing"]
    assert timing["made"] == ["metal guest"]


def test_the_lines_of_a_run_imported_as_those_of_a_bundle_give_the_same_analysis(
    lab: Lab, tmp_path: Path
) -> None:
    lab.call("run", "./metal.toml", "--machine", lab.place)
    run = lab.run
    lab.call("export-boot", "./metal.toml", "--to", str(tmp_path / "bundle"))
    token, secret = exported_name(lab.run)
    assert secret
    log = tmp_path / "serial.log"
    log.write_bytes(
        b"".join(
            lines_of(run, end, token, secret) for end in run.records() if isinstance(end, BootEnd)
        )
    )
    assert "which has 2 of 2" in lab.call("import", str(log))
    one, other = (json.loads(each.result_file.path.read_text()) for each in (run, lab.run))
    for result in (one, other):
        # The only parts that say where the boots ran.
        del result["command"], result["ended_boots"]
    assert one == other


def lines_of(run: RunDir, end: BootEnd, token: str, secret: bytes) -> bytes:
    """Return what came over the line in a boot of a run, as if it were a boot of the bundle
    ``token``."""

    def renamed(line: re.Match[bytes]) -> bytes:
        record = re.sub(rb"(?<=kteardown\.boot=)\w+:\d+", f"{token}:{end.boot}".encode(), line[2])
        text = f"{token} {end.boot} ".encode() + line[1]
        mac = mac_of(key_of_boot(secret, token, end.boot), text + record)
        return b"@kteardown %s%s %s" % (text, mac, record)

    console = (
        run.console_file(end.boot, end.attempt).path.read_bytes() if end.outcome == "ok" else b""
    )
    return re.sub(rb"@kteardown \w+ \d+ (\w+ \d+ )\w+ (\{.*\})", renamed, console)


def test_a_panic_is_the_outcome_of_its_boot(lab: Lab) -> None:
    said = lab.call("run", "./panic.toml", "--machine", lab.place, status=4)
    assert "Kernel panic" in said
    assert "ok" not in outcomes(lab.run)


def test_a_driver_that_is_killed_leaves_a_machine_that_comes_back_and_a_run_to_resume(
    lab: Lab,
) -> None:
    before = set(lab.runs.iterdir())
    process = lab.start("run", "./metal.toml", "--machine", lab.place)
    in_its_test_kernel(lab, process, before)
    process.send_signal(signal.SIGKILL)
    process.wait()
    # A command that goes on would keep the line from the next one.
    number = (lab.machine.place / "serial.pid").read_text().strip()
    while Path(f"/proc/{number}").exists():
        time.sleep(0.2)
    assert outcomes(lab.run) == []
    lab.call("run", "--resume", "last", "--machine", lab.place)
    assert outcomes(lab.run) == ["ok", "ok"]
    assert len([r for r in lab.run.records() if isinstance(r, TrialEnd)]) == 4


def test_a_machine_that_another_lab_has_locked_is_refused(lab: Lab) -> None:
    lab.machine.ssh("echo $(($(date +%s) + 1000)) another-lab:/run >/var/lib/kteardown/lock")
    said = lab.call("run", "./metal.toml", "--machine", lab.place, status=5)
    assert (
        "it is locked by another-lab:/run for another" in said
        and "remove /var/lib/kteardown/lock" in said
    )
    lab.machine.ssh(
        "echo 1 another-lab:/run >/var/lib/kteardown/lock; echo >/etc/kteardown-test-machine"
    )
    said = lab.call("run", "--resume", "last", "--machine", lab.place, status=5)
    assert "does not hold this machine's /etc/machine-id" in said
    lab.machine.ssh("cp /etc/machine-id /etc/kteardown-test-machine")


def test_a_run_that_is_refused_after_a_boot_unlocks_the_machine(lab: Lab) -> None:
    words = ("run", "./metal.toml", "--machine", lab.place, "--set", "possible_cpus=32")
    assert "possible CPUs: the machine has 1, and the plan needs 32" in lab.call(*words, status=5)
    assert "lock" not in lab.machine.ssh("ls /var/lib/kteardown").split()


def test_a_machine_on_which_a_user_is_logged_in_is_refused(lab: Lab) -> None:
    with lab.machine.logged_in():
        said = lab.call("run", "./metal.toml", "--machine", lab.place, status=5)
    assert "a user is logged in: root" in said


def test_of_two_labs_that_lock_at_the_same_moment_one_gets_the_machine(lab: Lab) -> None:
    script = files("kteardown_metal").joinpath("metal_files/machine.sh").read_text()
    both = "[ ! -e /run/waits-0 ] || [ ! -e /run/waits-1 ]"
    for _ in range(10):
        lab.machine.ssh("rm -f /run/waits-* /run/go /var/lib/kteardown/lock")
        labs = []
        for number in range(2):
            waits = (
                f"touch /run/waits-{number}; while [ ! -e /run/go ]; do :; done; exec sh -s take"
            )
            words = lab.machine.ssh_words(f"{waits} lab-{number} 100")
            stream = subprocess.PIPE
            labs.append(
                subprocess.Popen(words, stdin=stream, stdout=stream, stderr=stream, text=True)
            )
        lab.machine.ssh(f"while {both}; do sleep 0.1; done; touch /run/go")
        said = [process.communicate(script, timeout=120) for process in labs]
        assert sorted(process.returncode for process in labs) == [0, 3], said
        winner = [process.returncode for process in labs].index(0)
        assert lab.machine.ssh("cat /var/lib/kteardown/lock").split()[1] == f"lab-{winner}"
    lab.machine.ssh("rm /var/lib/kteardown/lock")


def test_a_full_disk_is_said_in_one_line_and_the_run_goes_on_when_it_has_space(lab: Lab) -> None:
    lab.machine.ssh(
        "cd /var/lib/kteardown; rm -f bzImage; dd if=/dev/zero of=spare bs=1k count=100"
    )
    fill = "for size in 64k 1k; do dd if=/dev/zero bs=$size; done >>/var/lib/kteardown/fill"
    lab.machine.ssh(f"({fill}) 2>/dev/null || :")
    said = lab.call("run", "./metal.toml", "--machine", lab.place, status=5)
    assert "/var/lib/kteardown/lock cannot be written" in said
    # There is space for the lock, and not for the kernel.
    lab.machine.ssh("rm /var/lib/kteardown/spare")
    said = lab.call("run", "--resume", "last", "--machine", lab.place, status=5)
    assert "No space left on device" in said
    assert "lock" not in lab.machine.ssh("ls /var/lib/kteardown").split()
    lab.machine.ssh("rm /var/lib/kteardown/fill")
    lab.call("run", "--resume", "last", "--machine", lab.place)
    assert outcomes(lab.run)[-2:] == ["ok", "ok"]
    assert len([r for r in lab.run.records() if isinstance(r, TrialEnd)]) == 4


def test_a_reset_in_the_middle_of_the_records_repeats_the_boot(lab: Lab) -> None:
    seen = lab.machine.serial.stat().st_size
    process = lab.start("run", "./long.toml", "--machine", lab.place)
    reset_while_records_come(lab.machine, seen, process)
    said, _ = process.communicate(timeout=3000)
    assert process.returncode == 0, said
    assert sorted(outcomes(lab.run)) == ["infrastructure-error", "ok", "ok"]
    assert len([r for r in lab.run.records() if isinstance(r, TrialEnd)]) == 4


def reset_while_records_come(machine: Machine, seen: int, process: subprocess.Popen[str]) -> None:
    """Reset the machine when some records of a boot were sent, and not all. ``seen``: bytes of its
    line."""
    monitor = f"{machine.place}/qmp"
    while process.poll() is None:
        with machine.serial.open("rb") as line:
            line.seek(seen)
            sent = line.read()
        if b'"trial_start"' not in sent:
            time.sleep(0.01)
            continue
        # Nothing is sent while it does not run.
        execute(monitor, "stop")
        late = b'"type":"sent"' in machine.serial.read_bytes()[seen:]
        if not late:
            execute(monitor, "system_reset")
        seen = machine.serial.stat().st_size
        execute(monitor, "cont")
        if not late:
            return
    raise AssertionError(process.communicate()[0])


def test_uefi_a_console_server_and_a_power_switch_instead_of_a_watchdog(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    firmware = packages("uefi", "ovmf") / "usr/share/ovmf/OVMF.fd"
    place = tmp_path_factory.mktemp("uefi")
    machine = Machine(place, "kteardown-test-uefi", stop_on_reboot=1, qemu=("-bios", str(firmware)))
    try:
        machine.wait()
        line = machine.serial_over_tcp
        lab = Lab(machine, tmp_path_factory.mktemp("lab"), serial=line, boot_s=60, back_s=600.0)
        lab.call("doctor", "--machine", lab.place)
        proof = json.loads((cache_dir() / "machines" / machine.host / "proof.json").read_text())
        assert proof["by"] == "power command"
        lab.call("run", "./metal.toml", "--machine", lab.place)
        assert outcomes(lab.run) == ["ok", "ok"]
        hello = next(record for record in lab.run.records() if isinstance(record, Hello))
        assert "acpi_rsdp=0x" in hello.cmdline
    finally:
        machine.stop()


def test_a_machine_that_does_not_come_back_stops_the_run(lab: Lab) -> None:
    before = set(lab.runs.iterdir())
    process = lab.start("run", "./metal.toml", "--machine", lab.place)
    in_its_test_kernel(lab, process, before)
    execute(f"{lab.machine.place}/qmp", "set_link", name="n", up=False)
    said, _ = process.communicate(timeout=3000)
    assert process.returncode == 5
    assert "trying the power command once" in said
    assert "boots nothing on it any more" in said
    assert outcomes(lab.run) == []
    execute(f"{lab.machine.place}/qmp", "set_link", name="n", up=True)
    lab.call("run", "--resume", "last", "--machine", lab.place)
    assert outcomes(lab.run) == ["ok", "ok"]
