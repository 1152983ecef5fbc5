"""The web application: its pages, its routes, its protection against other sites, and its server.

Each page takes a request and returns HTML; run directories are only read. Requests with another host name are
refused (DNS rebinding: a foreign name that resolves to this host), other pages cannot frame or fetch
anything, and only GET and HEAD are allowed.
"""

import errno
import io
import re
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlencode

import uvicorn
from rich.console import Console
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from kteardown import version
from kteardown.analysis.dataset import headlines
from kteardown.errors import InputError, KteardownError, LabError
from kteardown.history.lines import HistoryFilter, Line, Order, history_of, nothing_found
from kteardown.inputs.load import parse_assignments
from kteardown.model.clock import CLOCKS, Clock
from kteardown.model.experiment import Experiment
from kteardown.model.plan import PlannedBoot
from kteardown.model.point import key
from kteardown.model.record import BASE, LAYOUT, TWIN, BootEnd, KernelProblem
from kteardown.model.result import Result, Verdict
from kteardown.paths import runs_dir
from kteardown.report import contents, saved
from kteardown.report import history_tables as lines
from kteardown.report.charts import stylesheet, templates
from kteardown.report.console import TextConsole
from kteardown.report.diff import (
    compare_results,
    compared_variants,
    comparison_tables,
    passages,
    read,
    summary,
)
from kteardown.report.formats import json as result_json
from kteardown.report.formats import text
from kteardown.report.formats.html import html_report
from kteardown.report.formatting import VERDICTS, percent, scale, without_options
from kteardown.report.history_tables import figure_text, size, when
from kteardown.report.material import BothMaterial, Material, material_of, side_by_side
from kteardown.report.metrics import name_of, point_cells
from kteardown.report.sentence import sentence
from kteardown.report.table import Block, Table, Text
from kteardown.run.live_progress import Follower, Progress
from kteardown.rundir.counting import Attempt, attempts, trials
from kteardown.rundir.directory import RunDir
from kteardown.rundir.environment import guest_differences
from kteardown.rundir.find import RunFolder, all_runs
from kteardown.rundir.snapshot import Snapshot, load, load_plan
from kteardown.visible import visible
from kteardown.vm.kernel_log import TRIAL_MARK, kind_of, plain_line

_LOCKS = Path("/proc/locks")
_KEPT = 512
_NAMED = 3
_STARTED = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-.*")
_SOURCE_LINE = re.compile(r" \([^() ]+:\d+\)")
"""What is added to a line of a stack: the file and line of the source."""
_MOST_BYTES = 4_000_000
_Made = TypeVar("_Made")
_following = Lock()


@dataclass(frozen=True)
class ListedRun:
    """A run in the list of runs. ``state`` is ``running``, ``done`` or ``unfinished``."""

    name: str
    experiment: Experiment
    state: str
    verdicts: Mapping[Verdict, int]
    """How many headline metrics have each verdict; empty unless the state is ``done``."""
    answer: str
    """The result in one sentence, of both clocks if both are done; empty unless the state is ``done``."""
    progress: Progress | None
    """The progress of a run whose state is ``running``."""
    damage: str = ""
    """Why its saved result cannot be read; empty if it can be, or if there is none."""

    @property
    def variants(self) -> list[str]:
        """Return the names of the variants; of a path, the last part."""
        return [short(variant) for variant in self.experiment.variants]

    @property
    def title(self) -> str:
        """Return what the run compares: its variants, or base alone, and the experiment."""
        first, more = self.variants[:_NAMED], len(self.variants) - _NAMED
        names = ", ".join(first) + (f" and {more} more" if more > 0 else "")
        return f"{names or 'base alone'} · {self.experiment.name}"

    @property
    def label(self) -> str:
        """Return one line for a menu: what was compared, on what, what was found, and when."""
        found = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.items())
        where = f"{self.experiment.source}, {self.experiment.design.clock}"
        return f"{self.title} on {where}: {found or 'no comparisons'} ({self.name})"

    @property
    def started(self) -> str:
        """The local time in the name of the run directory; empty if it has none."""
        found = _STARTED.fullmatch(self.name)
        return "{}-{}-{} {}:{}".format(*found.groups()) if found else ""


