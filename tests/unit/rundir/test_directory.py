"""A run directory under crashes, a second process, corruption and a full disk."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.door import LARGE
from kteardown.errors import InputError, LabError
from kteardown.model.record import BootEnd, BootStart, Outcome, Sample
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer

NOW = datetime(2026, 3, 1, 12, 30, 59)


def start(kernel: str = "base") -> BootStart:
    return BootStart(
        kernel=kernel,
        block=0,
        seed=7,
        acceleration="icount",
        host_load=0.5,
        started_at="2026-03-01T12:30:59",
    )


def end(outcome: Outcome = "ok") -> BootEnd:
    return BootEnd(outcome=outcome, duration_s=2.5, first_record_s=1.0, command=[], host_load=0.5)


def sample(value: float = 1) -> Sample:
    return Sample(trial=0, repetition=0, metric="freeze_user_ns", value=value)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path, "freezer", now=NOW)


def test_names_have_time_and_experiment_and_are_unique(tmp_path: Path) -> None:
    names = [RunDir.create(tmp_path, "freezer", now=NOW).name for _ in range(3)]
    assert names == [
        "20260301-123059-freezer",
        "20260301-123059-freezer-2",
        "20260301-123059-freezer-3",
    ]


def test_a_folder_of_runs_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(LabError, match="runs"):
        RunDir.create(tmp_path / "runs", "freezer", now=NOW)


def test_a_folder_without_an_experiment_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no experiment\.json"):
        RunDir.open(tmp_path)


def test_appended_records_are_read_with_boot_and_attempt(run: RunDir) -> None:
    with open_writer(run) as log:
        log.append(start(), boot=3, attempt=1)
        log.append(sample(12345678901234567), boot=3, attempt=1)
        log.append(end(), boot=3, attempt=1)
    (boot,) = run.boots()
    assert (boot.boot, boot.attempt, boot.start.kernel, boot.end.outcome) == (3, 1, "base", "ok")
    (record,) = boot.records
    assert isinstance(record, Sample)
    assert record.value == 12345678901234567


def test_every_record_is_on_the_disk_before_the_next(run: RunDir) -> None:
    with open_writer(run) as log:
        for count in range(1, 4):
            log.append(sample(), boot=0, attempt=0)
            assert run.records_file.path.read_bytes().count(b"\n") == count


def test_the_last_finished_attempt_counts(run: RunDir) -> None:
    with open_writer(run) as log:
        log.append(start(), boot=0, attempt=0)
        log.append(sample(1), boot=0, attempt=0)
        log.append(end("infrastructure-error"), boot=0, attempt=0)
        assert log.finished() == {}
        assert log.next_attempt(0) == 1
        log.append(start(), boot=0, attempt=1)
        log.append(start(), boot=1, attempt=0)
        log.append(sample(2), boot=0, attempt=1)
        log.append(end(), boot=0, attempt=1)
        log.append(start(), boot=0, attempt=2)
        log.append(sample(3), boot=0, attempt=2)
    with open_writer(run) as log:
        assert list(log.finished()) == [0]
        assert [log.next_attempt(boot) for boot in (0, 1, 2)] == [3, 1, 0]
    (boot,) = run.boots()
    assert (boot.boot, boot.attempt) == (0, 1)
    assert [record.value for record in boot.records if isinstance(record, Sample)] == [2]


@given(cut=st.integers(min_value=0))
def test_a_run_cut_at_any_byte_can_be_read_and_continued(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    run = RunDir.create(tmp_path_factory.mktemp("runs"), "freezer", now=NOW)
    with open_writer(run) as log:
        for value in range(4):
            log.append(sample(value), boot=0, attempt=0)
    whole = run.records_file.path.read_bytes()
    cut %= len(whole) + 1
    run.records_file.path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    assert len(run.records()) == kept
    with open_writer(run) as log:
        log.append(sample(99), boot=0, attempt=0)
    values = [record.value for record in run.records() if isinstance(record, Sample)]
    assert values == [*range(kept), 99]


@pytest.mark.parametrize(
    "bad", [b"{broken", b"", b'{"type":"sample"}', b'{"type":"unknown"}', b"\x00\xff"]
)
def test_the_error_of_a_corrupt_line_names_the_line(run: RunDir, bad: bytes) -> None:
    with open_writer(run) as log:
        for _ in range(3):
            log.append(sample(), boot=0, attempt=0)
    lines = run.records_file.path.read_bytes().split(b"\n")
    lines[1] = bad
    run.records_file.path.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=r"records\.ndjson, line 2: not a record") as caught:
        run.records()
    assert "first 1 lines" in caught.value.hint
    with pytest.raises(InputError, match="line 2"), open_writer(run):
        pass


def test_a_second_process_is_refused_and_the_first_continues(run: RunDir) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom kteardown.errors import InputError\n"
        "from kteardown.rundir.directory import RunDir\nfrom kteardown.rundir.writer import "
        "open_writer\n"
        "try:\n    with open_writer(RunDir(Path(sys.argv[1]))): print('in')\n"
        "except InputError as error: print(error.message)\n"
    )

    def second() -> str:
        return subprocess.run(
            [sys.executable, "-P", "-c", script, str(run.path)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    with open_writer(run) as log:
        log.append(sample(), boot=0, attempt=0)
        assert second() == f"{run.path}: another kteardown is writing to this run"
        log.append(sample(), boot=0, attempt=0)
    assert second() == "in"
    assert len(run.records()) == 2


def full(fd: int) -> None:
    """Fail as fsync(2) of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_error_of_a_full_disk_names_it_and_how_to_resume(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with open_writer(run) as log, pytest.raises(LabError, match=r"the disk is full \(/") as caught:
        log.append(sample(), boot=0, attempt=0)
    assert "--resume" in caught.value.hint


def test_no_more_is_written_than_can_be_read_again(run: RunDir) -> None:
    with open_writer(run) as log:
        log.append(sample(), boot=0, attempt=0)
        log._end = LARGE
        with pytest.raises(LabError, match="256 MB"):
            log.append(sample(), boot=0, attempt=0)
    assert len(run.records()) == 1


def test_a_file_is_replaced_atomically(run: RunDir) -> None:
    run.save(run.result_file, "one")
    run.save(run.result_file, "two")
    assert run.result_file.path.read_text() == "two"
    assert not list(run.path.glob("*.partial"))


def test_a_failed_save_keeps_the_old_file(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    run.save(run.result_file, "one")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LabError, match="disk is full"):
        run.save(run.result_file, "x" * 10)
    assert run.result_file.path.read_text() == "one"


def test_a_file_in_the_way_of_a_folder_is_named(run: RunDir, tmp_path: Path) -> None:
    (run.path / "config").write_text("")
    (tmp_path / "config").write_text("CONFIG_A=y\n")
    with pytest.raises(LabError, match=r"freezer/config: cannot be written: "):
        run.copy(tmp_path / "config", run.folder / "config" / "base.config")
    with pytest.raises(LabError, match=r"config/result\.json: cannot be written: "):
        run.save(run.folder / "config" / "result.json", "{}")
    with pytest.raises(LabError, match=r"nowhere: cannot be read: "):
        run.copy(tmp_path / "nowhere", run.result_file)


def test_a_file_that_cannot_be_removed_is_named(run: RunDir) -> None:
    left = run.path / "result.json.1.partial"
    left.mkdir()
    with pytest.raises(LabError, match=left.name), open_writer(run):
        pass
    left.rmdir()
    with open_writer(run):  # The lock is free again.
        pass


def test_a_new_run_has_no_records(run: RunDir) -> None:
    assert run.records() == []
    assert run.boots() == []
