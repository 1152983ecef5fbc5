"""Exported boots and the logs of their machines: six boots of an emulated machine, recorded from its line."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kteardown.analysis.conclude import conclude
from kteardown.cli import app
from kteardown.cli.bundle import why_unusable
from kteardown.errors import InputError, KteardownError, LabError
from kteardown.model.record import BootEnd, BootStart, parse
from kteardown.paths import data_dir
from kteardown.progress import SilentReporter
from kteardown.run import bundle
from kteardown.rundir.counting import METAL
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown.vm import console_records
from kteardown.vm.console_records import Consoles, LoggedBoot, read_logs

DATA = Path(__file__).parents[2] / "data" / "bundle"
TOKEN = (DATA / "run" / "on").read_text().strip().removeprefix("exported:")
PANIC = (
    "[   12.000000] Kernel panic - not syncing: Fatal exception\n"
    f"[   12.000001] Command line: console=ttyS0 kteardown.boot={TOKEN}:%d\n"
)


@cache
def boots() -> tuple[bytes, ...]:
    """Return the part of the log of each boot, in the order in which they were booted."""
    found = re.findall(rb"(?s).+?reboot: Restarting system\r?\n", (DATA / "serial.log").read_bytes())
    assert len(found) == 6
    return tuple(found)


def changed(line: bytes, change: Callable[[bytes], bytes], attempt: bytes = b"") -> bytes:
    """Return a line with another record, or of another attempt, and the sum that belongs to it."""
    head, record = line.rstrip().split(b" {", 1)
    _, token, boot, old, number, _ = head.split(b" ")
    summed = b" ".join([token, boot, attempt or old, number, b""])
    new = change(b"{" + record)
    return b"@kteardown %s%08x %s\n" % (summed, zlib.crc32(summed + new), new)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    folder = tmp_path / "runs" / "20261127-000000-freezer"
    shutil.copytree(DATA / "run", folder)
    (folder / "console").mkdir()
    return RunDir(folder)


def imported(folder: Path, *logs: bytes) -> str:
    """Import logs, and return what is said of them."""
    files = []
    for number, log in enumerate(logs):
        files.append(folder / f"serial-{number}.log")
        files[-1].write_bytes(log)
    done = CliRunner().invoke(app, ["import", *map(str, files)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def outcomes(run: RunDir) -> dict[int, str]:
    return {record.boot: record.outcome for record in run.records() if isinstance(record, BootEnd)}


def test_the_whole_log_gives_the_whole_run(run: RunDir, tmp_path: Path) -> None:
    said = imported(tmp_path, *boots())
    assert f"imported 6 boots into {run.name}, which has 6 of 6" in said
    assert outcomes(run) == dict.fromkeys(range(6), "ok")
    starts = [record for record in run.records() if isinstance(record, BootStart)]
    assert {start.acceleration for start in starts} == {METAL}
    assert run.environment()["sessions"][0]["machine"]["cpu"]["model"] == "QEMU TCG CPU version 2.5+"
    again = imported(tmp_path, *boots())
    assert "imported 0 boots" in again
    assert len(run.records()) == len({record.model_dump_json() for record in run.records()})


def test_the_analysis_is_that_of_a_run_with_these_records(run: RunDir, tmp_path: Path) -> None:
    imported(tmp_path, *boots())
    other = RunDir(tmp_path / "runs" / "20261127-000001-freezer")
    shutil.copytree(DATA / "run", other.path)
    with open_writer(other, run.environment()["sessions"][0]["machine"]) as log:
        for text, planned in zip(boots(), load(other).plan.boots, strict=True):
            lines = re.findall(rb" (\{.*\})\n", text)
            sent = next(number for number, line in enumerate(lines) if b'"sent"' in line)
            log.append(
                BootStart(
                    kernel=planned.kernel,
                    block=planned.block,
                    seed=planned.seed,
                    acceleration=METAL,
                    host_load=0,
                    started_at="2026-11-27T00:00:00+00:00",
                ),
                *(parse(line) for line in lines[1:sent]),
                BootEnd(outcome="ok", duration_s=1, first_record_s=None, command=[], host_load=0),
                boot=planned.index,
                attempt=0,
            )
    one, two = (conclude(load(each))[0] for each in (run, other))
    assert one.model_dump_json(exclude={"machine"}) == two.model_dump_json(exclude={"machine"})


@given(st.data())
def test_a_line_of_which_one_copy_is_damaged_is_there(data: st.DataObject) -> None:
    text = boots()[0]
    middle = text.index(b'{"type":"sent"')
    first, second = text[:middle], text[middle:]
    positions = data.draw(st.lists(st.integers(0, len(first) - 1), min_size=1, max_size=30))
    damaged = bytearray(first)
    for position in sorted(set(positions), reverse=True):
        if data.draw(st.booleans()):
            del damaged[position]
        else:
            damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    whole, hurt = (boots_in(part) for part in (text, bytes(damaged) + second))
    (boot,) = [boot for boot in hurt if boot.boot == 0 and boot.lines]
    missing = {0: whole[0].lines[0]} if 0 not in boot.lines else {}  # The only line that is sent once.
    assert {**boot.lines, **missing} == whole[0].lines


def boots_in(text: bytes) -> Sequence[LoggedBoot]:
    """Return the boots that are found in ``text``."""
    consoles = Consoles()
    for line in text.splitlines():
        consoles.add(line)
    return list(consoles.boots.values())


def test_two_machines_in_one_log(run: RunDir, tmp_path: Path) -> None:
    one, two = (text.splitlines(keepends=True) for text in boots()[:2])
    mixed = b"".join(line for pair in zip(one, two, strict=False) for line in pair)
    rest = b"".join(one[len(two) :] + two[len(one) :])
    assert "which has 6 of 6" in imported(tmp_path, mixed + rest, *boots()[2:])


def test_a_block_with_a_boot_missing_is_named_and_not_used(run: RunDir, tmp_path: Path) -> None:
    lost = re.sub(rb"(?m)^@kteardown \S+ 4 \S+ 7 .*$", b"", boots()[4])
    said = imported(tmp_path, *boots()[:4], lost, boots()[5])
    assert "boot 4 is not used: " in said
    assert "block 1 is not used: boot 4 is missing" in said
    assert set(outcomes(run)) == {0, 1, 2}
    assert "which has 6 of 6" in imported(tmp_path, *boots()[3:])


def test_a_panic_is_the_outcome_of_its_boot(run: RunDir, tmp_path: Path) -> None:
    first = next(line for line in boots()[1].splitlines() if b'"machine"' in line)
    started = changed(first, lambda record: record, attempt=b"0123abcd")
    said = imported(tmp_path, boots()[0], started + PANIC.encode() % 1, *boots()[1:])
    assert "boot 1 was booted more than once: the first time counts" in said
    assert outcomes(run) == {**dict.fromkeys(range(6), "ok"), 1: "panic"}


def test_a_kernel_that_panics_before_its_first_process_is_known_by_its_log(
    run: RunDir, tmp_path: Path
) -> None:
    imported(tmp_path, boots()[0], PANIC.encode() % 1, *boots()[2:])
    assert outcomes(run)[1] == "panic"


def test_boots_out_of_order_are_said(run: RunDir, tmp_path: Path) -> None:
    said = imported(tmp_path, *boots()[3:], *boots()[:3])
    assert "not in the order of the plan, but 3, 4, 5, 0, 1, 2" in said


def test_another_kernel_than_planned_is_refused(run: RunDir, tmp_path: Path) -> None:
    first = next(line for line in boots()[1].splitlines() if b'"machine"' in line)
    other = changed(first, lambda record: re.sub(rb'"build":"\w', b'"build":"0', record))
    with pytest.raises(InputError, match="should have run"):
        imported(tmp_path, boots()[0], boots()[1].replace(first + b"\n", other), *boots()[2:])
    assert outcomes(run) == {}


def test_two_machines_in_one_run_are_refused(run: RunDir, tmp_path: Path) -> None:
    first = next(line for line in boots()[1].splitlines() if b'"machine"' in line)
    other = changed(first, lambda record: record.replace(b"2.5+", b"9\\u001b[2J"))
    with pytest.raises(InputError) as refused:
        imported(tmp_path, boots()[0], boots()[1].replace(first + b"\n", other), *boots()[2:])
    assert "machines that differ" in refused.value.message
    assert "\x1b" not in refused.value.message


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda record: record.replace(TOKEN.encode() + b":0", TOKEN.encode() + b":9"), "command line"),
        (lambda record: record.replace(b'"trial":0', b'"trial":7'), "its trials are not those of its plan"),
        (lambda record: record.replace(b'"status":0', b'"status":139'), "ended with status 139"),
        (lambda record: record.replace(b'"type":"bye"', b'"type":"by"'), "a line is not a record"),
        (
            lambda record: re.sub(rb'"cpus_possible":\d+', b'"cpus_possible":0', record),
            "possible CPUs: the machine has 0",
        ),
    ],
)
def test_a_forged_or_failed_boot_is_not_used(change: Callable[[bytes], bytes], why: str, run: RunDir) -> None:
    lines = [
        changed(line, change) if line.startswith(b"@kteardown ") else line for line in boots()[0].splitlines()
    ]
    (boot,) = boots_in(b"\n".join(line.rstrip() for line in lines))
    assert why in why_unusable(boot, load(run).plan)


def test_a_log_of_any_size_is_read_in_parts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stream:
        stream.write(b"x" * (1 << 22) + b"\0\xff\n" + b"@kteardown " * 20000 + b"\n" + boots()[0])
    found = read_logs([log])
    assert [len(boot.lines) for boot in found.boots.values() if boot.lines] == [
        len(boots_in(boots()[0])[0].lines)
    ]
    assert found.damaged > 0
    kept = [line for boot in found.boots.values() for line in boot.console]
    assert kept and max(map(len, kept)) == 2000


def test_what_a_log_may_hold_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_records, "_MOST_BYTES", 1000)
    (tmp_path / "log").write_bytes(boots()[0])
    with pytest.raises(InputError, match="MB of boots"):
        read_logs([tmp_path / "log"])


def test_only_what_is_kept_of_a_log_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_records, "_MOST_BYTES", 50_000)
    monkeypatch.setattr(console_records, "_CONSOLE_LINES", 100)
    (tmp_path / "noise").write_bytes((b"x" * 99 + b"\n") * 10_000)
    assert read_logs([tmp_path / "noise"] * 20).bytes == 100 * 99
    named = b"kteardown.boot=%s:%d\n"
    claimed = [named % (TOKEN.encode(), number) + (b"x" * 99 + b"\n") * 200 for number in range(6)]
    (tmp_path / "log").write_bytes(b"".join(claimed))
    with pytest.raises(InputError, match="MB of boots"):
        read_logs([tmp_path / "log"])


def test_a_bundle_that_is_not_complete_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_snapshot: object, target: Path, *_: object) -> None:
        (target / "boots").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(bundle, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bundle.export(load(RunDir(DATA / "run")), tmp_path / "new", "ttyS0", SilentReporter())
    assert not (tmp_path / "new").exists()
    (tmp_path / "there").mkdir()
    with pytest.raises(LabError, match="cannot create"):
        bundle.export(load(RunDir(DATA / "run")), tmp_path / "there", "ttyS0", SilentReporter())
    assert (tmp_path / "there").is_dir()


@pytest.mark.parametrize("text", [b"", b"hello\n", boots()[0].replace(TOKEN.encode(), b"0" * 16)])
def test_a_log_without_a_boot_of_a_known_bundle_is_refused(text: bytes, run: RunDir, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no boot of a bundle|of no run of this host"):
        imported(tmp_path, text)


def test_an_exported_run_is_not_resumed_here(run: RunDir) -> None:
    with pytest.raises(InputError, match="are exported"):
        CliRunner().invoke(app, ["run", "--resume", "last"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--clock", "instructions"], "no instruction clock"),
        (["--clock", "both"], "no instruction clock"),
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
    own.write_text(text.replace("[design]", "[machine]\nkernel_args = ['quiet', 'x; reboot']\n[design]", 1))
    with pytest.raises(InputError, match="'x; reboot' is not plain text for a boot loader"):
        CliRunner().invoke(
            app, ["export-boot", str(own), "--to", str(tmp_path / "b")], catch_exceptions=False
        )
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("script", ["run/bundle_files/kexec.sh.j2", "vm/metal_files/machine.sh"])
def test_the_scripts_for_machines_are_shell_scripts(script: str) -> None:
    file = data_dir("src") / "kteardown" / script
    assert subprocess.run(["sh", "-n", file], check=False).returncode == 0
