"""The pages: each takes a request and returns HTML. Run directories are only read."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
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
from kteardown.model.clock import CLOCKS, Clock
from kteardown.paths import runs_dir
from kteardown.report import contents
from kteardown.report import history_tables as lines
from kteardown.report.console import TextConsole
from kteardown.report.diff import compare_results, comparison_tables, passages, summary
from kteardown.report.formats import text
from kteardown.report.formatting import VERDICTS, without_options
from kteardown.report.sentence import sentence
from kteardown.report.side import Side, read
from kteardown.rundir.directory import RunDir
from kteardown.rundir.environment import guest_differences
from kteardown.rundir.find import all_runs
from kteardown.rundir.snapshot import load
from kteardown.serve import live
from kteardown.serve.boots import Boot, boots_of, console_file, console_lines, failed_boots, tail
from kteardown.serve.chart import picture
from kteardown.serve.runs import (
    ListedRun,
    Runs,
    charts,
    finished,
    has_result,
    on_both_clocks,
    short,
)
from kteardown.visible import visible

_PAGE = 100
_WIDTH = 118
_IN_DETAIL = 3
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
)


class Pages:
    """The endpoints, which share one cache of runs."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._templates = Environment(
            loader=PackageLoader("kteardown.serve", "page"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        self._templates.filters.update(
            duration=live.duration, percent=live.share, short=short, without_options=without_options
        )
        self._templates.globals.update(version=version(), runs_dir=str(runs_dir()))

    def runs(self, request: Request) -> Response:
        """Return the list of runs, newest first."""
        every = list(self._runs.all())
        query = request.query_params
        names = ("experiment", "variant", "clock", "state", "verdict")
        wanted = {name: query.get(name, "") for name in names}
        found = [run for run in every if _passes(run, wanted)]
        start = int(query["from"]) if query.get("from", "").isdecimal() else 0
        return self._page(
            "runs.html.j2",
            runs=found[start : start + _PAGE],
            total=len(found),
            every=len(every),
            unreadable=self._runs.unreadable(),
            start=start,
            newer=_query(wanted, max(0, start - _PAGE)) if start else "",
            older=_query(wanted, start + _PAGE) if start + _PAGE < len(found) else "",
            wanted=wanted,
            experiments=sorted({run.experiment.name for run in every}),
            variants=sorted({variant for run in every for variant in run.variants}),
            verdicts=[verdict for verdict in VERDICTS if any(run.verdicts.get(verdict) for run in every)],
        )

    def run(self, request: Request) -> Response:
        """Return the page of one run: its verdicts and report, and its progress while it is measured."""
        run = self._find(request.path_params["run"])
        listed = self._runs.listed(run)
        try:
            found, unreadable, both = finished(run), "", on_both_clocks(run)
        except KteardownError as error:
            found, unreadable, both = None, error.message, None
        others = [other for other in self._runs.all() if other.name != run.name and other.state == "done"]
        return self._page(
            "run.html.j2",
            run=listed,
            finished=found,
            unreadable=unreadable,
            answer=without_options(sentence(found.result, found.workloads)) if found else "",
            verdicts=contents.verdicts(found.result, found.workloads) if found else [],
            again=contents.command_for_intervals(found.result) if found else "",
            report=_printed(partial(text.render, found.result, found.workloads, found.reference))
            if found
            else "",
            both=_printed(partial(text.show_both_clocks, both)) if both else "",
            clocks=[material.name for material in both.clocks] if both else [],
            failed=failed_boots(run, running=listed.state == "running"),
            others=sorted(others, key=lambda other: _differs(listed, other)),
            **self._progress(run, listed),
        )

    def boots(self, request: Request) -> Response:
        """Return the list of the boots of a run, with the outcome of each."""
        run = self._find(request.path_params["run"])
        listed = self._runs.listed(run)
        query = request.query_params
        wanted = {name: query.get(name, "") for name in ("kernel", "outcome")}
        every = boots_of(run, running=listed.state == "running")
        return self._page(
            "boots.html.j2",
            run=listed,
            boots=[
                boot
                for boot in every
                if wanted["kernel"] in ("", boot.planned.kernel)
                and (
                    wanted["outcome"] in ("", boot.outcome)
                    or (wanted["outcome"] == "failed" and boot.has_failed)
                )
            ],
            every=len(every),
            wanted=wanted,
            kernels=list(dict.fromkeys(boot.planned.kernel for boot in every)),
            outcomes=list(dict.fromkeys(boot.outcome for boot in every)),
        )

    def console(self, request: Request) -> Response:
        """Return the console of a boot, with what its kernel reported highlighted."""
        run, boot = self._boot(request)
        file = console_file(run, boot)
        text, whole = tail(file) if file else ("", True)
        return self._page(
            "console.html.j2",
            run=self._runs.listed(run),
            boot=boot,
            attempts=[other for other in self._attempts(run) if other.planned.index == boot.planned.index],
            lines=list(console_lines(text, boot.problems)),
            has_console=file is not None,
            whole=whole,
        )

    def console_text(self, request: Request) -> Response:
        """Return the file of a console unchanged."""
        run, boot = self._boot(request)
        file = console_file(run, boot)
        if file is None:
            raise HTTPException(404, f"boot {boot.planned.index} of {run.name} has no console yet")
        return Response(file.read_bytes(), media_type="text/plain; charset=utf-8")

    def live(self, request: Request) -> Response:
        """Return the part of a run's page that changes while the run is measured."""
        run = self._find(request.path_params["run"])
        listed = self._runs.listed(run)
        page = self._page("live.html.j2", run=listed, **self._progress(run, listed))
        page.headers["x-run-state"] = listed.state
        return page

    def report(self, request: Request) -> Response:
        """Return the report with charts: a separate page, whose script is sandboxed."""
        run = self._find(request.path_params["run"])
        if not has_result(run):
            raise HTTPException(404, f"{run.name} has no result yet")
        return HTMLResponse(visible(charts(run)), headers={"content-security-policy": _REPORT_POLICY})

    def result_json(self, request: Request) -> Response:
        """Return ``result.json`` unchanged."""
        return self._file(request, "application/json", "result_file")

    def markdown(self, request: Request) -> Response:
        """Return ``report.md`` unchanged."""
        return self._file(request, "text/plain; charset=utf-8", "report_file")

    def compare(self, request: Request) -> Response:
        """Return the comparison of two runs, or only the form if the query does not name two."""
        names = request.query_params.get("a", ""), request.query_params.get("b", "")
        done = [run for run in self._runs.all() if run.state == "done"]
        found, sides = None, list[Side]()
        if all(names):
            a, b = (self._find(name) for name in names)
            sides = [read(_result_of(run), run.name) for run in (a, b)]
            found = compare_results(sides[0], sides[1], (a.name, b.name), tuple(guest_differences(a, b)))
        return self._page(
            "compare.html.j2",
            runs=done,
            names=names,
            found=found,
            # As ``--map`` of `kteardown diff` names two variants.
            pair="=".join(side.variants[0] for side in sides) if all(side.variants for side in sides) else "",
            passages=list(passages(found)) if found else [],
            tables=comparison_tables(found) if found else [],
            summary=summary(found.rows) if found else "",
        )

    def history(self, request: Request) -> Response:
        """Return the history of an experiment over kernel releases and time."""
        query = request.query_params
        runs = list(self._runs.all())
        experiments = sorted({run.experiment.name for run in runs})
        # One experiment at a time; by default that of the newest run.
        experiment = query.get("experiment") or (runs[0].experiment.name if runs else "")
        if experiment and experiment not in experiments:
            raise _unknown("experiment", experiment, experiments)
        named = query.get("clock", "")
        clock: Clock | None = next((known for known in CLOCKS if known == named), None)
        if named and clock is None:
            raise _unknown("clock", named, tuple(CLOCKS))
        wanted = archive.HistoryFilter(
            experiment=experiment,
            workload=query.get("workload") or None,
            metric=query.get("metric") or None,
            kernel=query.get("kernel") or None,
            clock=clock,
            points=parse_assignments(query.get("point", "").split(), "point"),
        )
        order: Order = "time" if query.get("order") == "time" else "release"
        every = archive.history_of(all_runs(), archive.HistoryFilter(experiment=experiment), order=order)
        found = every.model_copy(update={"lines": tuple(filter(wanted.of_line, every.lines))})
        problem = archive.nothing_found(every.lines, wanted) if every.lines and not found.lines else None
        shown = lines.worth_showing(found, every_metric=wanted.metric is not None)
        in_detail = len(shown.lines) <= _IN_DETAIL
        names = ("clock", "workload", "metric", "kernel")
        page = self._page(
            "history.html.j2",
            problem=problem,
            experiments=experiments,
            choices={
                name: list(dict.fromkeys(getattr(line, name) for line in every.lines)) for name in names
            },
            metric_names={line.metric: lines.called(line) for line in every.lines},
            query={"experiment": experiment, **dict(query)},
            order=order,
            details=[(line, lines.detail(line), picture(line)) for line in shown.lines] if in_detail else [],
            tables=[]
            if in_detail
            else [
                (lines.summary(group), [_detail(line) for line in group]) for group in lines.grouped(shown)
            ],
            notes=[] if problem else list(lines.left_out(found, shown, on_page=True)),
        )
        page.status_code = 404 if problem else 200
        return page

    def error(self, status: int, message: str, hint: str) -> Response:
        """Return the error page with this HTTP status."""
        page = self._page("error.html.j2", status=status, message=message, hint=hint)
        page.status_code = status
        return page

    def _progress(self, run: RunDir, listed: ListedRun) -> dict[str, Any]:
        """Return progress and medians of a run that is not done."""
        if listed.state == "done":
            return {"progress": None, "medians": []}
        try:
            progress = listed.progress or self._runs.progress(run)
        except (OSError, ValueError):
            return {"progress": None, "medians": []}
        return {"progress": progress, "medians": live.median_tables(progress, load(run))}

    def _find(self, name: str) -> RunDir:
        run = self._runs.find(name)
        if run is None:
            raise HTTPException(404, f"there is no run {name!r}")
        return run

    def _attempts(self, run: RunDir) -> list[Boot]:
        return boots_of(run, running=self._runs.listed(run).state == "running")

    def _boot(self, request: Request) -> tuple[RunDir, Boot]:
        """Return the boot of the path: the attempt that the query names, or the last one."""
        run, index = self._find(request.path_params["run"]), request.path_params["boot"]
        attempt = request.query_params.get("attempt")
        for boot in reversed(self._attempts(run)):
            if boot.planned.index == index and attempt in (None, str(boot.number)):
                return run, boot
        raise HTTPException(
            404, f"{run.name} has no boot {index}{f' with attempt {attempt}' if attempt else ''}"
        )

    def _file(self, request: Request, kind: str, which: str) -> Response:
        run = self._find(request.path_params["run"])
        file = getattr(run, which)
        if not (has_result(run) and file.is_file()):
            raise HTTPException(404, f"{run.name} has no result yet")
        name = f"{run.name.replace('/', '-')}-{file.name}"
        return Response(
            file.read_bytes(), media_type=kind, headers={"content-disposition": f'inline; filename="{name}"'}
        )

    def _page(self, template: str, **values: Any) -> HTMLResponse:
        return HTMLResponse(visible(self._templates.get_template(template).render(values)))


def _result_of(run: RunDir) -> bytes:
    text = run.current_result()
    if text is None:
        raise InputError(
            f"{run.name} has no result yet of all its boots",
            hint=f"wait until it is done, or continue it with `kteardown run --resume {run.name}`.",
        )
    return text


def _printed(show: Callable[[Console], None]) -> str:
    """Return what ``show`` prints on a terminal."""
    out = io.StringIO()
    show(TextConsole(file=out, width=_WIDTH, color_system=None, force_terminal=False))
    return out.getvalue()


def _passes(run: ListedRun, wanted: Mapping[str, str]) -> bool:
    """Return whether the filters of the list pass a run; an empty string passes everything."""
    has: dict[str, Iterable[str]] = {
        "experiment": (run.experiment.name,),
        "variant": run.variants,
        "clock": (run.experiment.design.clock,),
        "state": (run.state,),
        "verdict": run.verdicts,
    }
    return all(wanted[name] in ("", *values) for name, values in has.items())


def _query(wanted: Mapping[str, str], start: int) -> str:
    """Return the query of another page of the list."""
    return urlencode({**{name: value for name, value in wanted.items() if value}, "from": start})


def _detail(line: Line) -> str:
    """Return the URL of the history of one line with all its figures."""
    point = " ".join(f"{name}={value}" for name, value in line.point.items())
    names = ("experiment", "clock", "workload", "metric", "kernel")
    return "/history?" + urlencode({**{name: getattr(line, name) for name in names}, "point": point})


def _differs(run: ListedRun, other: ListedRun) -> tuple[bool, bool]:
    """Return a sort key that puts runs of the same experiment and clock first."""
    return (
        other.experiment.name != run.experiment.name,
        other.experiment.design.clock != run.experiment.design.clock,
    )


def _unknown(what: str, name: str, known: Sequence[str]) -> InputError:
    return InputError(f"there is no {what} {name!r}", hint=f"choose one of: {', '.join(known)}.")
