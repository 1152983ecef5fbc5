"""Read the figures of many runs, arrange them in lines, and find where a line changes.

A line has figures that can be compared: of one experiment, clock, workload, metric and point, one
set of patches, and guests with equally many CPUs. In real time they are also of one CPU model of
the host and one acceleration, because another machine gives other figures.

The segmentation of a line is optimal (PELT), on the logarithms of the figures. In real time the
cost is the absolute deviation from the median of a level, and the penalty of a change ``2.5 s log
n`` with the noise ``s`` and the number ``n`` of figures. For instruction counts, of which a single
one can be a level, it is the squared deviation from the mean, and ``2 (2 s)^2 log n``.
METHODOLOGY.md has the reasons and sources.

A drift is a metric that has become worse by more than its margin, in steps each of which is within
it.
"""

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from kteardown.errors import InputError, did_you_mean
from kteardown.model.clock import Clock, value_unit
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.record import LAYOUT
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Better, Document, Metric, StrictModel
from kteardown.rundir.directory import RunDir
from kteardown.rundir.environment import differences
from kteardown.rundir.snapshot import load
from kteardown_history.change_points import change_points

_INTEGER = re.compile(r"-?\d+")
_FIGURES = """
SELECT run, kernel, workload, metric, params, boot, median(value), any_value(b.acceleration),
    coalesce(any_value(b.release), ''), coalesce(any_value(b.cpus_online), 0),
    coalesce(strftime(any_value(b.started_at), '%Y-%m-%dT%H:%M:%S'), '')
FROM samples JOIN boots AS b USING (run, kernel, boot, attempt)
    JOIN counting USING (run, boot, attempt, trial)
WHERE NOT warmup AND usable
GROUP BY run, kernel, workload, metric, params, boot ORDER BY run, boot"""
Order = Literal["release", "time"]
UNPATCHED = "unpatched"
_FACTS = ("release", "source", "compiler", "config_hash")
_HASH_DIGITS = 12
_FINAL = 1 << 30
"""The candidate number of a final release, so that it is later than any release candidate."""
_LineKey = tuple[object, ...]
_NAMES = ("experiment", "clock", "workload", "metric", "kernel")
_NAMED = 6
LEAST = 0.02
"""The margin of the verdict "same", unless the user gives another one."""


@dataclass(frozen=True)
class BootFigure:
    """The median of a metric's samples at one point in one boot. ``started_at`` is UTC, ISO 8601.

    Without a ``hello`` record the release is empty and the number of CPUs is 0.
    """

    run: str
    kernel: str
    workload: str
    metric: str
    params: tuple[tuple[str, ParamValue], ...]
    boot: int
    value: float
    acceleration: str
    release: str
    cpus: int
    started_at: str


def boot_figures(runs: Sequence[RunDir]) -> tuple[list[BootFigure], Mapping[str, str]]:
    """Return the figures of ``runs``, ordered by run and boot; and why runs are left out, by
    name."""
    # Imported here: duckdb is an extra.
    from kteardown_history.sql.database import database

    with database(runs) as connection:
        rows = connection.query(_FIGURES).rows
        figures = [
            BootFigure(run, kernel, workload, metric, _params(params), *others)
            for run, kernel, workload, metric, params, *others in rows
        ]
        return figures, connection.skipped


def _params(texts: Mapping[str, str]) -> tuple[tuple[str, ParamValue], ...]:
    return tuple(
        (name, int(text) if _INTEGER.fullmatch(text) else text) for name, text in texts.items()
    )


class RunFigure(StrictModel):
    """The result of one run for one kernel: the median over its boots, and its lowest and highest
    boot.

    ``at`` is the start of the first of the boots, UTC, ISO 8601.
    """

    run: str
    kernel: str
    release: str
    at: str
    value: float
    low: float
    high: float
    boots: int


class Shift(StrictModel):
    """A change of level: ``index`` is the first figure after it, ``ratio`` that of the medians of
    both levels.

    ``why`` lists the recorded differences between the figures before and after the change.
    """

    index: int
    before: float
    after: float
    ratio: float | None
    verdict: Literal["better", "worse"]
    why: tuple[str, ...]


class Line(StrictModel):
    """Figures that can be compared, in order.

    ``kernel`` is ``unpatched`` or the name of the patches. ``unlooked`` is the reason why there was
    no search for changes; it is empty if there was one.
    """

    experiment: str
    clock: Clock
    workload: str
    metric: str
    name: str
    """The name of the metric for people; empty if its workload has none."""
    unit: str
    """That of the workload's file."""
    value_unit: str
    """That of ``value``, ``low``, ``high``, ``before`` and ``after``: what the clock gives."""
    better: Better
    headline: bool
    kernel: str
    point: dict[str, ParamValue]
    cpus: int
    host: str
    """In real time, the CPU model of the host and the acceleration; otherwise empty."""
    figures: tuple[RunFigure, ...]
    shifts: tuple[Shift, ...]
    unlooked: str