def listed_runs() -> Iterator[ListedRun]:
    """Yield every run that can be read, newest first."""
    for run in reversed(all_runs()):
        with suppress(OSError, ValueError, KteardownError):
            yield listed_run(run)


def listed_run(run: RunDir) -> ListedRun:
    """Return a run as it is listed.

    Raises OSError, ValueError or KteardownError if the run cannot be read.
    """
    running = is_locked(run)
    done = not running and is_current(run)
    return ListedRun(
        name=run.name,
        experiment=_experiment(run),
        state="running" if running else "done" if done else "unfinished",
        verdicts=_verdicts(run) if done else {},
        answer=_answer(run) if done else "",
        progress=progress(run) if running else None,
        damage="" if running or done else saved.damage_of(RunFolder.of(run)),
    )


def progress(run: RunDir) -> Progress:
    """Return the progress of a run. Raises OSError or ValueError if its records cannot be read."""
    with _following:
        return _follower(run.path).look()


@lru_cache(maxsize=_KEPT)
def _follower(folder: Path) -> Follower:
    return Follower(RunDir(folder))


def short(variant: str) -> str:
    """Return the name of a variant; of a path, the last part."""
    return variant.rstrip("/").rpartition("/")[2]


def _until_changed(
    most: int, files: Callable[[RunDir], Sequence[Path]] = lambda run: [run.result_file]
) -> Callable[[Callable[[RunDir], _Made]], Callable[[RunDir], _Made]]:
    """Keep what a function makes of up to ``most`` runs, each until one of its ``files`` changes."""

    def decorate(make: Callable[[RunDir], _Made]) -> Callable[[RunDir], _Made]:
        @lru_cache(maxsize=most)
        def kept(folder: Path, _stamps: tuple[tuple[int, int] | None, ...]) -> _Made:
            return make(RunDir(folder))

        @wraps(make)
        def look(run: RunDir) -> _Made:
            found = [file.stat() if file.is_file() else None for file in files(run)]
            return kept(run.path, tuple(stat and (stat.st_mtime_ns, stat.st_size) for stat in found))

        return look

    return decorate


@_until_changed(_KEPT, lambda run: [run.result_file, run.records_file, run.profile.records_file])
def is_current(run: RunDir) -> bool:
    """Return whether the run has a result of all its boots that have ended."""
    return run.current_result() is not None


def has_result(run: RunDir) -> bool:
    """Return whether there is a result to show: a current one, or an early one of a run in progress."""
    return run.result_file.is_file() and (is_locked(run) or is_current(run))


def finished(run: RunDir) -> Material | None:
    """Return the run with the result that is shown, or None if there is none yet. Raises KteardownError."""
    return _finished(run) if has_result(run) else None


def on_both_clocks(run: RunDir) -> BothMaterial | None:
    """Return both clocks side by side if ``run`` is one of them and both have a result.

    Raises KteardownError if a result cannot be read.
    """
    folder = _folder(run)
    materials = list(filter(None, map(finished, folder.runs)))
    return side_by_side(folder.name, *materials) if len(materials) == len(CLOCKS) else None


@_until_changed(2)
def charts(run: RunDir) -> str:
    """Return the report with charts of a run with a result, as one HTML file. Raises KteardownError."""
    return html_report(material_of(load(run), _read(run).result))


def _folder(run: RunDir) -> RunFolder:
    """Return the folder with both clocks, if ``run`` is one of them."""
    return RunFolder.open(run.path.parent) if "/" in run.name else RunFolder.of(run)


@_until_changed(_KEPT, lambda run: [run.experiment_file])
def _experiment(run: RunDir) -> Experiment:
    return Experiment.model_validate_json(run.experiment_file.read_bytes())


@_until_changed(_KEPT)
def _verdicts(run: RunDir) -> Mapping[Verdict, int]:
    """Return the verdicts of a run; empty if its result is missing or of an unknown schema."""
    try:
        return Counter(metric.verdict for metric in _read(run).result.metric_verdicts)
    except (OSError, KteardownError):
        return {}


