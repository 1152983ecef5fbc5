"""The effect of each patch of a series as a waterfall chart, from base to the whole series."""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from operator import mul

from kteardown.model.result import Ablation
from kteardown.report.charts.figure import DOTTED, Axis, Chart, Mark, Plot, PlotSeries, slug
from kteardown.report.formatting import change_of, point_text, portion
from kteardown.report.material import Material
from kteardown.report.metric_names import metric_name
from kteardown.report.sections.ablation_table import largest_ablations

_LONGEST = 68
"""A longer subject of a patch is cut in a tooltip."""
_WIDTH = 0.62
"""The part of its column that a bar takes."""


def waterfalls(material: Material) -> list[tuple[Ablation, Chart]]:
    """Return a chart for each ablation whose steps are all known."""
    return [
        (ablation, _chart(ablation, metric_name(material.workloads, ablation.workload, ablation.metric)))
        for ablation in largest_ablations(material.result, material.workloads)
        if ablation.ratio and all(p.step.ratio for p in ablation.patches)
    ]


def _chart(ablation: Ablation, metric: str) -> Chart:
    place = point_text(ablation.point)
    at = f" at {place}" if place else ""
    parts = [(f"patch {p.patch}", p.step.ratio, p.step.ci, p.step.exact) for p in ablation.patches]
    parts.append(("whole series", ablation.ratio, ablation.ci, ablation.exact))
    # Below each bar is the patch, its change and the interval.
    texts = [
        (name, change_of(ratio, ci, exact=exact).replace(" ", "\n", 1)) for name, ratio, ci, exact in parts
    ]
    changes = [f"{name} {change_of(ratio, None)}" for name, ratio, _, _ in parts]
    return Chart(
        name=slug("patches", ablation.variant, ablation.workload, ablation.metric, place),
        title=f"{ablation.variant}: effect of each patch on {metric}{at}",
        about=f"Waterfall of the change of {metric}{at} against base: "
        f"{', '.join(changes[:-1])}; {changes[-1]}.",
        drawn=Plot(
            Axis(names=tuple(f"{name}\n{text}" for name, text in texts)),
            Axis("change against base, %"),
            tuple(_series(ablation)),
        ),
        notes=(
            *(f"{p.patch}: {p.subject}" for p in ablation.patches if p.subject),
            "a pale bar is not a significant change: its interval includes zero",
        ),
    )


def _series(ablation: Ablation) -> Iterator[PlotSeries]:
    """Yield lines between the bars, a bar for each step from the end of the previous one, and one for all."""
    levels = list(accumulate((p.step.ratio or 1.0 for p in ablation.patches), mul, initial=1.0))
    for n, level in enumerate(levels[1:]):
        line = (Mark(n, 100 * (level - 1)), Mark(n + 1, 100 * (level - 1)))
        yield PlotSeries("", "muted", line, dash=DOTTED, width=1, in_legend=False)
    for n, (p, ends) in enumerate(zip(ablation.patches, pairwise(levels), strict=True)):
        words = p.subject if len(p.subject) <= _LONGEST else p.subject[: _LONGEST - 1] + "…"
        text = f"patch {p.patch}: {words}; {portion(p.step)} of the whole series"
        yield _bar(ablation.variant, n, ends, p.step.ci, text, _shade(ablation, p.step.ratio, p.step.ci))
    whole = (1.0, ablation.ratio or levels[-1])
    yield _bar(ablation.variant, len(ablation.patches), whole, ablation.ci, "all patches", "base")


def _bar(
    variant: str, n: int, ends: tuple[float, float], ci: tuple[float, float] | None, text: str, shade: str
) -> PlotSeries:
    """Return the bar in column ``n`` between two levels; ``ci`` is the interval of their ratio."""
    before, after = ends
    low, high = (before * ci[0], before * ci[1]) if ci else (after, after)
    start, end, least, most = (100 * (level - 1) for level in (before, after, low, high))
    bar = Mark(n, end, text, least, most, base=start)
    return PlotSeries("", shade, (bar,), "bar", size=_WIDTH, variant=variant, in_legend=False)


def _shade(ablation: Ablation, ratio: float | None, ci: tuple[float, float] | None) -> str:
    if ratio is None or ratio == 1 or (ci and ci[0] <= 1 <= ci[1]):
        return "null"
    return "better" if (ratio < 1) == (ablation.better == "lower") else "worse"
