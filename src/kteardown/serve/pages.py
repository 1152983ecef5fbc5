"""The pages: each takes a request and gives HTML. Nothing here writes to a run directory."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.console import Console
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from kteardown import version
from kteardown.errors import InputError, KteardownError
from kteardown.history import archive
from kteardown.history.lines import Line, Order
from kteardown.inputs.sweep_syntax import parse_assignments
from kteardown.model.experiment import Clock
from kteardown.paths import runs_dir
from kteardown.report import contents, diff_tables
from kteardown.report import history_tables as lines
from kteardown.report.diff import compare_results, read
from kteardown.report.formats import text
from kteardown.rundir.directory import RunDir
from kteardown.rundir.environment import guest_differences
from kteardown.rundir.find import all_runs
from kteardown.rundir.snapshot import load
from kteardown.serve import live
from kteardown.serve.chart import picture
from kteardown.serve.runs import Known, Runs, Told, charts, told

_PAGE = 100
_WIDTH = 118
_IN_DETAIL = 3
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
)


@dataclass(frozen=True)
class _Filters:
    """What the list of runs is narrowed to."""

    experiment: str
    clock: str
    state: str

    def passes(self, run: Known) -> bool:
        return (
            self.experiment in ("", run.experiment.name)
            and self.clock in ("", run.experiment.design.clock)
            and self.state in ("", run.state)
        )


class Pages:
    """The endpoints, over one set of runs."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._templates = Environment(
            loader=PackageLoader("kteardown.serve", "page"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        self._templates.filters.update(duration=live.duration, percent=live.share, short=_short)
        self._templates.globals.update(version=version(), runs_dir=str(runs_dir()))

    def runs(self, request: Request) -> Response:
        """The list, newest first."""
        every = list(self._runs.all())
        query = request.query_params
        wanted = _Filters(query.get("experiment", ""), query.get("clock", ""), query.get("state", ""))
        found = [run for run in every if wanted.passes(run)]
        start = int(query["from"]) if query.get("from", "").isdecimal() else 0
        return self._page(
            "runs.html.j2",
            runs=found[start : start + _PAGE],
            total=len(found),
            every=len(every),
            start=start,
            newer=_query(wanted, max(0, start - _PAGE)) if start else "",
            older=_query(wanted, start + _PAGE) if start + _PAGE < len(found) else "",
            wanted=wanted,
            experiments=sorted({run.experiment.name for run in every}),
        )

    def run(self, request: Request) -> Response:
        """One run: its verdict and report, and where it stands while it goes on."""
        run = self._find(request.path_params["run"])
        known = self._runs.known(run)
        try:
            found, unreadable = told(run), ""
        except KteardownError as error:
            found, unreadable = None, error.message
        others = [other for other in self._runs.all() if other.name != run.name and other.state == "done"]
        return self._page(
            "run.html.j2",
            run=known,
            told=found,
            unreadable=unreadable,
            verdicts=contents.verdicts(found.result, found.workloads) if found else [],
            report=_report(found) if found else "",
            others=sorted(others, key=lambda other: _unlike(known, other)),
            **self._standing(run, known),
        )

    def live(self, request: Request) -> Response:
        """The part of a run's page that moves."""
        run = self._find(request.path_params["run"])
        known = self._runs.known(run)
        page = self._page("live.html.j2", run=known, **self._standing(run, known))
        page.headers["x-run-state"] = known.state
        return page

    def report(self, request: Request) -> Response:
        """The report with its charts: a page of its own, whose script can reach nothing else."""
        run = self._find(request.path_params["run"])
        found = told(run)
        if found is None:
            raise HTTPException(404, f"{run.name} has no result yet")
        return HTMLResponse(charts(run, found), headers={"content-security-policy": _REPORT_POLICY})

    def result_json(self, request: Request) -> Response:
        """``result.json``, as it lies there."""
        return self._file(request, "application/json", "result_file")

    def markdown(self, request: Request) -> Response:
        """``report.md``, as it lies there."""
        return self._file(request, "text/plain; charset=utf-8", "report_file")

    def compare(self, request: Request) -> Response:
        """Two runs side by side; without two, the choice."""
        names = request.query_params.get("a", ""), request.query_params.get("b", "")
        done = [run for run in self._runs.all() if run.state == "done"]
        found = None
        if all(names):
            a, b = (self._find(name) for name in names)
            for run in (a, b):
                if not run.result_file.is_file():
                    raise InputError(
                        f"{run.name} has no result yet", hint="compare it when it is done, or resume it."
                    )
            sides = [read(run.result_file.read_bytes(), run.name) for run in (a, b)]
            found = compare_results(sides[0], sides[1], (a.name, b.name), tuple(guest_differences(a, b)))
        return self._page(
            "compare.html.j2",
            runs=done,
            names=names,
            found=found,
            passages=list(diff_tables.passages(found)) if found else [],
            tables=diff_tables.comparison_tables(found) if found else [],
            summary=diff_tables.summary(found.rows) if found else "",
        )

    def history(self, request: Request) -> Response:
        """A metric over kernels and time."""
        query = request.query_params
        runs = list(self._runs.all())
        experiments = sorted({run.experiment.name for run in runs})
        # One experiment at a time: the newest where none is named.
        experiment = query.get("experiment") or (runs[0].experiment.name if runs else "")
        wanted = archive.Wanted(
            experiment=experiment,
            workload=query.get("workload") or None,
            metric=query.get("metric") or None,
            kernel=query.get("kernel") or None,
            clock=_clock(query.get("clock", "")),
            points=parse_assignments(query.get("point", "").split(), "point"),
        )
        order: Order = "time" if query.get("order") == "time" else "release"
        every = archive.history_of(all_runs(), archive.Wanted(experiment=experiment), order=order)
        found = every.model_copy(update={"lines": tuple(filter(wanted.of_line, every.lines))})
        shown = lines.worth_showing(found, every_metric=wanted.metric is not None)
        in_detail = len(shown.lines) <= _IN_DETAIL
        return self._page(
            "history.html.j2",
            experiments=experiments,
            choices=_choices(every.lines),
            query={"experiment": experiment, **dict(query)},
            order=order,
            details=[(line, lines.detail(line), picture(line)) for line in shown.lines] if in_detail else [],
            tables=[]
            if in_detail
            else [
                (lines.summary(group), [_detail(line) for line in group]) for group in lines.grouped(shown)
            ],
            notes=list(lines.left_out(found, shown)),
        )

    def error(self, status: int, message: str, hint: str) -> Response:
        """What went wrong, with the way back."""
        page = self._page("error.html.j2", status=status, message=message, hint=hint)
        page.status_code = status
        return page

    def _standing(self, run: RunDir, known: Known) -> dict[str, Any]:
        """Progress and medians of a run that is not done."""
        if known.state == "done":
            return {"progress": None, "medians": []}
        try:
            progress = known.progress or self._runs.progress(run)
        except (OSError, ValueError):
            return {"progress": None, "medians": []}
        return {"progress": progress, "medians": live.median_tables(progress, load(run))}

    def _find(self, name: str) -> RunDir:
        run = self._runs.find(name)
        if run is None:
            raise HTTPException(404, f"there is no run {name!r}")
        return run

    def _file(self, request: Request, kind: str, which: str) -> Response:
        run = self._find(request.path_params["run"])
        file = getattr(run, which)
        if not file.is_file():
            raise HTTPException(404, f"{run.name} has no result yet")
        name = f"{run.name}-{file.name}"
        return Response(
            file.read_bytes(), media_type=kind, headers={"content-disposition": f'inline; filename="{name}"'}
        )

    def _page(self, template: str, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(values))


def _report(found: Told) -> str:
    """The report as the terminal has it."""
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, force_terminal=False)
    text.render(found.result, found.workloads, found.reference, console)
    return out.getvalue()


