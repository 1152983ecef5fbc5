"""The check of b4, run by b4."""

from __future__ import annotations

import email
import email.policy
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from b4.review import checks

from kteardown.queue import check, jobs

DATA = Path(__file__).parents[2] / "data/mail"
NO_PATCH = (DATA / "no-patch.eml").read_bytes()
PATCH = (DATA / "quoted-printable.eml").read_bytes()
COMMAND = shlex.join(
    [sys.executable, "-P", "-m", "kteardown", "try", "-", "--format", "b4-check", "--full"]
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a queue. A test that adds a job holds the lock, so that no process tries it."""
    for name in ("CACHE", "QUEUE", "RUNS"):
        monkeypatch.setenv(f"KTEARDOWN_{name}", str(tmp_path / name.lower()))
    (tmp_path / "queue").mkdir()
    return tmp_path / "queue"


def of_b4(raw: bytes, topdir: Path) -> list[dict[str, str]]:
    mail = email.message_from_bytes(
        raw, policy=email.policy.EmailPolicy(utf8=True, cte_type="8bit")
    )
    return checks.run_series_checks(("x@example.org", mail), [COMMAND], str(topdir))


def test_b4_gets_queued_and_then_the_answer(folder: Path, tmp_path: Path) -> None:
    with jobs._only_one(folder):
        (found,) = of_b4(PATCH, tmp_path)
    assert (found["tool"], found["status"], found["summary"]) == ("kteardown", "warn", "queued")
    (job,) = jobs.jobs(folder)
    assert job.asked.arguments == ["--full"]
    assert job.asked.what == ["mail"]
    (job.folder / "answer.json").write_text('{"headline": "worse: all of it", "outcome": "fail"}')
    (job.folder / "page.md").write_text("the page\n")
    (job.folder / "ended.json").write_text('{"exit_code": 0, "at": "2026-01-01T00:00:00Z"}')
    (found,) = of_b4(PATCH, tmp_path)
    assert (found["status"], found["summary"], found["details"]) == (
        "fail",
        "worse: all of it",
        "the page\n",
    )


@pytest.mark.parametrize(
    "outcome, exit_code, status",
    [
        ("pass", 0, "pass"),
        ("unsure", 0, "warn"),
        ("unsure", 4, "warn"),
        ("unsure", 7, "warn"),
        ("fail", 0, "fail"),
        ("fail", 1, "fail"),
        ("fail", 3, "fail"),
        ("broken", 6, "fail"),
        (None, 0, "warn"),
    ],
)
def test_the_status_is_that_of_the_series(
    folder: Path, outcome: str | None, exit_code: int, status: str
) -> None:
    job = jobs.add(folder, "one", ["mail"], [], b"x")
    (job.folder / "ended.json").write_text(
        f'{{"exit_code": {exit_code}, "at": "2026-01-01T00:00:00Z"}}'
    )
    answer = {"headline": "first\nsecond"} | ({"outcome": outcome} if outcome else {})
    (job.folder / "answer.json").write_text(json.dumps(answer))
    assert check.status_of(job) == (status, "first")


def test_a_series_that_no_source_takes_has_not_failed(folder: Path) -> None:
    job = jobs.add(folder, "one", ["mail"], [], b"x")
    (job.folder / "ended.json").write_text('{"exit_code": 3, "at": "2026-01-01T00:00:00Z"}')
    (job.folder / "log").write_text("kteardown: no known source takes this\n  what to do: x\n")
    assert check.status_of(job) == ("warn", "not measured: no known source takes this")


@pytest.mark.parametrize(
    "raw, summary",
    [
        (b"", "the mail has neither a patch nor a message id"),
        (b"\x00\xff" * 1000, "the mail has neither a patch nor a message id"),
        (b"x" * 33_000_000, "the mail on the standard input is damaged: it is larger than 32 MB"),
    ],
)
def test_a_hostile_mail_is_answered_and_not_queued(folder: Path, raw: bytes, summary: str) -> None:
    (found,) = check.check_mail(raw, [], folder)
    assert (found["status"], found["summary"]) == ("warn", summary)
    assert jobs.jobs(folder) == []


def test_the_title_of_a_mail_cannot_act_on_the_terminal_of_b4(folder: Path) -> None:
    raw = PATCH.replace(b"Subject: ", b"Subject: \x1b[2J", 1)
    with jobs._only_one(folder):
        (found,) = check.check_mail(raw, [], folder)
    assert found["summary"] == "queued"
    (job,) = jobs.jobs(folder)
    assert check.entry("warn", job.asked.title, "\x1b[2J")["details"] == "\\u001b[2J"


def test_a_cover_letter_is_fetched_unless_b4_has_applied_the_series(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cover = (
        b"From: A <a@example.org>\nSubject: [PATCH 0/2] two\nMessage-ID: "
        b"<x-0@example.org>\n\ntext\n"
    )
    with jobs._only_one(folder):
        check.check_mail(cover, [], folder)
    assert [job.asked.what for job in jobs.jobs(folder)] == [["lore:x-0@example.org"]]

    tree = tmp_path / "linux"
    tree.mkdir()

    def git(*argv: str) -> str:
        named = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@localhost", *argv]
        return subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "master")
    for subject in ("base", "one", "two", "b4's own"):
        git("commit", "-q", "--allow-empty", "-m", subject)
    git("branch", "b4/review/20260305-two")
    first = git("rev-parse", "HEAD~2")
    tracking = tmp_path / "tracking.json"
    tracking.write_text(
        json.dumps(
            {"series": {"change-id": "20260305-two", "first-patch-commit": first}, "patches": []}
        )
    )
    monkeypatch.setenv(check.TRACKING, str(tracking))
    with jobs._only_one(folder):
        (found,) = of_b4(cover, tree)
    assert found["summary"] == "queued, 1 before it"
    span = f"git:{tree}@{git('rev-parse', 'HEAD~3')}..{git('rev-parse', 'HEAD~1')}"
    assert jobs.jobs(folder)[-1].asked.what == [span]
    tracking.write_text("[]")
    (found,) = of_b4(cover, tree)
    assert found["status"] == "warn"
    assert "tracking.json is damaged" in found["summary"]


def test_a_queue_that_cannot_be_written_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "queue").write_text("a file")
    (found,) = check.check_mail(PATCH, [], tmp_path / "queue")
    assert found["status"] == "warn"
    assert str(tmp_path / "queue") in found["summary"]