@_until_changed(_KEPT, lambda run: [one.result_file for one in _folder(run).runs])
def _answer(run: RunDir) -> str:
    """Return the sentence of a run, of both clocks if both are done; empty if its result cannot be read."""
    try:
        return without_options(saved.answer_of(_folder(run)) or saved.answer(run))
    except (OSError, KteardownError):
        return ""


def _read(run: RunDir) -> Material:
    snapshot = load(run)
    result = result_json.loads(run.result_file.read_bytes())
    return Material(run.name, result, snapshot.workloads, snapshot.published)


_finished = _until_changed(4)(_read)


def is_locked(run: RunDir) -> bool:
    """Return whether a process holds the lock of ``run``, according to ``/proc/locks``.

    Taking the lock, even for a moment, would make a kteardown that starts in this moment fail.
    Only the inode is compared: on stacked file systems the device in /proc/locks is not that of stat(2).
    """
    try:
        inode = str((run.path / "lock").stat().st_ino)
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    # "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF"; a waiting process has "->" after the number.
    held = (line.split() for line in lines if " -> " not in line)
    return any(len(words) > 5 and words[1] == "FLOCK" and words[5].split(":")[-1] == inode for words in held)


@dataclass(frozen=True)
class Boot:
    """One attempt at a boot, or a boot that was not yet attempted."""

    planned: PlannedBoot
    outcome: str
    """That of the record, or ``running``, ``cut short`` or ``to do``."""
    number: int = 0
    """The number of the attempt."""
    trials: str = ""
    """The trials by their status: ``12 ok, 1 void``."""
    end: BootEnd | None = None

    @property
    def problems(self) -> tuple[KernelProblem, ...]:
        """Return what the kernel reported in its log."""
        return self.end.problems if self.end else ()

    @property
    def has_failed(self) -> bool:
        """Return whether it ended in another way than ok, or its kernel reported a problem."""
        return self.end is not None and (self.outcome != "ok" or bool(self.problems))


@dataclass(frozen=True)
class ConsoleLine:
    """A line of a console: its time, its text, and ``kind``, which is empty for most lines.

    ``kind`` is ``problem`` for the first line of what the kernel reports, ``stack`` for the other lines of a
    report, and ``trial`` where a trial begins. ``problem`` is the number of the report that begins here.
    """

    time: str
    text: str
    kind: str = ""
    problem: int | None = None


def boots_of(run: RunDir, *, running: bool) -> list[Boot]:
    """Return every attempt and every boot that is to do, in the order of the plan.

    Raises KteardownError if the plan cannot be read.
    """
    by_boot: dict[int, list[Attempt]] = {}
    for attempt in attempts(run.records()):
        by_boot.setdefault(attempt.boot, []).append(attempt)
    found = []
    for planned in load_plan(run).boots:
        mine = by_boot.get(planned.index, [])
        if not mine:
            found.append(Boot(planned, "to do"))
        for attempt in mine:
            open_end = "running" if running and attempt is mine[-1] else "cut short"
            outcome = attempt.end.outcome if attempt.end else open_end
            counts = Counter(trial.status or "not ended" for trial in trials(attempt.records))
            listed = ", ".join(f"{count} {status}" for status, count in counts.items())
            found.append(Boot(planned, outcome, attempt.attempt, listed, attempt.end))
    return found


def console_file(run: RunDir, boot: Boot) -> Path | None:
    """Return the file of the console of an attempt, if there is one."""
    file = run.console_path(boot.planned.index, boot.number)
    return file if boot.outcome != "to do" and file.is_file() else None


def console_lines(text: str, problems: Sequence[KernelProblem]) -> Iterator[ConsoleLine]:
    """Yield every line; the lines of a stack have the source lines that the record has."""
    # What the console has of a line of a report: the same without the source lines.
    known = {_SOURCE_LINE.sub("", line): line for problem in problems for line in problem.excerpt}
    first = {problem.line: number for number, problem in reversed(list(enumerate(problems)))}
    for raw in re.split(r"\r?\n", text):
        time, line = plain_line(raw)
        if line.startswith(TRIAL_MARK):
            yield ConsoleLine(time, line, "trial")
        elif line in first:
            yield ConsoleLine(time, line, "problem", first.pop(line))
        elif line and kind_of(line):
            yield ConsoleLine(time, line, "problem")
        elif line in known:
            yield ConsoleLine(time, known[line], "stack")
        else:
            yield ConsoleLine(time, line)


