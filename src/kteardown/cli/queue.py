"""``kteardown queue``: series that are tried in the background, and the check of b4 that adds them."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from kteardown.cli import options
from kteardown.errors import InputError
from kteardown.paths import queue_dir
from kteardown.queue import jobs
from kteardown.queue.check import check, status_of
from kteardown.visible import echo

_MOST_BYTES = 32_000_001


def queue(
    cancel: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    show: Annotated[str, typer.Option(metavar="ID")] = "",
    run: Annotated[bool, typer.Option("--run")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    folder = queue_dir()
    for name in cancel or []:
        echo(f"cancelled or forgotten: {jobs.cancel(folder, name).asked.title}")
    if cancel:
        return
    found = jobs.jobs(folder)
    if show:
        job = jobs.named(folder, show)
        return echo(job.text("page.md") or job.text("log") or "it has printed nothing yet", nl=False)
    if run:
        ended = jobs.work(folder, options.reporter(verbose=False, quiet=False).note) if found else 0
        return echo(f"{ended} jobs ended")
    rows = [_row(job) for job in found]
    if as_json:
        echo(json.dumps(rows, indent=1))
    elif rows:
        table = Table(*rows[0])
        for row in rows:
            table.add_row(*row.values())
        options.output().print(table)
    else:
        echo("the queue is empty")
    if any(job.state == "waiting" for job in found):
        jobs.start(folder)


def _row(job: jobs.QueuedJob) -> dict[str, str]:
    status, summary = status_of(job)
    at = job.asked.at.astimezone().strftime("%Y-%m-%d %H:%M")
    return {
        "id": job.id,
        "added": at,
        "state": job.state,
        "title": job.asked.title,
        "status": status,
        "answer": summary,
    }


def check_for_b4(what: Sequence[str]) -> None:
    """Print the check of b4 for the mail on the standard input. Raises InputError."""
    if list(what) != ["-"]:
        raise InputError(
            "--format b4-check reads one mail from the standard input",
            hint="write: kteardown try - --format b4-check.",
        )
    raw = sys.stdin.buffer.read(_MOST_BYTES)
    given = [one for one in sys.argv[2:] if one not in ("-", "--format", "b4-check", "--format=b4-check")]
    found: list[dict[str, Any]] = [dict(one) for one in check(raw, given, queue_dir())]
    echo(json.dumps(found, indent=1))
