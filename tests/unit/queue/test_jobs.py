"""The queue with real processes: `kteardown try` waits for a lock that a test holds, or ends at
once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from filelock import FileLock

from kteardown.errors import InputError
from kteardown.patches.posted import read_series
from kteardown.progress import SilentReporter
from kteardown.queue import jobs
from kteardown.queue.secret import is_sealed, sealed

MAIL = (Path(__file__).parents[2] / "data/mail/quoted-printable.eml").read_bytes()
NO_PATCH = (Path(__file__).parents[2] / "data/mail/no-patch.eml").read_bytes()
PATIENCE_S = 300


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a queue, with a cache of its own."""
    for name in ("CACHE", "QUEUE", "RUNS"):
        monkeypatch.setenv(f"KTEARDOWN_{name}", str(tmp_path / name.lower()))
    (tmp_path / "queue").mkdir()
    return tmp_path / "queue"


@contextmanager
def without_end(folder: Path) -> Iterator[jobs.QueuedJob]:
    """Yield a job that does not end while the block runs: its patches are locked in the cache."""
    cache = folder.parent / "cache"
    mail = folder.parent / "mail.eml"
    mail.write_bytes(MAIL)
    patches = read_series(str(mail), cache_dir=cache, reporter=SilentReporter()).folder.parent
    with FileLock(patches.parent / ".locks" / f"{patches.name}.lock"):
        yield jobs.add(folder, "locked", ["mail"], [], MAIL)


def until(state: str, job: jobs.QueuedJob) -> None:
    end = time.monotonic() + PATIENCE_S
    while job.state != state:
        assert time.monotonic() < end, f"{job.state}: {job.text('log')}"
        time.sleep(0.05)


def worker() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "kteardown", "queue", "--run"], stdout=subprocess.PIPE
    )


def test_an_id_is_too_long_for_two_series_with_one(folder: Path) -> None:
    job = jobs.add(folder, "one", ["mail"], [], MAIL)
    assert len(job.id) == 32
    assert jobs.named(folder, job.id[: jobs.SHOWN_DIGITS]).id == job.id


def test_what_is_added_by_several_at_once_is_one_job(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda _: jobs.add(folder, "one", ["mail"], ["--full"], MAIL), range(32))
        )
    assert len({job.id for job in found}) == 1
    assert [path.name for path in folder.iterdir()] == [found[0].id]
    others = {
        jobs.add(folder, "one", ["mail"], [], MAIL).id,
        jobs.add(folder, "one", ["mail"], [], b"x").id,
    }
    assert len(others - {found[0].id}) == 2


def test_two_processes_try_each_job_once(folder: Path) -> None:
    for number in range(3):
        jobs.add(folder, str(number), ["mail"], [], NO_PATCH + b"\n" * number)
    said = [process.communicate(timeout=PATIENCE_S)[0] for process in (worker(), worker())]
    assert sum(int(text.split()[0]) for text in said) == 3
    for job in jobs.jobs(folder):
        assert job.ended is not None and job.ended.exit_code == 2, job.text("log")
        assert "contains no patch" in job.text("log")
        assert '"attempt":1' in (job.folder / "started.json").read_text()


def test_a_job_goes_on_when_the_process_of_the_queue_is_killed_and_begins_again_when_its_own_is(
    folder: Path,
) -> None:
    with without_end(folder) as job:
        for attempt in (1, 2):
            process = worker()
            until("running", job)
            process.kill()
            process.wait()
            until("running", job)
            assert jobs.work(folder, print) == 0  # The job holds the lock.
            own = job.process()
            assert own is not None
            own.kill()
            own.wait()
            until("waiting", job)
            assert f'"attempt":{attempt}' in (job.folder / "started.json").read_text()
        jobs.work(folder, print)
    assert job.ended is not None
    assert job.ended.exit_code is None
    assert job.ended.why == "its process was killed 2 times"


def test_a_job_that_runs_is_cancelled_and_the_next_one_runs(folder: Path) -> None:
    with without_end(folder) as job:
        after = jobs.add(folder, "after", ["mail"], [], NO_PATCH)
        jobs.start(folder)
        until("running", job)
        own = job.process()
        assert own is not None
        jobs.cancel(folder, job.id[:6])
        until("ended", after)
        assert job.state == "cancelled"
        assert not own.is_running()


def test_an_interrupt_of_the_queue_ends_the_job_and_leaves_it_waiting(folder: Path) -> None:
    with without_end(folder) as job:
        process = worker()
        until("running", job)
        own = job.process()
        assert own is not None
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert not own.is_running()
        assert job.state == "waiting"
        assert not (job.folder / "started.json").exists()