def tail(file: Path) -> tuple[str, bool]:
    """Return the text of a file, of a long one only the end, and whether it is whole."""
    with file.open("rb") as stream:
        size = file.stat().st_size
        stream.seek(max(0, size - _MOST_BYTES))
        content = stream.read(_MOST_BYTES)
    whole = size <= _MOST_BYTES
    return (content if whole else content.partition(b"\n")[2]).decode("utf-8", "replace"), whole


_PAGE = 100
_WIDTH = 118
_IN_DETAIL = 3
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
)


class Pages:
    """The endpoints."""

    def __init__(self) -> None:
        self._templates = templates("kteardown.serve")
        self._templates.filters.update(duration=duration, short=short, without_options=without_options)
        self._templates.globals.update(version=version(), runs_dir=str(runs_dir()))

    def runs(self, request: Request) -> Response:
        """Return the list of runs, newest first."""
        every = list(listed_runs())
        readable = {run.name for run in every}
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
            unreadable=[run.name for run in reversed(all_runs()) if run.name not in readable],
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
        listed = listed_run(run)
        try:
            found, unreadable, both = finished(run), "", on_both_clocks(run)
        except KteardownError as error:
            found, unreadable, both = None, error.message, None
        failed: list[Boot] = []
        with suppress(OSError, KteardownError):
            failed = [boot for boot in self._attempts(run) if boot.has_failed]
        others = [other for other in listed_runs() if other.name != run.name and other.state == "done"]
        # First those of the same clock, then in front of them those of the same experiment as well.
        others.sort(key=lambda other: other.experiment.design.clock != listed.experiment.design.clock)
        others.sort(key=lambda other: other.experiment.name != listed.experiment.name)
        return self._page(
            "run.html.j2",
            run=listed,
            finished=found,
            unreadable=unreadable,
            answer=without_options(sentence(found.result, found.workloads)) if found else "",
            verdicts=contents.verdicts(found) if found else [],
            again=contents.command_for_intervals(found.result) if found else "",
            report=_printed(partial(text.report, found)) if found else "",
            both=_printed(partial(text.show_both_clocks, both)) if both else "",
            clocks=[material.name for material in both.clocks] if both else [],
            failed=failed,
            others=others,
            **self._progress(run, listed),
        )

    def boots(self, request: Request) -> Response:
        """Return the list of the boots of a run, with the outcome of each."""
        run = self._find(request.path_params["run"])
        listed = listed_run(run)
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
                and wanted["outcome"] in ("", boot.outcome, *(["failed"] if boot.has_failed else []))
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
            run=listed_run(run),
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
        listed = listed_run(run)
        page = self._page("live.html.j2", run=listed, **self._progress(run, listed))
        page.headers["x-run-state"] = listed.state
        return page

    def report(self, request: Request) -> Response:
        """Return the report with charts: a separate page, whose script is sandboxed."""
        run = self._find(request.path_params["run"])
        if not has_result(run):
            raise HTTPException(404, f"{run.name} has no result yet")
        return HTMLResponse(visible(charts(run)), headers={"content-security-policy": _REPORT_POLICY})

    def compare(self, request: Request) -> Response:
        """Return the comparison of two runs, or only the form if the query does not name two."""
        names = request.query_params.get("a", ""), request.query_params.get("b", "")
        done = [run for run in listed_runs() if run.state == "done"]
        found, sides = None, list[Result]()
        if all(names):
            a, b = (self._find(name) for name in names)
            for run in (a, b):
                text = run.current_result()
                if text is None:
                    raise InputError(
                        f"{run.name} has no result yet of all its boots",
                        hint="wait until it is done, or continue it with "
                        f"`kteardown run --resume {run.name}`.",
                    )
                sides.append(read(text, run.name))
            found = compare_results(sides[0], sides[1], (a.name, b.name), tuple(guest_differences(a, b)))
        variants = [compared_variants(side) for side in sides]
        return self._page(
            "compare.html.j2",
            runs=done,
            names=names,
            found=found,
            # As ``--map`` of `kteardown diff` names two variants.
            pair="=".join(one[0] for one in variants) if all(variants) else "",
            passages=list(passages(found)) if found else [],
            tables=comparison_tables(found) if found else [],
            summary=summary(found.rows) if found else "",
        )

    def history(self, request: Request) -> Response:
        """Return the history of an experiment over kernel releases and time."""
        query = request.query_params
        listed = list(listed_runs())
        experiments = sorted({run.experiment.name for run in listed})
        # One experiment at a time; by default that of the newest run.
        experiment = query.get("experiment") or (listed[0].experiment.name if listed else "")
        if experiment and experiment not in experiments:
            raise _unknown("experiment", experiment, experiments)
        named = query.get("clock", "")
        clock: Clock | None = next((known for known in CLOCKS if known == named), None)
        if named and clock is None:
            raise _unknown("clock", named, tuple(CLOCKS))
        wanted = HistoryFilter(
            experiment=experiment,
            workload=query.get("workload") or None,
            metric=query.get("metric") or None,
            kernel=query.get("kernel") or None,
            clock=clock,
            points=parse_assignments(query.get("point", "").split(), "point"),
        )
        order: Order = "time" if query.get("order") == "time" else "release"
        every = history_of(all_runs(), HistoryFilter(experiment=experiment), order=order)
        found = every.model_copy(update={"lines": tuple(filter(wanted.of_line, every.lines))})
        problem = nothing_found(every.lines, wanted) if every.lines and not found.lines else None
        shown = lines.worth_showing(found, every_metric=wanted.metric is not None)
        in_detail = len(shown.lines) <= _IN_DETAIL
        names = ("clock", "workload", "metric", "kernel")
        return self._page(
            "history.html.j2",
            404 if problem else 200,
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
            else [(lines.summary(group), [_url(line) for line in group]) for group in lines.grouped(shown)],
            notes=[] if problem else list(lines.left_out(found, shown, on_page=True)),
        )

    def error(self, status: int, message: str, hint: str) -> Response:
        """Return the error page with this HTTP status."""
        return self._page("error.html.j2", status, status=status, message=message, hint=hint)

    def _progress(self, run: RunDir, listed: ListedRun) -> dict[str, Any]:
        """Return progress and medians of a run that is not done."""
        if listed.state == "done":
            return {"progress": None, "medians": []}
        try:
            so_far = listed.progress or progress(run)
        except (OSError, ValueError):
            return {"progress": None, "medians": []}
        return {"progress": so_far, "medians": median_tables(so_far, load(run))}

    def _find(self, name: str) -> RunDir:
        # The run with exactly this name, so that a request can never open another folder.
        run = next((run for run in all_runs() if run.name == name), None)
        if run is None:
            raise HTTPException(404, f"there is no run {name!r}")
        return run

    def _attempts(self, run: RunDir) -> list[Boot]:
        return boots_of(run, running=listed_run(run).state == "running")

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

    def file(self, request: Request, kind: str, which: str) -> Response:
        """Return the file of a result unchanged, with the media type ``kind``."""
        run = self._find(request.path_params["run"])
        file = getattr(run, which)
        if not (has_result(run) and file.is_file()):
            raise HTTPException(404, f"{run.name} has no result yet")
        name = f"{run.name.replace('/', '-')}-{file.name}"
        return Response(
            file.read_bytes(), media_type=kind, headers={"content-disposition": f'inline; filename="{name}"'}
        )

    def _page(self, template: str, code: int = 200, /, **values: Any) -> HTMLResponse:
        return HTMLResponse(visible(self._templates.get_template(template).render(values)), code)


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


