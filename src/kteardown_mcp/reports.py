"""What the tools return: an object for a job, with what comes from outside marked as such."""

import json
from collections.abc import Mapping
from typing import Any

from kteardown.errors import InputError
from kteardown.visible import on_one_line
from kteardown_mcp import outside
from kteardown_mcp.jobs import Jobs, ServerJob

MEANINGS: Mapping[int, str] = {
    0: "done",
    1: "a verdict fails a gate",
    2: "wrong input: the log says what is wrong and what to do",
    3: "a kernel or the agent did not build, or a patch did not apply",
    4: "guests failed so often that there is nothing to report",
    5: "the host or a tool on it failed",
    6: "a kernel with the change is broken: it fails where base does not",
    7: "nothing of the patch is in the built kernel, so there is no verdict",
    8: "no workload executes what the patch changes, or not enough of it for a metric to show it",
    70: "kteardown itself failed: the log has its trace",
    130: "interrupted",
}
"""By the exit code of a command (docs/ci.md)."""
_LOG = 4000
_SHORT = 8000
"""Characters of the short form of an answer. A part that is asked for may have more."""


def of_job(job: ServerJob, jobs: Jobs) -> dict[str, Any]:
    """Return what is known of a job, without its answer."""
    report: dict[str, Any] = {
        "job": job.id,
        "tool": job.tool,
        "state": job.state,
        "seconds": round(job.seconds, 1),
        "command": on_one_line(job.asked.command),
    }
    if job.is_over:
        return report | ending(job)
    if job.state == "waiting":
        report["jobs_before_it"] = jobs.before(job)
    return {
        **report,
        "next": f"call job_result with job={job.id!r}, which waits, or cancel_job",
        "log": outside.end_of("\n".join(job.lines), _LOG // 4),
    }


def ending(job: ServerJob) -> dict[str, Any]:
    """Return how a job ended."""
    code = job.exit_code
    if job.state == "cancelled" or code is None:
        return {"exit_code": None, "meaning": job.why or "it was stopped", **_log(job)}
    meaning = MEANINGS.get(code, f"ended by signal {code - 128}" if code > 128 else "unknown")
    return {"exit_code": code, "meaning": meaning, **({} if code == 0 else _log(job))}


def _log(job: ServerJob) -> dict[str, Any]:
    return {"log": outside.end_of("\n".join(job.lines), _LOG)}


def answer(job: ServerJob) -> dict[str, Any]:
    """Return what a job answered: its headline, the beginning of its page, and its JSON in a short
    form. Empty if it has not ended."""
    headline = job.answer.get("headline") if isinstance(job.answer, dict) else None
    return {
        **({"headline": outside.page(str(headline), 2000)} if headline else {}),
        **({"page": outside.page(job.printed)} if job.printed else {}),
        **({"answer": outside.value(job.answer, most=_SHORT)} if job.answer is not None else {}),
    }


def answer_at(job: ServerJob, at: str, start: int) -> dict[str, Any]:
    """Return a place of a job's JSON, or its page if ``at`` is empty, from ``start`` on. Empty if
    the job has not ended. Raises InputError."""
    if not job.is_over:
        return {}
    if at:
        return {"answer": part(job.answer, at, start)}
    return {"page": outside.page(job.printed, start=start)}


def part(whole: Any, at: str, start: int = 0) -> dict[str, Any]:
    """Return what is at a place of a value, marked, from ``start`` on. Raises InputError."""
    try:
        return outside.value(whole, at, start=start)
    except outside.NoSuchPlaceError as error:
        raise InputError(
            f"at: {error}",
            hint="names of fields and numbers of items with slashes, such as runs/0/headline.",
        ) from error


def printed_json(job: ServerJob, at: str, start: int = 0) -> dict[str, Any]:
    """Return the JSON that a command printed, marked. Raises InputError."""
    return {"value": part(_parsed(job.printed), at, start)}


def listed(job: ServerJob, newest: int) -> dict[str, Any]:
    """Return the newest of the runs that a command listed, marked. Raises InputError."""
    runs = _parsed(job.printed)["runs"]
    # The newest first: the end of what is too long is cut.
    return {"runs": len(runs), "newest": outside.value(runs[-newest:][::-1])}


def listed_kinds(job: ServerJob) -> dict[str, str]:
    """Return the part of the catalogue of each kind that a command listed. Raises InputError."""
    return {kind["name"]: kind["part"] for kind in _parsed(job.printed)["kinds"]}


def _parsed(printed: str) -> Any:
    """Return the JSON that a command printed. Raises InputError."""
    try:
        return json.loads(printed)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "the result is too large to be read here", hint="read it with `kteardown report`."
        ) from error


def printed_text(job: ServerJob, start: int) -> dict[str, Any]:
    """Return the text that a command printed, from ``start`` on, marked."""
    text = job.printed.replace("\r\n", "\n")  # A serial console ends its lines so.
    return {"text": outside.page(text, start=start)}
