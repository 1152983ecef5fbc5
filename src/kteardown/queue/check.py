"""What a check of b4 prints: https://b4.docs.kernel.org/en/latest/reviewer/ names the form.

b4 gives the cover letter or a patch on the standard input, without the rest of the series. That is
found in the branch into which b4 has applied it, or else in the archive by the message id.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from kteardown.errors import InputError, KteardownError, damaged
from kteardown.judge.verdicts import Outcome
from kteardown.kernels import git
from kteardown.patches import mails, reading
from kteardown.queue import jobs
from kteardown.visible import on_one_line, visible

Status = Literal["pass", "warn", "fail"]
TRACKING = "B4_TRACKING_FILE"
"""The variable with which b4 names a file about the series, if it has a branch."""
_MOST_BYTES = 32_000_000
_ONE_MAIL = "give one mail: a cover letter or a patch."
_OF_OUTCOME: dict[Outcome, Status] = {
    "pass": "pass",
    "unsure": "warn",
    "fail": "fail",
    "broken": "fail",
}


def check_mail(raw: bytes, arguments: Sequence[str], folder: Path) -> list[dict[str, str]]:
    """Return what is known of the series of a mail; if it was not tried, add it to the queue.

    What is wrong is an answer, too: b4 takes a command without one for a failed check.
    """
    try:
        job = _job(raw, arguments, folder)
        status, summary = status_of(job)
        if job.state == "waiting":
            jobs.start(folder)
        return [entry(status, summary, job.text("page.md") or job.text("log"))]
    except KteardownError as error:
        return [entry("warn", error.message, error.hint)]
    except OSError as error:
        return [
            entry(
                "warn",
                f"{error.filename or folder}: {error.strerror}",
                "check the folder of the queue.",
            )
        ]


def entry(status: Status, summary: str, details: str) -> dict[str, str]:
    texts = {"summary": on_one_line(summary), "url": "", "details": visible(details)}
    return {"tool": "kteardown", "status": status, **texts}


def status_of(job: jobs.QueuedJob) -> tuple[Status, str]:
    """Return the status of a job, and one line.

    A series that was not measured is no failure of the series, unless its kernel does not build.
    """
    state = job.state
    ended = job.ended
    answer = job.answer
    if state == "cancelled":
        return "warn", f"cancelled: {job.id[: jobs.SHOWN_DIGITS]}"
    if ended is None:
        pending = [
            queued
            for queued in jobs.jobs(job.folder.parent)
            if queued.state in ("running", "waiting")
        ]
        before = sum(queued.asked.at < job.asked.at for queued in pending)
        waits = f"queued, {before} before it" if before else "queued"
        return "warn", "being measured: check again" if state == "running" else waits
    if ended.exit_code is None:
        return "warn", f"not measured: {ended.why}"
    answer_lines = answer.headline.splitlines()
    if answer_lines:
        return _OF_OUTCOME[answer.outcome], answer_lines[0]
    lines = [line for line in job.text("log").splitlines() if line.startswith("kteardown: ")]
    why = lines[-1].removeprefix("kteardown: ") if lines else f"exit code {ended.exit_code}"
    return "warn", f"not measured: {why}"


def _job(raw: bytes, arguments: Sequence[str], folder: Path) -> jobs.QueuedJob:
    """Return the job of the series of a mail. Raises InputError."""
    with damaged("the mail on the standard input", hint=_ONE_MAIL):
        if len(raw) > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES // 1_000_000} MB")
    mail = reading.limited(
        "the mail on the standard input", lambda: _asked(raw), TypeAdapter(_Asked)
    )
    title = mail.title or mail.message_id
    if applied := _applied():
        return jobs.add(folder, title, [applied], arguments)
    if not mail.has_patch and not mail.message_id:
        raise InputError("the mail has neither a patch nor a message id", hint=_ONE_MAIL)
    if mail.message_id and (mail.total > 1 or not mail.has_patch):
        return jobs.add(folder, title, [f"lore:{mail.message_id}"], arguments)
    return jobs.add(folder, title, ["mail"], arguments, raw)


@dataclass(frozen=True)
class _Asked:
    """What of a mail says which series is checked."""

    title: str
    message_id: str
    total: int
    has_patch: bool


def _asked(raw: bytes) -> _Asked:
    with damaged("the mail on the standard input", hint=_ONE_MAIL):
        mail = mails.parse(raw, "mail")
    return _Asked(mail.title, mail.message_id, mail.total, bool(mail.diffs))


def _applied() -> str:
    """Return the range of commits that b4 has made of the series; empty if it has made none.

    The commit at the end of its branch is b4's own. The range has hashes: another one is another
    job.
    """
    file = os.environ.get(TRACKING)
    if not file:
        return ""
    hint = "b4 writes this file for its checks."
    with damaged(f"{TRACKING}={file}", hint=hint):
        series: dict[str, Any] = json.loads(Path(file).read_bytes())["series"]
        first = str(series.get("first-patch-commit") or "")
        branch = f"b4/review/{series['change-id']}"
    repository = Path.cwd()
    ends = [
        git.run_reading(
            repository, "rev-parse", "--verify", "--end-of-options", f"{name}~1^{{commit}}"
        )
        for name in (first, f"refs/heads/{branch}")
    ]
    return (
        f"git:{repository}@{ends[0].text}..{ends[1].text}"
        if first and all(e.ok for e in ends)
        else ""
    )
