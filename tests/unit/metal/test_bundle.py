"""Exported boots and the logs of their machines: six boots of an emulated machine, recorded from
its line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.analysis.conclude import conclude
from kteardown.cli import app
from kteardown.errors import InputError, LabError
from kteardown.model.record import BootEnd, BootStart, Sample, parse
from kteardown.progress import SilentReporter
from kteardown.rundir.counting import METAL
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown_metal import bundle
from kteardown_metal.console_records import key_of_boot
from kteardown_metal.verbs import why_unusable
from unit.metal.logs import (
    DATA,
    SECRET,
    TOKEN,
    again,
    boots,
    boots_in,
    changed,
    imported,
    outcomes,
    panic_of,
    recorded_run,
    signed,
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    return recorded_run(tmp_path, monkeypatch)


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


def test_two_machines_in_one_log(run: RunDir, tmp_path: Path) -> None:
    one, two = (text.splitlines(keepends=True) for text in boots()[:2])
    mixed = b"".join(line for pair in zip(one, two, strict=False) for line in pair)
    rest = b"".join(one[len(two) :] + two[len(one) :])
    assert "which has 6 of 6" in imported(tmp_path, mixed + rest, *boots()[2:])


def test_a_block_with_a_boot_missing_is_named_and_not_used(run: RunDir, tmp_path: Path) -> None:
    lost = re.sub(rb"(?m)^@kteardown \S+ 4 \S+ 7 .*$", b"", boots()[4])
    said = imported(tmp_path, *boots()[:4], lost, boots()[5])
    assert "boot 4 is not used: " in said
    assert "block 1 is not used: these boots are missing: 4" in said
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
            "its kernel does not report a build ID",
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
    with pytest.raises(InputError, match=r"no boot of a bundle|no run with the keys"):
        imported(tmp_path, text)


def test_a_bundle_of_an_earlier_version_is_to_be_exported_anew(run: RunDir, tmp_path: Path) -> None:
    (run.path / bundle.SECRET).unlink()
    with pytest.raises(InputError) as refused:
        imported(tmp_path, *boots())
    assert run.name in refused.value.hint
    assert "export them again" in refused.value.hint


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


@pytest.mark.parametrize("script", ["bundle_files/kexec.sh.j2", "metal_files/machine.sh"])
def test_the_scripts_for_machines_are_shell_scripts(script: str) -> None:
    file = Path(bundle.__file__).parent / script
    assert subprocess.run(["sh", "-n", file], check=False).returncode == 0