def _url(line: Line) -> str:
    """Return the URL of the history of one line with all its figures."""
    point = " ".join(f"{name}={value}" for name, value in line.point.items())
    names = ("experiment", "clock", "workload", "metric", "kernel")
    return "/history?" + urlencode({**{name: getattr(line, name) for name in names}, "point": point})


def _unknown(what: str, name: str, known: Sequence[str]) -> InputError:
    return InputError(f"there is no {what} {name!r}", hint=f"choose one of: {', '.join(known)}.")


_MINUTE_S, _HOUR_S = 60, 3600


def median_tables(progress: Progress, snapshot: Snapshot) -> list[Table]:
    """Return a table for each headline metric, with a row for each point.

    A row has the median of each kernel so far and its change from base. Intervals and verdicts are only in
    the result, because they need enough boots.
    """
    medians = {(w, m, key(dict(point))): kernels for (w, m, point), kernels in progress.medians.items()}
    kernels = list(dict.fromkeys(name for found in medians.values() for name in found))
    shown = [name for name in kernels if name not in (BASE, TWIN, LAYOUT)]
    experiment, points, result = snapshot.experiment, snapshot.plan.points, []
    for workload, metric, spec in headlines(experiment, snapshot.workloads):
        at = [p for p in points if p.workload == workload and (workload, metric, p.full) in medians]
        if not at:
            continue
        found = [medians[workload, metric, point.full] for point in at]
        unit = scale(spec.unit, experiment.design.clock, (v for row in found for v in row.values()))
        names, keys = point_cells([point.shown for point in at])
        rows: list[Sequence[Text]] = []
        for key_cells, row in zip(keys, found, strict=True):
            base, texts = row.get(BASE, 0.0), {name: unit.text(value) for name, value in row.items()}
            for name in row.keys() & shown if base > 0 else ():
                texts[name] += f" ({percent(row[name] / base)})"
            rows.append((*key_cells, *(texts.get(kernel, "-") for kernel in (BASE, *shown))))
        name = f"{workload}: {name_of(metric, spec)} ({metric})"
        title = f"{name} in {unit.unit}, medians so far, {spec.better} is better"
        result.append(Table(title, Block.of((*names, BASE, *shown), rows)))
    return result


