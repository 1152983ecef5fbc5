"""Percentiles of distributions: all values of all boots together, including the far tail."""

from __future__ import annotations

from collections.abc import Sequence

from kteardown.model.point import Key, key
from kteardown.model.result import Distribution
from kteardown.report.charts.figure import Axis, Chart, Gallery, Mark, Plot, of_kernel, slug
from kteardown.report.formatting import Scale, percent, point_text, scale
from kteardown.report.material import Material
from kteardown.report.metric_names import distinct_names, metric_name


def tail_gallery(material: Material) -> Gallery | None:
    """Return a chart for each histogram and point, with all kernels; None if there are no histograms."""
    found: dict[tuple[str, str, Key], list[Distribution]] = {}
    for one in material.result.distributions:
        if material.result.is_asked_for(one.kernel):
            found.setdefault((one.workload, one.metric, key(one.point)), []).append(one)
    if not found:
        return None
    names = distinct_names(material.workloads, (figure[:2] for figure in found))
    charts: dict[tuple[str, ...], Chart] = {
        (names[workload, metric], point_text(mine[0].point) or "all"): _chart(material, mine)
        for (workload, metric, _), mine in found.items()
    }
    first = next(iter(charts))
    last = [option for option in charts if option[0] == first[0]][-1]
    return Gallery("tail", ("metric", "at"), charts, last)


def _chart(material: Material, mine: Sequence[Distribution]) -> Chart:
    first = mine[0]
    name = metric_name(material.workloads, first.workload, first.metric)
    kernels = list(material.result.kernels)
    values = [value for one in mine for value in one.percentiles.values()]
    percentiles = list(dict.fromkeys(percentile for one in mine for percentile in one.percentiles))
    unit = scale(first.unit, material.result.clock, values)
    at = f" at {point_text(first.point)}" if first.point else ""
    counts = ", ".join(f"{one.n:,} values of {one.kernel}" for one in mine)
    error = percent(1 + max(one.error for one in mine)).lstrip("+")
    return Chart(
        name=slug("tail", first.workload, first.metric, point_text(first.point)),
        title=f"{name} of all boots together{at}",
        about=f"Percentiles of {name}{at} in {unit.unit}: "
        + "; ".join(_values_text(one, unit) for one in mine)
        + ".",
        drawn=Plot(
            Axis("percentile", names=tuple(f"p{percentile}" for percentile in percentiles)),
            Axis(f"{name}, {unit.unit}", log=min(values) > 0),
            tuple(of_kernel(one.kernel, kernels, _marks(one, percentiles, unit)) for one in mine),
        ),
        notes=(f"{counts}, of all boots together, without intervals; bucket error at most {error}",),
    )


def _marks(one: Distribution, percentiles: Sequence[str], unit: Scale) -> list[Mark]:
    return [
        Mark(
            percentiles.index(name),
            value / unit.divisor,
            f"{one.kernel} p{name}: {unit.text(value)} {unit.unit}",
        )
        for name, value in one.percentiles.items()
    ]


def _values_text(one: Distribution, unit: Scale) -> str:
    return f"{one.kernel} " + ", ".join(f"p{name} {unit.text(v)}" for name, v in one.percentiles.items())
