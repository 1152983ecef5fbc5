"""What problems cost over the releases that were measured: a chart for each.

The first part is the catalogue of kteardown, with the laws of the runs of the site for releases
that the catalogue has not. The second part has the laws of these runs that are in no problem.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kteardown.catalogue.laws import MeasuredLaw, laws_of
from kteardown.catalogue.over_releases import CostHistory, ReleaseChange, cost_history, histories_of
from kteardown.catalogue.problems import load_problems
from kteardown.catalogue.releases import version_of
from kteardown.model.arch import DEFAULT_ARCH
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.result import Result
from kteardown.report.chart_model import Axis, Mark, Plot, of_kernel, slug
from kteardown.report.charts import markup
from kteardown.report.formatting import number, percent, scale

_UNPATCHED = "unpatched kernels"
_RELEASES = ("debian:", "kernel.org:")
"""Sources whose kernels are those of a release."""
_LARGEST = 1e15
"""A cost above this is not one of a kernel; a chart could not have it."""


@dataclass(frozen=True)
class ProblemCard:
    """A problem on the page.

    ``anchor`` stays the same when the site is written again. ``verdict`` compares the newest
    release with the oldest one. ``measured`` says what the costs are of, ``results`` where they are
    from.
    """

    anchor: str
    title: str
    event: str
    verdict: str
    picture: str
    changes: tuple[str, ...]
    measured: str
    results: tuple[str, ...]


@dataclass(frozen=True)
class ProblemGroup:
    title: str
    cards: tuple[ProblemCard, ...]


MetricNames = Mapping[tuple[str, str], str]
"""The names of metrics for people, by workload and metric."""


def laws_in(result: Result, name: str) -> list[MeasuredLaw]:
    """Return what one more object costs the kernels of a result, where a straight line fits.

    Only of the instruction clock, whose figures do not depend on the host; of kernels that differ
    only in release and series; and of metrics of which less is better.
    """
    if result.clock != "instructions":
        return []
    higher = {(row.workload, row.metric) for row in result.metrics if row.better == "higher"}
    higher |= {(row.workload, row.metric) for row in result.comparisons if row.better == "higher"}
    return [
        MeasuredLaw(
            law.workload,
            law.metric,
            law.param,
            release,
            _series(facts),
            law.point,
            law.per_unit,
            law.per_unit_ci,
            law.value_unit or law.unit,
            name,
        )
        for law in result.laws
        if (facts := result.kernels.get(law.kernel)) is not None
        and (release := _release(facts))
        and result.is_asked_for(law.kernel)
        and (law.workload, law.metric) not in higher
        and law.model in ("linear", "constant")
        and law.per_unit is not None
        and law.per_unit_ci is not None
        and max(map(abs, (law.per_unit, *law.per_unit_ci))) < _LARGEST
    ]


def _release(facts: KernelFacts) -> str:
    """Return the first two numbers of the release.

    Empty if it has none, or if the kernel is of another architecture, of a git tree, of a source
    with patches, or prebuilt: its costs do not stand for the release.
    """
    version = version_of(facts.release)
    is_release = facts.arch == DEFAULT_ARCH and facts.source.startswith(_RELEASES)
    return "{}.{}".format(*version) if version and is_release else ""


def _series(facts: KernelFacts) -> str:
    """Return the series of a kernel with the numbers of its patches, unless it has them all."""
    patches = facts.patch_set
    if patches is None or patches.whole:
        return facts.series
    return f"{facts.series}@{','.join(map(str, patches.patches))}"


def problem_groups(laws: Sequence[MeasuredLaw], names: MetricNames) -> list[ProblemGroup]:
    """Return the problems by what releases did to them; ``laws`` are those of the site's runs."""
    cards = [
        _card(problem.name, problem.title, problem.event, cost_history(problem, laws))
        for problem in load_problems()
    ]
    titles = {
        "worse": "Worse on the newest release than on the oldest",
        "better": "Better on the newest release than on the oldest",
        "same": "Not surely changed by more than 10%",
        "": "Measured on one release",
    }
    groups = [
        ProblemGroup(title, tuple(card for card in cards if card.verdict == verdict))
        for verdict, title in titles.items()
    ]
    of_runs = tuple(_of_runs(laws, names))
    groups.append(ProblemGroup("Other laws of the results of this site", of_runs))
    return [group for group in groups if group.cards]


def _of_runs(laws: Sequence[MeasuredLaw], names: MetricNames) -> Iterator[ProblemCard]:
    """Yield the laws that are in no problem and were measured on several releases."""
    known = {id(law) for problem in load_problems() for law in laws_of(problem, laws)}
    others = [law for law in laws if id(law) not in known]
    for (workload, metric, param, point), history in histories_of(others).items():
        if len(history.lines[0].costs) > 1:
            where = f", {point}" if point else ""
            title = names.get((workload, metric), metric)
            name = slug(workload, metric, param, point)
            yield _card(name, title, f"{workload}: one more of {param}{where}", history)


def _card(anchor: str, title: str, event: str, history: CostHistory) -> ProblemCard:
    several = bool(history.lines) and len(history.lines[0].costs) > 1
    whole = history.whole_change
    verdict = whole.verdict if whole else "same" if several else ""
    unit = scale(history.unit, "instructions", ()).unit
    return ProblemCard(
        anchor,
        title,
        event,
        verdict,
        _picture(history, unit),
        tuple(_change_in_words(change, unit) for change in history.changes),
        _measured(history),
        tuple(sorted({cost.result for line in history.lines for cost in line.costs})),
    )


def _measured(history: CostHistory) -> str:
    """Return what the costs are of."""
    if history.objects is None:
        return "the slope of a straight line"
    return f"measured with {history.objects:,} objects"


def _change_in_words(change: ReleaseChange, unit: str) -> str:
    older = change.older
    newer = change.newer
    return (
        f"{newer.release} is {change.verdict} than {older.release}: {number(older.value)} -> "
        f"{number(newer.value)} {unit} ({percent(change.ratio, 0)})."
    )


def _picture(history: CostHistory, unit: str) -> str:
    """Return the markup of the chart: a column for each release, a line for each series."""
    releases = releases_of(history)
    labels = [_label(line.series, line.machine) for line in history.lines]
    lines = []
    for label, line in zip(labels, history.lines, strict=True):
        marks = [
            Mark(
                releases.index(cost.release),
                cost.value,
                f"{label}, {cost.release}: {number(cost.value)} {unit} ({cost.result})",
                cost.low,
                cost.high,
            )
            for cost in line.costs
        ]
        lines.append(of_kernel("base" if label == _UNPATCHED else label, labels, marks, label))
    axis = Axis(f"{unit} for one more, lower is better", zero=True)
    return markup(Plot(Axis(names=releases), axis, tuple(lines)))


def _label(series: str, machine: str) -> str:
    return ", ".join(filter(None, (f"with {series}" if series else _UNPATCHED, machine)))


def releases_of(history: CostHistory) -> tuple[str, ...]:
    """Return every release of a history, oldest first."""
    names: Iterable[str] = {cost.release for line in history.lines for cost in line.costs}
    return tuple(sorted(names, key=lambda name: version_of(name) or (0, 0)))