def duration(seconds: float) -> str:
    """Return a duration as text: ``40 s``, ``12 min``, ``2 h 05 min``."""
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    minutes = round(seconds / _MINUTE_S)
    if minutes * _MINUTE_S < 2 * _HOUR_S:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02} min"


_LOOPBACK = "127.0.0.1"
_PATIENCE_S = 2
"""How long a response may still take when the server stops."""
HOSTS = ("127.0.0.1", "localhost")
"""The host names that requests may have; those through an ssh tunnel have one of them, too."""
_HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
_MONTH = "max-age=2592000, immutable"


def make_app() -> Starlette:
    """Return the application. Every request reads the runs directory as it is at that time."""
    pages = Pages()
    routes: dict[str, Callable[..., Any]] = {
        "/": pages.runs,
        "/runs/{run:path}/live": pages.live,
        "/runs/{run:path}/report.html": pages.report,
        "/runs/{run:path}/result.json": partial(pages.file, kind="application/json", which="result_file"),
        "/runs/{run:path}/report.md": partial(
            pages.file, kind="text/plain; charset=utf-8", which="report_file"
        ),
        "/runs/{run:path}/boots/{boot:int}/console.log": pages.console_text,
        "/runs/{run:path}/boots/{boot:int}": pages.console,
        "/runs/{run:path}/boots": pages.boots,
        # Last, because the id of one clock of a run on both has a slash.
        "/runs/{run:path}": pages.run,
        "/compare": pages.compare,
        "/history": pages.history,
        "/static/{version}/serve.css": _asset("text/css", "serve.css", stylesheet()),
        "/static/{version}/follow.js": _asset("text/javascript", "follow.js"),
    }

    async def error_page(request: Request, error: Exception) -> Response:
        status, message = 500, "an internal error"
        hint = "see the terminal in which `kteardown serve` runs for the cause."
        if isinstance(error, KteardownError):
            status = 400 if isinstance(error, InputError) else 500
            message, hint = error.message, error.hint
        elif isinstance(error, HTTPException):
            status, message, hint = error.status_code, error.detail, ""
        response = pages.error(status, message, hint)
        # What is not expected is answered outside of the middleware.
        response.headers.update(_HEADERS)
        return response

    return Starlette(
        routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in routes.items()],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=_with_headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
        ],
        exception_handlers={KteardownError: error_page, HTTPException: error_page, Exception: error_page},
    )


