"""``kteardown site``: a folder of plain HTML pages: an index of all runs, their reports, and the
history."""

import os
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kteardown import version
from kteardown.cli import options
from kteardown.cli.rows import Fields, boot_rows, boots_done, run_fields
from kteardown.errors import GuestError, InputError, LabError, damaged, failing
from kteardown.extras import need
from kteardown.judge.verdicts import VERDICTS
from kteardown.paths import replace_text
from kteardown.report import formats, saved
from kteardown.report.formats.html import page
from kteardown.report.publication import of_run
from kteardown.report.saved import material_of_folder
from kteardown.rundir.directory import started
from kteardown.rundir.find import RunFolder, all_folders, all_runs
from kteardown.rundir.writer import is_locked
from kteardown.visible import visible
from kteardown_history import tables as history_tables
from kteardown_history.lines import LEAST, HistoryFilter, history_of

_TEMPLATES = ("kteardown_history", "texts")
_MARK = ".kteardown-site"
"""The file in a folder that was made by this verb."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,199}")
"""A name of a run that is also the name of a page, and needs no escape in an address."""
_HINT = "see what `kteardown report` says about it."


def site(to: Annotated[Path, typer.Option(metavar="FOLDER")]) -> None:
    need("history", "`site`")
    _begin(to)
    reporter = options.reporter(verbose=False, quiet=False)
    rows = list[Fields]()
    folders = all_folders()[::-1]
    try:
        with reporter.task("pages of the runs", len(folders)) as task:
            for number, folder in enumerate(folders):
                task.update(number, folder.path.name)
                rows.append(_row(folder, to))
                if rows[-1]["error"]:
                    reporter.note(f"{folder.name}: {rows[-1]['error']}")
        _save(to / "index.html", page("index.html.j2", of=_TEMPLATES, runs=rows, **_about()))
        with reporter.task("history"):
            # What `kteardown history` prints, with a picture for each table.
            history = history_of(all_runs(), HistoryFilter(), order="release", least=LEAST)
            shown = history_tables.worth_showing(history, every_metric=False)
            tables = history_tables.tables_of(shown)
            parts = [
                (lines[0].experiment, table, history_tables.picture(lines))
                for lines, table in tables
            ]
            notes = history_tables.left_out(history, shown)
            _save(
                to / "history.html",
                page("history.html.j2", of=_TEMPLATES, parts=parts, notes=notes, **_about()),
            )
    except KeyboardInterrupt:
        reporter.note(
            f"the finished pages in {to} are kept; the same command makes the others and the index"
        )
        raise
    pages, errors = (sum(bool(row[name]) for row in rows) for name in ("written", "error"))
    summary = f"runs: {len(rows)}, pages written: {pages}, runs with an error: {errors}"
    options.output().print(f"{to / 'index.html'}: {summary}", soft_wrap=True)


def _begin(to: Path) -> None:
    """Make the folder. Raises InputError if it has files that this verb did not make, LabError."""
    if to.exists() and not to.is_dir():
        raise InputError(f"--to {to}: not a folder", hint="name a folder.")
    with failing(f"--to {to}: cannot be read", hint="name another folder."):
        foreign = to.is_dir() and not (to / _MARK).is_file() and any(to.iterdir())
    if foreign:
        raise InputError(
            f"--to {to}: the folder has files, and `kteardown site` did not make it",
            hint="name a new or an empty folder, or one that `kteardown site` made.",
        )
    options.need_writable(to / "index.html" if to.is_dir() else to)
    with failing(f"--to {to}: cannot be created", hint="name another folder.", kind=LabError):
        to.mkdir(exist_ok=True)
    _save(to / _MARK, "`kteardown site` writes the pages of this folder.\n")


def _save(file: Path, text: str) -> None:
    """Write a file of the folder; a symbolic link is replaced and not followed. Raises LabError."""
    hint = "free disk space, or name another folder."
    with failing(f"{file}: cannot be written", hint=hint, kind=LabError):
        replace_text(file, visible(text))


def _about() -> Fields:
    return {
        "version": version(),
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "verdicts": VERDICTS,
    }


def _row(folder: RunFolder, to: Path) -> Fields:
    """Write the page of a run if it has a result, and return what the index has of it.

    ``error``: why a damaged run, or one whose boots all failed, has no page. Raises LabError.
    """
    row: Fields = {"name": folder.name, "state": "damaged", "variants": [], "counts": {}}
    row |= dict.fromkeys(("experiment", "started", "result", "page", "written", "error"), "")
    try:
        # Whatever the files of a run are made to raise is about this run alone.
        with damaged("the run", hint=_HINT):
            fields = run_fields(folder)
            if fields["state"] not in ("done", "unfinished"):
                raise InputError(fields["state"].removeprefix("unreadable: "), hint=_HINT)
            row |= fields
            began = datetime.fromtimestamp(started(folder.runs[0].run_file), UTC)
            row["started"] = f"{began:%Y-%m-%d %H:%M}"
            row["variants"] = [name.rstrip("/").rpartition("/")[2] for name in row["variants"]]
            if row["state"] == "done":
                results = filter(None, map(saved.saved_result, folder.runs))
                row["counts"] = Counter(
                    m.verdict for result in results for m in result.metric_verdicts
                )
                row["page"], row["written"] = _page_of(folder, to)
            else:
                row["state"] = "running" if any(map(is_locked, folder.runs)) else "unfinished"
                progress = [(run.path.name, boots_done(boot_rows(run))) for run in folder.runs]
                lines = (
                    f"{clock}: {done}" if folder.both_clocks else done for clock, done in progress
                )
                row["result"] = "\n".join(lines)
    except (InputError, GuestError, OSError) as error:
        # Without the folder of the runs, which is of this machine.
        row["error"] = str(error).replace(f"{folder.path.parent}/", "")
    return row


def _page_of(folder: RunFolder, to: Path) -> tuple[str, bool]:
    """Return the file name of the page of a run, and whether it was written: only if the result is
    newer."""
    if not _SAFE.fullmatch(folder.path.name):
        raise InputError(
            "the name of this run cannot be the name of a page",
            hint="rename the folder of the run.",
        )
    file = to / f"run-{folder.path.name}.html"
    # Of the time before the result is read: a result that is replaced meanwhile is newer.
    newest = max(run.result_file.status().st_mtime_ns for run in folder.runs)
    if file.is_file() and not file.is_symlink() and file.stat().st_mtime_ns >= newest:
        return file.name, False
    _save(file, formats.render("html", of_run(material_of_folder(folder, samples=True))))
    os.utime(file, ns=(newest, newest), follow_symlinks=False)
    return file.name, True