class History(Document):
    """Every line. ``least`` is the relative size of the smallest change; ``unread`` names
    unreadable runs."""

    order: Order
    least: float
    lines: tuple[Line, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunFacts:
    """What a line needs of a run besides its figures; ``metrics`` are by workload and name."""

    experiment: str
    clock: Clock
    kernels: Mapping[str, KernelFacts]
    machine: Mapping[str, Any]
    metrics: Mapping[tuple[str, str], Metric]


def history(
    figures: Iterable[BootFigure], runs: Mapping[str, RunFacts], *, order: Order, least: float
) -> History:
    """Return the lines that ``figures`` form, ordered by point.

    Figures of base's twins and of unknown runs are ignored, and those of metrics that the workload
    of their run does not declare: nothing gives their unit or which direction is better.
    """
    keys: dict[_LineKey, list[BootFigure]] = {}
    for figure in figures:
        facts = runs.get(figure.run)
        if (
            facts is not None
            and figure.kernel != LAYOUT
            and figure.kernel in facts.kernels
            and (figure.workload, figure.metric) in facts.metrics
        ):
            params = tuple(sorted(figure.params))
            question = (facts.experiment, facts.clock, figure.workload, figure.metric, params)
            keys.setdefault(
                (*question, _patches(figure, facts), figure.cpus, _host(figure, facts)), []
            ).append(figure)
    lines = (_line(line_figures, runs, order, least) for line_figures in keys.values())
    return History(order=order, least=least, lines=tuple(sorted(lines, key=_line_key)))


def release_key(release: str) -> tuple[object, ...]:
    """Return a key that orders releases by date: 6.9 before 6.12, 7.0-rc3 before 7.0, other names
    first."""
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?(?:-rc(\d+))?", release)
    if numbers is None:
        return (0, 0, 0, 0, release)
    major, minor, patch, candidate = numbers.groups()
    return (int(major), int(minor), int(patch or 0), int(candidate or _FINAL), release)


def _patches(figure: BootFigure, facts: RunFacts) -> str:
    """Return the name of the patches. A second source is a kernel without patches, as base is."""
    kernel = facts.kernels[figure.kernel]
    return figure.kernel if kernel.patch_set is not None or kernel.series else UNPATCHED


def _host(figure: BootFigure, facts: RunFacts) -> str:
    if facts.clock != "wall":
        return ""
    model = (facts.machine.get("cpu") or {}).get("model") or "unknown CPU"
    return f"{model}, {figure.acceleration}"


def _line(
    figures: Sequence[BootFigure], runs: Mapping[str, RunFacts], order: Order, least: float
) -> Line:
    first = figures[0]
    facts = runs[first.run]
    metric = facts.metrics[first.workload, first.metric]
    parts: dict[tuple[str, str], list[BootFigure]] = {}
    for figure in figures:
        parts.setdefault((figure.run, figure.kernel), []).append(figure)

    def key(boots: Sequence[BootFigure]) -> tuple[object, ...]:
        release = release_key(boots[0].release)
        at = boots[0].started_at
        return (
            (release, at, boots[0].kernel) if order == "release" else (at, release, boots[0].kernel)
        )

    ordered = sorted(parts.values(), key=key)
    values = [[figure.value for figure in boots] for boots in ordered]
    points, unlooked = change_points(values, exact=facts.clock != "wall", least=least)
    return Line(
        experiment=facts.experiment,
        clock=facts.clock,
        workload=first.workload,
        metric=first.metric,
        name=metric.name,
        unit=metric.unit,
        value_unit=value_unit(metric.unit, facts.clock),
        better=metric.better,
        headline=metric.headline,
        kernel=_patches(first, facts),
        point=dict(first.params),
        cpus=first.cpus,
        host=_host(first, facts),
        figures=tuple(_figure(boots) for boots in ordered),
        shifts=tuple(_shifts(ordered, points, metric.better, runs)),
        unlooked=unlooked,
    )


def _line_key(line: Line) -> tuple[object, ...]:
    # Numbers before words, and each by its own order.
    point = [(isinstance(value, str), value) for _, value in line.point.items()]
    question = (line.experiment, line.clock, line.workload, not line.headline, line.metric)
    return (
        *question,
        line.kernel != UNPATCHED,
        line.kernel,
        line.cpus,
        line.host,
        sorted(line.point),
        point,
    )


def _figure(boots: Sequence[BootFigure]) -> RunFigure:
    values = [boot.value for boot in boots]
    return RunFigure(
        run=boots[0].run,
        kernel=boots[0].kernel,
        release=boots[0].release,
        at=min(boot.started_at for boot in boots),
        value=statistics.median(values),
        low=min(values),
        high=max(values),
        boots=len(boots),
    )


def _shifts(
    ordered: Sequence[Sequence[BootFigure]],
    points: Sequence[int],
    better: Better,
    runs: Mapping[str, RunFacts],
) -> Iterator[Shift]:
    medians = [statistics.median(boot.value for boot in boots) for boots in ordered]
    ends = [0, *points, len(medians)]
    for start, index, end in zip(ends, ends[1:], ends[2:], strict=False):
        before = statistics.median(medians[start:index])
        after = statistics.median(medians[index:end])
        yield Shift(
            index=index,
            before=before,
            after=after,
            ratio=after / before if before > 0 and after > 0 else None,
            verdict="better" if (after < before) == (better == "lower") else "worse",
            why=tuple(_why(ordered[index - 1][0], ordered[index][0], runs)),
        )


def _why(a: BootFigure, b: BootFigure, runs: Mapping[str, RunFacts]) -> Iterator[str]:
    """Yield the recorded differences between two runs."""
    facts_a = runs[a.run]
    facts_b = runs[b.run]
    ours = facts_a.kernels[a.kernel]
    theirs = facts_b.kernels[b.kernel]
    differ = False
    for name in _FACTS:
        our_fact = getattr(ours, name)
        their_fact = getattr(theirs, name)
        if our_fact != their_fact:
            differ = True
            short = _HASH_DIGITS if name.endswith("_hash") else None
            yield f"{name.replace('_', ' ')}: {str(our_fact)[:short]} / {str(their_fact)[:short]}"
    exact = facts_a.clock != "wall"
    for sentence in differences(facts_a.machine, facts_b.machine, arch=ours.arch, exact=exact):
        differ = True
        yield sentence
    if not differ and ours.image_hash != theirs.image_hash:
        yield "the patches"
    elif not differ:
        host = ", so the cause is the host" if facts_a.clock == "wall" else ""
        yield f"nothing that is recorded: the image of the kernel is the same{host}"


@dataclass(frozen=True)
class HistoryFilter:
    """The filter for lines of the history.

    None or empty matches everything; ``points`` has values by parameter.
    """

    experiment: str | None = None
    workload: str | None = None
    metric: str | None = None
    kernel: str | None = None
    clock: Clock | None = None
    points: Mapping[str, Sequence[ParamValue]] = field(default_factory=dict)


def history_of(
    runs: Sequence[RunDir], wanted: HistoryFilter, *, order: Order = "release", least: float = LEAST
) -> History:
    """Return the matching lines of ``runs``. Runs that cannot be read are listed in ``unread``."""
    facts_by_run: dict[str, RunFacts] = {}
    unread: list[str] = []
    for run in runs:
        try:
            snapshot = load(run)
            experiment = snapshot.experiment
            fits = wanted.clock in (None, experiment.design.clock)
            if fits and wanted.experiment in (None, experiment.name):
                facts_by_run[run.name] = RunFacts(
                    experiment=experiment.name,
                    clock=snapshot.experiment.design.clock,
                    kernels=dict(snapshot.kernels),
                    machine=snapshot.run.environment()["machine"],
                    metrics={
                        (name, metric): spec
                        for name, workload in snapshot.workloads.items()
                        for metric, spec in workload.metrics.items()
                    },
                )
        except (OSError, ValueError, ValidationError, InputError):
            unread.append(run.name)
    figures, skipped = boot_figures([run for run in runs if run.name in facts_by_run])
    unfiltered = history(figures, facts_by_run, order=order, least=least)
    lines = tuple(
        line
        for line in unfiltered.lines
        if all(getattr(wanted, name) in (None, getattr(line, name)) for name in _NAMES)
        and all(line.point.get(name) in values for name, values in wanted.points.items())
    )
    return unfiltered.model_copy(update={"lines": lines, "unread": (*unread, *skipped)})


def nothing_found(everything: Sequence[Line], wanted: HistoryFilter) -> InputError:
    """Return an error with the first condition of ``wanted`` that no line meets, and possible
    values."""
    left = list(everything)
    for name in _NAMES:
        word = getattr(wanted, name)
        has = dict.fromkeys(str(getattr(line, name)) for line in left)
        left = [line for line in left if word in (None, getattr(line, name))]
        if not left:
            listed = ", ".join(has) or "none"
            return InputError(
                f"no matching run has the {name} {word!r}{did_you_mean(word, has)}",
                hint=f"choose one that the runs have: {listed}.",
            )
    points = list(
        dict.fromkeys(" ".join(f"{n}={v}" for n, v in line.point.items()) for line in everything)
    )
    more = f", and {len(points) - _NAMED} more" if len(points) > _NAMED else ""
    return InputError(
        "no run has figures at that point",
        hint=f"choose one that the runs have: {'; '.join(points[:_NAMED])}{more}.",
    )