def _query(wanted: _Filters, start: int) -> str:
    """The address of another part of the list."""
    given = {"experiment": wanted.experiment, "clock": wanted.clock, "state": wanted.state}
    return urlencode({**{name: value for name, value in given.items() if value}, "from": start})


def _detail(line: Line) -> str:
    """The address of one line, figure by figure."""
    point = " ".join(f"{name}={value}" for name, value in line.point.items())
    names = ("experiment", "clock", "workload", "metric", "kernel")
    return "/history?" + urlencode({**{name: getattr(line, name) for name in names}, "point": point})


def _short(variant: str) -> str:
    """A variant that was given as a path, by its last part."""
    return variant.rstrip("/").rpartition("/")[2]


def _unlike(run: Known, other: Known) -> tuple[bool, bool]:
    """Orders what a run may be compared with: first what asks the same question."""
    return (
        other.experiment.name != run.experiment.name,
        other.experiment.design.clock != run.experiment.design.clock,
    )


def _clock(name: str) -> Clock | None:
    return next((known for known in get_args(Clock) if known == name), None)


def _choices(every: Sequence[Line]) -> dict[str, list[str]]:
    """What the lines of an experiment can be narrowed to."""
    names = ("clock", "workload", "metric", "kernel")
    return {name: list(dict.fromkeys(getattr(line, name) for line in every)) for name in names}
