"""What one object costs by the number of CPUs, on the contention clock: charts of the counts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median
from typing import TypeVar

from kteardown.analysis.transfers import TRANSFER
from kteardown.judge.metrics import PointKey, metric_name
from kteardown.model.record_fields import ParamValue
from kteardown.model.samples import PointOf, Samples
from kteardown.report.chart_model import Axis, Chart, Gallery, Mark, Plot, of_kernel, slug
from kteardown.report.formatting import counted, number, parameter, point_text
from kteardown.report.material import Material

CPUS = "cpus"
"""The parameter of a point that is the number of the guest's CPUs."""
MOST_PLACES = 8
"""At most as many combinations of the other parameters are shown: the last ones, which are the
largest."""
_DRAWN = ("line_moves_count", "locked_count", "spins_count")
_APART = 0.06
"""The distance of the marks of two kernels at one number of CPUs, as a part of the column."""
_T = TypeVar("_T")


def by_other_parameters(values: Sequence[tuple[PointOf, _T]]) -> dict[PointKey, list[_T]]:
    """Return values of one workload by what their points have besides the number of CPUs.

    The keys do not have the cost of a moved line, or a parameter that has one value for each number
    of CPUs, such as ``processes=cpus``.
    """
    left_out = {CPUS, TRANSFER, *_with_cpus([point for point, _ in values])}
    places: dict[PointKey, list[_T]] = {}
    for point, value in values:
        rest = tuple((name, of) for name, of in point.items() if name not in left_out)
        places.setdefault(rest, []).append(value)
    return places


def _with_cpus(points: Sequence[PointOf]) -> list[str]:
    """Return the parameters that change with the number of CPUs, and only with it."""
    names = dict.fromkeys(chain.from_iterable(points))
    changing = []
    for name in names:
        pairs = {(point.get(CPUS), point.get(name)) for point in points}
        cpus, values = (set(side) for side in zip(*pairs, strict=True))
        if name != CPUS and len(pairs) == len(cpus) and len(values) > 1:
            changing.append(name)
    return changing


def galleries_by_cpus(material: Material) -> list[Gallery]:
    """Return a gallery for each workload and metric whose samples have several numbers of CPUs.

    The choices are the values of the other parameters. Empty on other clocks.
    """
    if material.result.clock != "contention":
        return []
    figures: dict[tuple[str, str], list[tuple[PointOf, Samples]]] = {}
    for samples in material.evidence.samples:
        if samples.metric in _DRAWN:
            of_figure = figures.setdefault((samples.workload, samples.metric), [])
            of_figure.append((samples.point, samples))
    galleries = []
    for (workload, metric), of_figure in figures.items():
        places = {
            place: mine for place, mine in by_other_parameters(of_figure).items() if _is_drawn(mine)
        }
        left = len(places) - MOST_PLACES
        notes = (f"{left} more settings of the other parameters have no chart",) if left > 0 else ()
        charts: dict[tuple[str, ...], Chart] = {
            (point_text(dict(place)) or "all",): _chart(material, place, mine, notes)
            for place, mine in list(places.items())[-MOST_PLACES:]
        }
        if charts:
            name = slug("cpus", workload, metric)
            galleries.append(Gallery(name, ("at",), charts, list(charts)[-1], metric))
    return galleries


def _is_drawn(samples: Sequence[Samples]) -> bool:
    """Return whether there are several numbers of CPUs, and anything was counted."""
    several = len({s.point.get(CPUS) for s in samples}) > 1
    return several and any(map(any, (values for s in samples for values in s.boots.values())))


def _chart(
    material: Material, place: PointKey, samples: Sequence[Samples], notes: tuple[str, ...]
) -> Chart:
    first = samples[0]
    name = metric_name(material.workloads, first.workload, first.metric)
    columns = _columns([s.point for s in samples])
    kernels = list(dict.fromkeys(s.kernel for s in samples))
    series = []
    described = []
    for position, kernel in enumerate(kernels):
        mine = [s for s in samples if s.kernel == kernel]
        aside = _APART * (position - (len(kernels) - 1) / 2)
        marks = list(_marks(mine, list(columns), aside))
        series.append(of_kernel(kernel, list(material.result.kernels), marks))
        described += [mark.text for mark in marks]
    at = point_text(dict(place))
    return Chart(
        name=slug("cpus", first.workload, first.metric, at),
        title=f"{name}, by number of CPUs{f' at {at}' if at else ''}",
        about=f"Line chart of {name} by number of CPUs: {'; '.join(described)}.",
        drawn=Plot(
            Axis("CPUs", names=tuple(columns.values())),
            Axis(f"{name}; {first.better} is better", zero=True),
            tuple(series),
        ),
        notes=notes,
    )


def _columns(points: Sequence[PointOf]) -> Mapping[ParamValue, str]:
    """Return the label of each number of CPUs, with the parameters that change with it."""
    changing = _with_cpus(points)
    columns = {}
    for point in sorted(points, key=_cpus):
        values = (f"{name}={parameter(point[name])}" for name in changing if name in point)
        columns[point[CPUS]] = "\n".join((parameter(point[CPUS]), *values))
    return columns


def _cpus(point: PointOf) -> int:
    cpus = point[CPUS]
    assert isinstance(cpus, int)
    return cpus


def _marks(
    samples: Sequence[Samples], columns: Sequence[ParamValue], aside: float
) -> Iterator[Mark]:
    """Yield the median over the boots of each number of CPUs, from the smallest to the largest
    boot."""
    for column, cpus in enumerate(columns):
        mine = [s for s in samples if s.point[CPUS] == cpus]
        boots = [median(values) for s in mine for values in s.boots.values()]
        if boots:
            middle, low, high = median(boots), min(boots), max(boots)
            text = (
                f"{mine[0].kernel} with {counted(_cpus(mine[0].point), 'CPU')}: {number(middle)} "
                f"({number(low)} to {number(high)} in {counted(len(boots), 'boot')})"
            )
            yield Mark(column + aside, middle, text, low, high)
