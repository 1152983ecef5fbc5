"""The agent's workload ``script`` in guests: what it runs, what it reports, and that this is exact.

The scripts here are one C program, so that nothing of the host is in the guest.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.model.record import Alive, BootEnd, Record, Sample, TrialEnd, parse
from kteardown.model.script_records import Delta, OutputLine, ScriptEnd
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from kteardown.vm.agent import build_agent
from kteardown.vm.initramfs import archive, file, folder, pack
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine

pytestmark = pytest.mark.vm

RUN = "argument ./guest_script\nargument "
ENDS = {
    "terminal": (RUN + "terminal\n", "ok", "exit", 0),
    "interrupt": (RUN + "interrupt\nallow signal 2\n", "ok", "signal", 2),
    "uncaught": (RUN + "interrupt\n", "void", "signal", 2),
    "orphan": (RUN + "orphan\nallow exit 3\n", "ok", "exit", 3),
    "busy": (RUN + "busy\nlimit_ms 100\n", "void", "limit", 0),
    "slow": (RUN + "slow\nlimit_ms 60000\n", "ok", "exit", 0),
    "absent": ("argument nonesuch\nenvironment PATH=/bin\n", "void", "exit", 127),
}
"""By name: the directives, the status of the trial, and how the script ended."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    binary = tmp_path_factory.mktemp("script") / "guest_script"
    source = Path(__file__).with_name("guest_script.c")
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-static", "-o", binary, source], check=True)
    return binary.read_bytes()


def boot(
    work: Path, image: Path, program: bytes, scripts: Mapping[str, str], trials: list[str]
) -> list[bytes]:
    """The lines of the records of a boot in which each of ``trials``, the end of its line, is
    run."""
    records, end = boot_to_end(work, image, program, scripts, trials)
    assert end.outcome == "ok", end
    return records


def boot_to_end(
    work: Path, image: Path, program: bytes, scripts: Mapping[str, str], trials: list[str]
) -> tuple[list[bytes], BootEnd]:
    work.mkdir()
    agent = build_agent(
        "x86_64",
        cache=cache_dir(),
        reporter=SilentReporter(),
        own=[data_dir("agent") / name for name in ("script", "waits")],
    )
    lines = [f"trial {10 + i} script {trial}\n" for i, trial in enumerate(trials)]
    initramfs = pack(
        Entry(work) / "initramfs", agent=agent, plan="kteardown-plan 1\nseed 7\n" + "".join(lines)
    )
    root = [folder("files"), file("files/guest_script", program, 0o755), folder("script")]
    root += [file(f"script/{name}", text.encode()) for name, text in scripts.items()]
    with initramfs.open("ab") as end:
        end.write(archive(root))
    job = BootJob(
        image=image,
        initramfs=initramfs,
        arch="x86_64",
        acceleration="icount",
        cpus=1,
        memory_mb=256,
        seed=7,
        console=Entry(work) / "console",
        silence_s=600,
    )
    records: list[bytes] = []
    end_of_boot = QemuMachine().boot(job, records.append)
    return records, end_of_boot


def of_trial(records: list[Record], trial: int) -> list[Record]:
    return [record for record in records if getattr(record, "trial", None) == trial]


def text_of(records: list[Record], source: str) -> list[str]:
    return [one.text for one in records if isinstance(one, OutputLine) and one.source == source]


def test_every_end_of_a_script_is_reported(
    tmp_path: Path, base_image: Path, program: bytes
) -> None:
    scripts = {name: directives for name, (directives, *_) in ENDS.items()}
    trials = [f"0 1 script={name} environment=-" for name in ENDS]
    raw = [
        boot(tmp_path / name, base_image, program, scripts, trials) for name in ("first", "second")
    ]
    assert raw[0] == raw[1]
    records = [parse(line) for line in raw[0]]
    found = {name: of_trial(records, 10 + i) for i, name in enumerate(ENDS)}
    for name, (_, status, how, code) in ENDS.items():
        (end,) = [one for one in found[name] if isinstance(one, TrialEnd)]
        (ended,) = [one for one in found[name] if isinstance(one, ScriptEnd)]
        assert (end.status, ended.how, ended.code, ended.dropped) == (status, how, code, 0), (
            name,
            end,
        )
    assert text_of(found["terminal"], "script") == [
        "111 /files",
        "1",
        'quote " and \\ and \x01 and \N{REPLACEMENT CHARACTER}',
        "no newline",
    ]
    assert "from the script" in text_of(found["terminal"], "log")
    assert text_of(found["interrupt"], "script") == ["kt-interrupt"]
    assert text_of(found["orphan"], "script") == ["late"]
    assert [one.detail for one in found["slow"] if isinstance(one, Alive)] == [
        f"{seconds} s of 60 s; its last line: waiting" for seconds in (5, 10)
    ]
    assert text_of(found["absent"], "script") == ["exec nonesuch: No such file or directory"]
    values = {
        (name, one.metric): one.value
        for name in ENDS
        for one in found[name]
        if isinstance(one, Sample)
    }
    assert ("busy", "all_gone_ns") not in values
    # The orphan sleeps for 50 ms, of which the script itself sees nothing.
    assert values["orphan", "all_gone_ns"] - values["orphan", "whole_ns"] > 40_000_000
    assert 0 < values["orphan", "cpu_us"] * 1000 < values["orphan", "all_gone_ns"]
    assert {one.file for one in found["busy"] if isinstance(one, Delta)} >= {"meminfo", "cpu.stat"}


def test_the_agent_costs_the_freezer_nothing(
    tmp_path: Path, base_image: Path, program: bytes
) -> None:
    """A PID 1 that sleeps in poll() needs a second pass over all tasks, so twice the
    instructions."""
    scripts = {"freeze": RUN + "freeze\n"}
    trials = [f"1 2 script=freeze environment=N={zombies}" for zombies in (500, 1500)]
    records = [
        parse(line) for line in boot(tmp_path / "boot", base_image, program, scripts, trials)
    ]
    took = []
    for trial in (10, 11):
        log = [
            one
            for one in of_trial(records, trial)
            if isinstance(one, OutputLine) and one.source == "log"
        ]
        assert text_of(of_trial(records, trial), "script") == ["frozen"] * 3
        begins = [one.at_ns for one in log if one.text == "Freezing user space processes"]
        ends = [
            one.at_ns
            for one in log
            if one.text.startswith("Freezing user space processes completed")
        ]
        assert len(begins) == len(ends) == 3
        took.append(ends[-1] - begins[-1])
    assert (
        50 <= (took[1] - took[0]) / 1000 <= 90
    )  # The built-in workload: 68 instructions a zombie.


def test_a_script_that_writes_what_reads_like_a_panic_goes_on(
    tmp_path: Path, base_image: Path, program: bytes
) -> None:
    scripts, trials = {"forge": RUN + "forge\n"}, ["0 1 script=forge environment=-"]
    raw, end = boot_to_end(tmp_path / "boot", base_image, program, scripts, trials)
    assert end.outcome == "ok", end
    records = of_trial([parse(line) for line in raw], 10)
    log = [one.facility for one in records if isinstance(one, OutputLine) and one.source == "log"]
    assert len(log) == 5 and 0 not in log
    # Only what it wrote to the console itself is taken for the kernel's.
    assert [(one.kind, one.trials) for one in end.problems] == [("panic", (10,))]
