"""Exported boots and the logs of their machines: six boots of an emulated machine, recorded from
its line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kteardown.analysis.conclude import conclude
from kteardown.cli import app
from kteardown.errors import InputError, KteardownError, LabError
from kteardown.model.record import BootEnd, BootStart, Sample, parse
from kteardown.paths import data_dir
from kteardown.progress import SilentReporter
from kteardown.rundir.counting import METAL
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown_metal import bundle, console_records
from kteardown_metal.console_records import (
    Consoles,
    LoggedBoot,
    key_of_boot,
    mac_of,
    named,
    read_logs,
)
from kteardown_metal.verbs import why_unusable

DATA = Path(__file__).parents[2] / "data" / "bundle"
TOKEN = (DATA / "run" / "on").read_text().strip().removeprefix("exported:")
SECRET = bytes.fromhex((DATA / "run" / bundle.SECRET).read_text())


def key_of(token: str, number: int) -> bytes | None:
    return key_of_boot(SECRET, token, number) if token == TOKEN else None


def panic_of(number: int) -> bytes:
    """Return what a kernel prints that panics, with the log that it then prints again."""
    name = named(TOKEN, number, key_of_boot(SECRET, TOKEN, number))
    return (
        "[   12.000000] Kernel panic - not syncing: Fatal exception\n"
        f"[   12.000001] Command line: console=ttyS0 kteardown.boot={name}\n"
    ).encode()


@cache
def boots() -> tuple[bytes, ...]:
    """Return the part of the log of each boot, in the order in which they were booted."""
    found = re.findall(
        rb"(?s).+?reboot: Restarting system\r?\n", (DATA / "serial.log").read_bytes()
    )
    assert len(found) == 6
    return tuple(found)


def changed(line: bytes, change: Callable[[bytes], bytes], attempt: bytes = b"") -> bytes:
    """Return a line with another record, or of another attempt, signed with the key of its boot."""
    head, record = line.rstrip().split(b" {", 1)
    boot, old, number = head.split(b" ")[2:5]
    return signed(int(boot), attempt or old, number, change(b"{" + record))


def signed(boot: int, attempt: bytes, number: bytes, record: bytes, key: bytes = b"") -> bytes:
    text = b"%s %d %s %s " % (TOKEN.encode(), boot, attempt, number)
    mac = mac_of(key or key_of_boot(SECRET, TOKEN, boot), text + record)
    return b"@kteardown %s%s %s\n" % (text, mac, record)


def again(text: bytes, change: Callable[[bytes], bytes], attempt: bytes = b"") -> bytes:
    """Return the log of a boot with changed records."""
    lines = text.splitlines(keepends=True)
    return b"".join(
        changed(line, change, attempt) if line.startswith(b"@kteardown ") else line
        for line in lines
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    folder = tmp_path / "runs" / "20261127-000000-freezer"
    shutil.copytree(DATA / "run", folder)
    (folder / "console").mkdir()
    return RunDir(folder)


def imported(folder: Path, *logs: bytes, chosen: tuple[int, int] | None = None) -> str:
    """Import logs, and return what is said of them; ``chosen``: a boot, and the number of its
    log."""
    files = []
    for number, log in enumerate(logs):
        files.append(folder / f"serial-{number}.log")
        files[-1].write_bytes(log)
    asked = ["--boot", f"{chosen[0]}={files[chosen[1]]}"] if chosen else []
    done = CliRunner().invoke(app, ["import", *map(str, files), *asked], catch_exceptions=False)
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
    assert (
        run.environment()["sessions"][0]["machine"]["cpu"]["model"] == "QEMU TCG CPU version 2.5+"
    )
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
    missing = (
        {0: whole[0].lines[0]} if 0 not in boot.lines else {}
    )  # The only line that is sent once.
    assert {**boot.lines, **missing} == whole[0].lines


def boots_in(text: bytes) -> Sequence[LoggedBoot]:
    """Return the boots that are found in ``text``."""
    consoles = Consoles(key_of)
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
    panicked = started + panic_of(1)
    said = imported(tmp_path, boots()[0], panicked, *boots()[1:])
    assert "boot 1 is void: the logs have different records of it" in said
    assert outcomes(run) == dict.fromkeys((3, 4, 5), "ok")
    imported(tmp_path, boots()[0], panicked, *boots()[2:3])
    assert outcomes(run) == {**dict.fromkeys(range(6), "ok"), 1: "panic"}


def test_a_kernel_that_panics_before_its_first_process_is_known_by_its_log(
    run: RunDir, tmp_path: Path
) -> None:
    imported(tmp_path, boots()[0], panic_of(1), *boots()[2:])
    assert outcomes(run)[1] == "panic"


def test_no_kernel_panics_for_another_one(run: RunDir, tmp_path: Path) -> None:
    """Boot 1 knows its own key, and prints after its end, and with the names of others."""
    theirs = b"BUG: KASAN: use-after-free\n" + panic_of(1).replace(
        TOKEN.encode() + b":1:", TOKEN.encode() + b":2:"
    )
    imported(tmp_path, boots()[0], boots()[1] + theirs + boots()[2], *boots()[3:])
    assert outcomes(run) == dict.fromkeys(range(6), "ok")
    ends = [record for record in run.records() if isinstance(record, BootEnd)]
    assert not [problem for end in ends for problem in end.problems]


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
        (lambda record: record.replace(b'"status":0', b'"status":139'), "ended with status 139"),
        (
            lambda record: re.sub(rb'"build":"\w+",', b"", record),
            "its kernel does not say its build ID",
        ),
        (
            lambda record: re.sub(rb'"cpus_possible":\d+', b'"cpus_possible":0', record),
            "possible CPUs: the machine has 0",
        ),
    ],
)
def test_a_failed_boot_is_not_used(change: Callable[[bytes], bytes], why: str, run: RunDir) -> None:
    (boot,) = boots_in(again(boots()[0], change))
    assert why in why_unusable(boot, load(run).plan)


def test_a_log_of_any_size_is_read_in_parts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stream:
        first, rest = re.split(rb"(?<=\}\}\n)", boots()[0], maxsplit=1)
        stream.write(first + b"x" * (1 << 22) + b"\0\xff\n" + b"@kteardown " * 20000 + b"\n" + rest)
    found = read_logs([log], key_of)
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
        read_logs([tmp_path / "log"], key_of)


def test_only_what_is_kept_of_a_log_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_records, "_MOST_BYTES", 50_000)
    monkeypatch.setattr(console_records, "_CONSOLE_LINES", 100)
    (tmp_path / "noise").write_bytes((b"x" * 99 + b"\n") * 10_000)
    assert read_logs([tmp_path / "noise"] * 20, key_of).bytes == 100 * 99
    claimed = [panic_of(number) + (b"x" * 99 + b"\n") * 200 for number in range(6)]
    (tmp_path / "log").write_bytes(b"".join(claimed))
    with pytest.raises(InputError, match="MB of boots"):
        read_logs([tmp_path / "log"], key_of)


def test_a_bundle_that_is_not_complete_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_log_without_a_boot_of_a_known_bundle_is_refused(
    text: bytes, run: RunDir, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"no boot of a bundle|of no run of this host"):
        imported(tmp_path, text)


def test_a_bundle_of_an_earlier_version_is_to_be_exported_anew(run: RunDir, tmp_path: Path) -> None:
    (run.path / bundle.SECRET).unlink()
    with pytest.raises(InputError) as refused:
        imported(tmp_path, *boots())
    assert run.name in refused.value.hint
    assert "anew" in refused.value.hint


def forgeries(of: Sequence[int]) -> dict[str, bytes]:
    """Return what the kernel of boot 1 can print to speak for the boots ``of``, by how it does."""
    own_key, made = key_of_boot(SECRET, TOKEN, 1), {}
    records = {
        boot: [
            (n, re.sub(rb'"value":[\d.]+', b'"value":1', line))
            for n, line in boots_in(boots()[boot])[0].lines.items()
        ]
        for boot in of
    }
    ways: dict[str, Callable[[int, bytes, bytes], bytes]] = {
        "with its own key": lambda boot, n, line: signed(boot, b"0badc0de", n, line, own_key),
        "with an empty key": lambda boot, n, line: signed(boot, b"0badc0de", n, line, bytes(16)),
        "as its own": lambda boot, n, line: signed(1, b"0badc0de", n, line).replace(
            b" 1 ", b" %d " % boot, 1
        ),
        "without a signature": lambda boot, n, line: (
            b"@kteardown %s %d 0badc0de %s %s %s\n" % (TOKEN.encode(), boot, n, b"0" * 32, line)
        ),
        "as the earlier version": lambda boot, n, line: (
            b"@kteardown %s %d 0badc0de %s %08x %s\n" % (TOKEN.encode(), boot, n, 0, line)
        ),
    }
    for way, line_of in ways.items():
        made[way] = b"".join(
            line_of(boot, b"%d" % n, line) for boot in of for n, line in records[boot]
        )
    return made


@pytest.mark.parametrize("way", forgeries([2, 5]))
def test_no_kernel_forges_the_figures_of_another_one(way: str, run: RunDir, tmp_path: Path) -> None:
    """Boot 1 prints whole boots before they run: before its own records, between, and after
    them."""
    forged, own = forgeries([2, 5])[way], boots()[1]
    middle = own.index(b"\n", len(own) // 2) + 1
    said = imported(
        tmp_path, boots()[0], forged + own[:middle] + forged + own[middle:] + forged, *boots()[2:]
    )
    assert "which has 6 of 6" in said
    assert "are not signed with the key of their boot" in said
    values = [
        record for record in run.records() if isinstance(record, Sample) and record.value == 1
    ]
    assert not [record for record in values if record.boot in (2, 5)]
    assert "void" not in said


def test_a_boot_with_two_different_ends_is_void_and_its_log_can_be_chosen(
    run: RunDir, tmp_path: Path
) -> None:
    other = again(
        boots()[2], lambda record: re.sub(rb'"value":[\d.]+', b'"value":1', record), b"0badc0de"
    )
    said = imported(tmp_path, *boots(), other)
    assert said.index("boot 2 is void") < said.index("imported 3 boots")
    assert set(outcomes(run)) == {3, 4, 5}
    assert "imported 3 boots" in imported(tmp_path, *boots(), other, chosen=(2, 6))
    assert {r.value for r in run.records() if isinstance(r, Sample) and r.boot == 2} == {1}


def test_different_lines_of_one_boot_make_it_void(run: RunDir, tmp_path: Path) -> None:
    """The kernel itself has its key, and can say two things."""
    own = boots()[2]
    line = next(line for line in own.splitlines() if b'"sample"' in line)
    said = imported(
        tmp_path,
        *boots()[:2],
        changed(line, lambda r: re.sub(rb'"value":[\d.]+', b'"value":1', r)) + own,
    )
    assert "boot 2 is void" in said
    assert 2 not in outcomes(run)


def test_the_same_log_twice_counts_once(run: RunDir, tmp_path: Path) -> None:
    said = imported(tmp_path, *boots(), *boots())
    assert "which has 6 of 6" in said
    assert "void" not in said


@pytest.mark.parametrize("asked", ["2", "2=other.log", "x=serial-0.log", "-1=serial-0.log"])
def test_a_choice_that_names_no_log_is_refused(asked: str, run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "serial-0.log").write_bytes(boots()[0])
    with pytest.raises(InputError, match="expected the number of a boot and one of the logs"):
        CliRunner().invoke(
            app, ["import", str(tmp_path / "serial-0.log"), "--boot", asked], catch_exceptions=False
        )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda record: record.replace(b'"trial":0', b'"trial":7'), "zombies begins now"),
        (lambda record: record.replace(b'"type":"bye"', b'"type":"by"'), "not a record"),
        (
            lambda record: record.replace(b'"freeze_user_ns"', b'"free_ns"'),
            "declares no such metric",
        ),
    ],
)
def test_a_forged_record_of_a_machine_is_a_fault_of_its_boot(
    change: Callable[[bytes], bytes], why: str, run: RunDir, tmp_path: Path
) -> None:
    imported(tmp_path, again(boots()[0], change), *boots()[1:])
    (end,) = [
        record for record in run.records() if isinstance(record, BootEnd) and record.boot == 0
    ]
    assert (end.outcome, end.forged) == ("agent-error", True)
    assert end.detail.startswith("forged record: ")
    assert why in end.detail


def test_no_file_of_a_bundle_has_the_key_of_another_boot(tmp_path: Path) -> None:
    secret = bytes(32)
    keys = {key_of_boot(secret, TOKEN, number) for number in range(100)} | {
        key_of_boot(secret, "0" * 16, 0)
    }
    assert len(keys) == 101
    assert secret not in keys


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
    own.write_text(
        text.replace("[design]", "[machine]\nkernel_args = ['quiet', 'x; reboot']\n[design]", 1)
    )
    with pytest.raises(InputError, match="'x; reboot' is not plain text for a boot loader"):
        CliRunner().invoke(
            app, ["export-boot", str(own), "--to", str(tmp_path / "b")], catch_exceptions=False
        )
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("script", ["bundle_files/kexec.sh.j2", "metal_files/machine.sh"])
def test_the_scripts_for_machines_are_shell_scripts(script: str) -> None:
    file = Path(bundle.__file__).parent / script
    assert subprocess.run(["sh", "-n", file], check=False).returncode == 0
