"""A run of the site: its row in the index, its page, and its figures for the page that compares."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kteardown.catalogue.laws import MeasuredLaw
from kteardown.cli.rows import Fields, boot_rows, boots_done, run_fields
from kteardown.errors import GuestError, InputError, damaged
from kteardown.model.result import Result
from kteardown.report import formats, saved
from kteardown.report.material import Measured
from kteardown.report.publication import of_run
from kteardown.report.saved import material_of_folder
from kteardown.rundir.directory import started
from kteardown.rundir.find import RunFolder
from kteardown.rundir.writer import is_locked
from kteardown_history.site.folder import SiteFolder
from kteardown_history.site.problems import laws_in
from kteardown_history.site.results import compact

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,199}")
"""A name of a run that is also the name of a page, and needs no escape in an address."""
_HINT = "see what `kteardown report` says about it."
_ABOUT = ("experiment", "started", "result", "page", "written", "error")


@dataclass(frozen=True)
class IndexedRun:
    """What the pages of a site have of one run: ``row`` for the index; the other pages read
    ``compared``, ``laws`` and ``metric_names``, which are empty without a result."""

    row: Fields
    compared: list[Fields] = field(default_factory=list)
    laws: list[MeasuredLaw] = field(default_factory=list)
    metric_names: dict[tuple[str, str], str] = field(default_factory=dict)


def indexed(row: Fields, results: Mapping[str, Result]) -> IndexedRun:
    """Return a run with its ``results``, by the names under which they are compared."""
    verdicts = (m.verdict for result in results.values() for m in result.metric_verdicts)
    row |= {"counts": Counter(verdicts), "compared": list(results)}
    compared = [
        {
            "name": name,
            "experiment": result.experiment,
            "clock": result.clock,
            "began": row["started"],
            "kernels": [kernel for kernel in result.kernels if result.is_asked_for(kernel)],
        }
        for name, result in results.items()
    ]
    laws = [law for name, result in results.items() for law in laws_in(result, name)]
    names = {(m.workload, m.metric): m.name for r in results.values() for m in r.metrics}
    return IndexedRun(row, compared, laws, names)


def run_row(folder: RunFolder, site: SiteFolder) -> IndexedRun:
    """Write the page of a run if it has a result, and return what the other pages have of it.

    ``error`` of its row: why a damaged run, or one whose boots all failed, has no page. Raises
    LabError.
    """
    row: Fields = {"name": folder.name, "state": "damaged", "variants": [], "counts": {}}
    row |= {"compared": [], **dict.fromkeys(_ABOUT, "")}
    try:
        # Whatever the files of a run are made to raise is about this run alone.
        with damaged("the run", hint=_HINT):
            row |= _about(folder)
            if row["state"] == "done":
                names = _names(folder)
                row |= _pages_of(folder, names, row["started"], site)
                saved_results = map(saved.saved_result, folder.runs)
                pairs = zip(names, saved_results, strict=True)
                return indexed(row, {name: result for name, result in pairs if result})
            row["state"] = "running" if any(map(is_locked, folder.runs)) else "unfinished"
            row["result"] = _progress(folder)
    except (InputError, GuestError, OSError) as error:
        # Without the folder of the runs, which is of this machine.
        row["error"] = str(error).replace(f"{folder.path.parent}/", "")
    return IndexedRun(row)


def _about(folder: RunFolder) -> Fields:
    """Return what the index says of every run. Raises InputError if the run is damaged."""
    fields = run_fields(folder)
    if fields["state"] not in ("done", "unfinished"):
        raise InputError(fields["state"].removeprefix("unreadable: "), hint=_HINT)
    began = datetime.fromtimestamp(started(folder.runs[0].run_file), UTC)
    variants = [name.rstrip("/").rpartition("/")[2] for name in fields["variants"]]
    return {**fields, "started": f"{began:%Y-%m-%d %H:%M}", "variants": variants}


def _progress(folder: RunFolder) -> str:
    """Return how many boots are done, in a line for each clock."""
    lines = [(run.path.name, boots_done(boot_rows(run))) for run in folder.runs]
    if not folder.both_clocks:
        return lines[0][1]
    return "\n".join(f"{clock}: {done}" for clock, done in lines)


def _names(folder: RunFolder) -> list[str]:
    """Return under which name the page that compares knows the result of each clock."""
    name = folder.path.name
    return [f"{name}~{run.path.name}" for run in folder.runs] if folder.both_clocks else [name]


def _pages_of(folder: RunFolder, compared: Sequence[str], began: str, site: SiteFolder) -> Fields:
    """Write the page of a run and its figures, if its result is newer than they are."""
    name = folder.path.name
    if not _SAFE.fullmatch(name):
        raise InputError(
            "the name of this run cannot be the name of a page",
            hint="rename the folder of the run.",
        )
    files = [f"run-{name}.html", *(f"result-{result}.js" for result in compared)]
    # Of the time before the result is read: a result that is replaced meanwhile is newer.
    newest = max(run.result_file.status().st_mtime_ns for run in folder.runs)
    is_current = all(site.is_current(file, newest) for file in files)
    if not is_current:
        write_result(name, compared, began, material_of_folder(folder, samples=True), site)
        for file in files:
            site.set_time(file, newest)
    return {"page": files[0], "written": not is_current}


def write_result(
    name: str, compared: Sequence[str], began: str, material: Measured, site: SiteFolder
) -> None:
    """Write the page of a result, and the figures of each clock for the page that compares.

    ``compared``: the name of each clock there. Raises LabError.
    """
    page = f"run-{name}.html"
    site.save(page, formats.render("html", of_run(material)))
    for result, clock in zip(compared, material.clocks, strict=True):
        figures = compact(result, page, began, clock.result, clock.workloads)
        site.save_data(f"result-{result}", figures)