def test_a_job_that_waits_is_cancelled_and_never_tried(folder: Path) -> None:
    job = jobs.add(folder, "one", ["mail"], [], NO_PATCH)
    jobs.cancel(folder, job.id)
    assert jobs.work(folder, print) == 0
    assert not (job.folder / "started.json").exists()
    jobs.cancel(folder, job.id)
    assert jobs.jobs(folder) == []
    assert jobs.add(folder, "one", ["mail"], [], NO_PATCH).state == "waiting"
    with pytest.raises(InputError, match="no job has an id that begins with 'zz'"):
        jobs.cancel(folder, "zz")
    with pytest.raises(InputError, match="no job has"):
        jobs.cancel(folder, "")


def test_jobs_wait_while_the_disk_is_nearly_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_LEAST_FREE", 10**18)
    job = jobs.add(folder, "one", ["mail"], [], NO_PATCH)
    notes: list[str] = []
    assert jobs.work(folder, notes.append) == 0
    assert job.state == "waiting"
    assert "GB are free in" in notes[0]


def test_a_full_queue_takes_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_WAITING", 2)
    for number in range(2):
        jobs.add(folder, "one", ["mail"], [], str(number).encode())
    with pytest.raises(InputError, match="2 series wait in the queue"):
        jobs.add(folder, "one", ["mail"], [], b"x")
    assert jobs.add(folder, "one", ["mail"], [], b"1").state == "waiting"


def test_old_and_large_jobs_are_removed_once_they_have_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, waits = (jobs.add(folder, "one", ["mail"], [], text) for text in (b"x" * 5000, b"y"))
    (ended.folder / "ended.json").write_text('{"exit_code": 0, "at": "2026-01-01T00:00:00Z"}')
    jobs._remove_old(folder)
    assert {job.id for job in jobs.jobs(folder)} == {ended.id, waits.id}
    monkeypatch.setattr(jobs, "_MOST_BYTES", 4000)
    jobs._remove_old(folder)
    assert [job.id for job in jobs.jobs(folder)] == [waits.id]
    (waits.folder / "cancelled").touch()
    monkeypatch.setattr(jobs, "_MOST_AGE", timedelta(0))
    jobs._remove_old(folder)
    assert jobs.jobs(folder) == []


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"{}", b'{"pid": "x"}', b"[" * 10_000])
def test_damaged_files_of_a_job_do_not_hide_the_others(folder: Path, text: bytes) -> None:
    damaged, sound = (jobs.add(folder, "one", ["mail"], [], mail) for mail in (b"x", b"y"))
    (sound.folder / "started.json").write_bytes(text)
    (sound.folder / "answer.json").write_bytes(text)
    assert (sound.state, sound.answer.headline) == ("waiting", "")
    (damaged.folder / "job.json").write_bytes(text)
    assert [job.id for job in jobs.jobs(folder)] == [sound.id]


def test_the_number_of_a_process_that_has_ended_is_not_taken_for_it(folder: Path) -> None:
    job = jobs.add(folder, "one", ["mail"], [], b"x")
    (job.folder / "started.json").write_text(
        f'{{"attempt": 1, "pid": {os.getpid()}, "began": 1.5, "at": "2026-01-01T00:00:00Z"}}'
    )
    assert job.state == "waiting"


def test_a_job_that_another_has_put_there_is_not_executed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as theirs:
        theirs.setenv("XDG_DATA_HOME", str(tmp_path / "theirs"))
        foreign = jobs.add(folder, "theirs", ["mail"], ["--unsafe-build"], NO_PATCH)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "mine"))
    changed = [
        jobs.add(folder, str(number), ["mail"], [], NO_PATCH + b"\n" * number)
        for number in range(4)
    ]
    mine = changed.pop()
    (changed[0].folder / "mail").write_bytes(MAIL)
    for job, field, value in (
        (changed[1], "cwd", "/"),
        (changed[2], "arguments", ["--unsafe-build"]),
    ):
        file = job.folder / "job.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    assert jobs.work(folder, lambda _: None) == 5
    for job in (foreign, *changed):
        assert job.ended is not None and (job.ended.exit_code, job.text("log")) == (None, "")
        assert "did not add the job" in job.ended.why
    assert mine.ended is not None and mine.ended.exit_code == 2
    assert (tmp_path / "mine" / "kteardown" / "secret").stat().st_mode & 0o777 == 0o600


def test_processes_that_begin_at_once_have_one_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        codes = set(pool.map(lambda _: sealed(["try"], b""), range(32)))
    assert len(codes) == 1
    assert [file.name for file in (tmp_path / "kteardown").iterdir()] == ["secret"]
    assert not is_sealed("", ["try"], b"") and not is_sealed("\u00e9", ["try"], b"")


@pytest.mark.timeout(60)
def test_a_job_that_is_a_pipe_is_left_out(tmp_path: Path) -> None:
    (tmp_path / (32 * "a")).mkdir()
    os.mkfifo(tmp_path / (32 * "a") / "job.json")
    assert jobs.jobs(tmp_path) == []
