"""``kteardown watch``: try the new series of a mailing list, and print a digest."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from kteardown.cli import options
from kteardown.cli.terminal import TerminalReporter
from kteardown.coverage.maps import shipped_functions, shipped_sources
from kteardown.errors import KteardownError
from kteardown.kernels import apply_patches
from kteardown.patches.posted import PostedSeries, read_series
from kteardown.paths import cache_dir, queue_dir
from kteardown.queue import jobs
from kteardown.queue.check import status_of
from kteardown.visible import echo, on_one_line
from kteardown_watch.archive import Seen, as_mbox, mails_of_list, threads

_MOST = 50
"""So many series are tried in one look."""


@dataclass
class Look:
    """What one look at a list found: the series to try, with their mails, and why others are not
    tried."""

    wanted: list[tuple[PostedSeries, bytes]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    elsewhere: int = 0
    """So many new series change nothing that a workload executes."""


def watch(
    where: str,
    once: Annotated[bool, typer.Option("--once")] = False,
    every_min: Annotated[float, typer.Option("--every", metavar="MINUTES", min=1)] = 60,
    days: Annotated[float, typer.Option(min=0)] = 7,
    source: list[str] | None = None,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
) -> None:
    reporter = options.reporter(verbose=False, quiet=False)
    name = hashlib.sha256(str(Path(where).absolute() if Path(where).exists() else where).encode())
    seen = Seen(queue_dir() / "seen" / f"{name.hexdigest()[:16]}.json")
    while True:
        with reporter.task(f"Reading {where}"):
            mails = mails_of_list(where, days, cache_dir(), reporter)
        look = looked(mails, seen, reporter)
        arguments = [word for kernel in source or [] for word in ("--source", kernel)]
        if dry_run:
            return echo(digest(where, look, []), nl=False)
        queued = []
        for series, mail in look.wanted[:_MOST]:
            queued.append(jobs.add(queue_dir(), series.title, ["mail"], arguments, mail))
            seen.add(series.message_id)
        _finish(queued, reporter)
        text = digest(where, look, queued)
        if queued:
            file = queue_dir() / "digests" / f"{datetime.now():%Y-%m-%d-%H%M%S}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            options.write_text(file, text)
            text += f"\nkept as {file}\n"
        echo(text, nl=False)
        if once:
            return
        reporter.note(f"the next look is in {every_min:g} minutes; press Ctrl-C to stop")
        time.sleep(every_min * 60)


def looked(mails: Sequence[bytes], seen: Seen, reporter: TerminalReporter) -> Look:
    """Return what of ``mails`` is new and to be tried. An incomplete series waits for the next
    look."""
    look = Look()
    executed = {
        function.file for source in shipped_sources() for function in shipped_functions(source)
    }
    with (
        TemporaryDirectory(prefix="kteardown-watch-") as folder,
        reporter.task("Reading series") as task,
    ):
        posted = threads(mails)
        for number, thread in enumerate(posted, 1):
            task.update(number, f"of {len(posted)}")
            file = Path(folder, "mail")
            file.write_bytes(as_mbox(thread))
            try:
                series = read_series(str(file), cache_dir=cache_dir(), reporter=reporter)
                files = {
                    name for patch in series.patches for name, _ in apply_patches.files_in(patch)
                }
            except KteardownError as error:
                look.skipped.append(error.message.replace(str(file), "a thread"))
                continue
            if series.message_id in seen:
                continue
            if not files & executed:
                look.elsewhere += 1
                seen.add(series.message_id)
            elif series.missing:
                look.skipped.append(f"{series.title}: some of its patches are missing")
            else:
                look.wanted.append((series, file.read_bytes()))
    return look


def _finish(queued: Sequence[jobs.QueuedJob], reporter: TerminalReporter) -> None:
    """Wait until the jobs have ended, here or in a process that has begun before."""
    try:
        while any(job.state in ("waiting", "running") for job in queued):
            if not jobs.work(queue_dir(), reporter.note):
                if not any(job.state == "running" for job in jobs.jobs(queue_dir())):
                    return
                time.sleep(5)
    except KeyboardInterrupt:
        reporter.note("interrupted; finished tries are kept, and `kteardown queue` does the others")
        raise


def digest(where: str, look: Look, queued: Sequence[jobs.QueuedJob]) -> str:
    lines = [f"# {where}, {datetime.now():%Y-%m-%d %H:%M}", ""]
    if look.wanted:
        lines += ["| series | author | | answer |", "|---|---|---|---|"]
    for (series, _), job in zip_longest(look.wanted, queued):
        status, summary = status_of(job) if job else ("", "not tried")
        cells = (f"{series.title} {series.revision}".strip(), series.author, status, summary)
        lines.append(f"| {' | '.join(on_one_line(cell).replace('|', '/') for cell in cells)} |")
    count = len(look.wanted) or "no"
    lines += [
        *([""] if look.wanted else []),
        f"{count} new series change what a workload executes.",
    ]
    lines += [f"{look.elsewhere} other new series do not."] if look.elsewhere else []
    lines += [f"Left out: {on_one_line(text)}." for text in look.skipped]
    return "\n".join(lines) + "\n"