async def _with_headers(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Add ``_HEADERS`` to every response that does not have them."""
    response = await call_next(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _asset(kind: str, name: str, before: str = "") -> Callable[[Request], Awaitable[Response]]:
    text = before + files("kteardown.serve").joinpath("page", name).read_text(encoding="utf-8")

    async def answer(_request: Request) -> Response:
        return Response(text, media_type=kind, headers={"cache-control": _MONTH})

    return answer


def listen(port: int) -> socket.socket:
    """Listen on ``port`` of the loopback interface; 0 is any free port.

    Raises InputError if the port is in use or not allowed, LabError if the interface is not usable.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((_LOOPBACK, port))
        found.listen()
    except OSError as error:
        found.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise InputError(
                f"--port {port}: cannot be used: {error.strerror}",
                hint="choose another port, or --port 0 for any free one.",
            ) from error
        raise LabError(
            f"cannot listen on {_LOOPBACK}: {error.strerror}",
            hint="check that the loopback interface is up: `ip link show lo`.",
        ) from error
    return found


def address(listening: socket.socket) -> str:
    """Return the URL of the server."""
    host, port = listening.getsockname()
    return f"http://{host}:{port}/"


def run(listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM. After SIGINT, close everything and raise KeyboardInterrupt."""
    config = uvicorn.Config(
        make_app(),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    uvicorn.Server(config).run(sockets=[listening])


WIDTH, HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 12, 14, 40
_ROOM = 0.08
"""Free space above and below the figures, as a share of their span."""
_LABEL_WIDTH = 76


def picture(line: Line) -> dict[str, Any]:
    """Return the marks of ``line``, in the units of the view box: figures at equal distances, larger higher.

    ``dots`` are the figures with the range of their boots and the text of their tooltip; ``levels`` the
    medians between two changes of level: left end, right end and ``y``; ``breaks`` these changes, between two
    figures: ``x``, the verdict, and the tooltip; ``scale`` and ``releases`` the labels of the two axes.
    """
    values = [figure.value for figure in line.figures]
    least, most = min(values), max(values)
    room = _ROOM * (most - least) or 0.5 * abs(most) or 1.0
    low, high = least - room, most + room

    def y(value: float) -> float:
        inside = min(max(value, low), high)
        return round(HEIGHT - _BOTTOM - (inside - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM), 1)

    step = (WIDTH - _LEFT - _RIGHT) / len(values)

    def x(index: float) -> float:
        return round(_LEFT + (index + 0.5) * step, 1)

    dots, releases, last, free = [], list[tuple[float, str]](), "", 0.0
    for index, figure in enumerate(line.figures):
        text = f"{figure.release}, {when(figure)}: {figure_text(line, figure.value)} ({figure.run})"
        dots.append((x(index), y(figure.value), y(figure.high), y(figure.low), text))
        # A label is under the first figure of each release, unless it would overlap the one before.
        if figure.release != last and index * step >= free:
            releases.append((x(index), figure.release))
            free = index * step + _LABEL_WIDTH
        last = figure.release
    # Without levels, the line was not searched for changes.
    ends = [] if line.unlooked else [0, *(shift.index for shift in line.shifts), len(values)]
    return {
        "dots": dots,
        "levels": [(x(a - 0.3), x(b - 0.7), y(median(values[a:b]))) for a, b in pairwise(ends)],
        "breaks": [(x(s.index - 0.5), s.verdict, f"{s.verdict}: {size(line, s)}") for s in line.shifts],
        "scale": [(y(value), figure_text(line, value)) for value in sorted({least, most})],
        "releases": releases,
        "box": (_LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM, WIDTH, HEIGHT),
    }
