"""``kteardown queue``: series that are tried in the background.

The check of b4 and ``kteardown watch`` add to the queue.
"""

import json
from typing import Annotated

import typer
from rich.table import Table

from kteardown.cli import options
from kteardown.paths import queue_dir
from kteardown.queue import jobs
from kteardown.queue.check import status_of
from kteardown.visible import echo


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
    queued = jobs.jobs(folder)
    if show:
        job = jobs.named(folder, show)
        return echo(
            job.text("page.md") or job.text("log") or "the job has printed nothing yet", nl=False
        )
    if run:
        ended = (
            jobs.work(folder, options.reporter(verbose=False, quiet=False).note) if queued else 0
        )
        return echo(f"{ended} jobs ended")
    rows = [_row(job) for job in queued]
    if as_json:
        echo(json.dumps(rows, indent=1))
    elif rows:
        table = Table(*rows[0])
        for row in rows:
            table.add_row(*row.values())
        options.output().print(table)
    else:
        echo("the queue is empty")
    if any(job.state == "waiting" for job in queued):
        jobs.start(folder)


def _row(job: jobs.QueuedJob) -> dict[str, str]:
    status, summary = status_of(job)
    at = job.asked.at.astimezone().strftime("%Y-%m-%d %H:%M")
    return {
        "id": job.id[: jobs.SHOWN_DIGITS],
        "added": at,
        "state": job.state,
        "title": job.asked.title,
        "status": status,
        "answer": summary,
    }
