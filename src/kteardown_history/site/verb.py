"""``kteardown site``: the pages of all runs, and those that need several of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from kteardown.cli import options
from kteardown.cli.rows import Fields
from kteardown.extras import need
from kteardown.judge.verdicts import VERDICTS
from kteardown.progress import Reporter
from kteardown.rundir.find import all_folders, all_runs
from kteardown_history import tables
from kteardown_history.lines import LEAST, HistoryFilter, history_of
from kteardown_history.site.bisections import found_commits
from kteardown_history.site.folder import SiteFolder
from kteardown_history.site.problems import problem_groups
from kteardown_history.site.runs import IndexedRun, run_row

LINKS = (("Runs", "index.html"), ("Compare", "compare.html"), ("Problems", "problems.html"))
"""The pages that `write_index` writes."""


def site(to: Annotated[Path, typer.Option(metavar="FOLDER")]) -> None:
    need("history", "`site`")
    folder = SiteFolder.begin(to, (*LINKS, ("History", "history.html")))
    reporter = options.reporter(verbose=False, quiet=False)
    try:
        runs = _runs(folder, reporter)
        bisections, unread = found_commits()
        for name in unread:
            reporter.note(name)
        write_index(folder, runs, bisections)
        with reporter.task("history"):
            _write_history(folder)
    except KeyboardInterrupt:
        reporter.note(
            f"the finished pages in {to} are kept; the same command makes the others and the index"
        )
        raise
    pages, errors = (sum(bool(run.row[name]) for run in runs) for name in ("written", "error"))
    summary = f"runs: {len(runs)}, pages written: {pages}, runs with an error: {errors}"
    options.output().print(f"{to / 'index.html'}: {summary}", soft_wrap=True)


def _runs(site: SiteFolder, reporter: Reporter) -> list[IndexedRun]:
    """Write the page of each run; return what the other pages have of them, newest first."""
    folders = all_folders()[::-1]
    runs = list[IndexedRun]()
    with reporter.task("pages of the runs", len(folders)) as task:
        for number, folder in enumerate(folders):
            task.update(number, folder.path.name)
            run = run_row(folder, site)
            runs.append(run)
            if run.row["error"]:
                reporter.note(f"{folder.name}: {run.row['error']}")
    return runs


def write_index(
    site: SiteFolder,
    runs: Sequence[IndexedRun],
    bisections: Sequence[tuple[str, Sequence[str]]] = (),
    published: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the pages that lead to the runs, compare two of them, and have the problems of all.

    ``bisections``: what each compared, and its sentences. ``published``: the addresses of results
    of the catalogue that are not of this site. Raises LabError.
    """
    rows: list[Fields] = [run.row for run in runs]
    names = {key: name for run in runs for key, name in run.metric_names.items()}
    laws = [law for run in runs for law in run.laws]
    own = {name: row["page"] for row in rows if row["page"] for name in row["compared"]}
    pages = {**published, **own}
    site.save_page("index", runs=rows, verdicts=VERDICTS)
    site.save_page(
        "problems", groups=problem_groups(laws, names), pages=pages, bisections=bisections
    )
    site.save_data("results", [entry for run in runs for entry in run.compared])
    site.save_page("compare")


def _write_history(site: SiteFolder) -> None:
    """Write what `kteardown history` prints, with a picture for each table."""
    history = history_of(all_runs(), HistoryFilter(), order="release", least=LEAST)
    shown = tables.worth_showing(history, every_metric=False)
    parts = [
        (lines[0].experiment, table, tables.picture(lines))
        for lines, table in tables.tables_of(shown)
    ]
    site.save_page("history", parts=parts, notes=tables.left_out(history, shown))
